"""Validation of JSON bodies with marshmallow schemas, reporting errors in words that clients know.

The reference validates with a JSON Schema validator, and its clients and tests quote that validator's sentences
("'total' is a required property", "Failed validating 'minimum' in schema['properties']['total']"). The fields of
``api/fields.py`` report Faults; this module turns the first into such a sentence, on one line, because the
``openstack`` command shows only the last line.
"""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
from marshmallow import RAISE, ValidationError
from marshmallow import Schema as MarshmallowSchema

from placement.errors import Invalid, InvalidAt

BodyPath = tuple[str | int, ...]
"""The keys and positions that lead to a part of a body."""

DEEPEST = 254
"""How deep a body may nest, which is how deep orjson writes: far beyond any request, far from the end of the stack."""


class Fault(str):
    """What is wrong with one value, and which rule it breaks."""

    __slots__ = ("rule",)
    rule: str

    def __new__(cls, sentence: str, rule: str) -> "Fault":
        """Make a fault from its sentence and the JSON Schema name of the broken rule."""
        fault = super().__new__(cls, sentence)
        fault.rule = rule
        return fault


class Schema(MarshmallowSchema):
    """An object in a request body. Unknown keys are refused."""

    class Meta:
        """marshmallow's settings."""

        unknown = RAISE

    def property_name(self, key: str) -> str:
        """Return how the path of a fault spells a key of this object."""
        return f"['properties'][{key!r}]"


def load(schema: Schema, document: Any) -> Any:
    """Return the validated body.

    Raises:
        Invalid: with the first of the outermost faults, in JSON Schema's words.
    """
    return _loaded(schema, document, _in_schema)


def load_document(schema: Schema, document: Any) -> Any:
    """Return the validated body of a request that has no counterpart in the reference.

    Raises:
        InvalidAt: with the first of the outermost faults and its place in the document.
    """
    return _loaded(schema, document, InvalidAt)


def _loaded(schema: Schema, document: Any, refusal: Callable[[BodyPath, Fault], Invalid]) -> Any:
    if not isinstance(document, dict) and not getattr(schema, "bare", False):
        raise refusal((), Fault(f"{shown(document)} is not of type 'object'", "type"))
    try:
        return schema.load(document)
    except ValidationError as error:
        path, fault = min(_faults(error.normalized_messages()), key=lambda found: len(found[0]))  # type: ignore[no-untyped-call]
        raise refusal(path, fault) from error


def refuse_deep(document: Any) -> None:
    """Refuse a document that nests deeper than functions that call themselves can follow; orjson counts fastest.

    Raises:
        Invalid: it does.
    """
    try:
        orjson.dumps(document)
    except orjson.JSONEncodeError as error:
        raise Invalid(f"The JSON is nested more than {DEEPEST} deep.") from error


def shown(value: Any) -> str:
    """Return a value as quoted in a sentence, truncated if long."""
    text = repr(value)
    return text if len(text) <= 500 else text[:500] + "..."


def _in_schema(path: BodyPath, fault: Fault) -> Invalid:
    """Return an error worded as a JSON Schema validator would."""
    steps = "".join("['items']" if isinstance(step, int) else f"['properties'][{step!r}]" for step in path)
    return Invalid(f"JSON does not validate: {fault}. Failed validating '{fault.rule}' in schema{steps}")


def _faults(messages: Any, path: BodyPath = ()) -> Iterator[tuple[BodyPath, Fault]]:
    """Flatten marshmallow's nested messages into paths and faults."""
    if isinstance(messages, dict):
        for key, inner in messages.items():
            yield from _faults_at(key, inner, path)
    elif isinstance(messages, list):
        for message in messages:
            yield path, message if isinstance(message, Fault) else Fault(str(message), "type")
    else:
        yield path, messages if isinstance(messages, Fault) else Fault(str(messages), "type")


def _faults_at(key: Any, inner: Any, path: BodyPath) -> Iterator[tuple[BodyPath, Fault]]:
    if inner == ["Unknown field."]:
        sentence = f"Additional properties are not allowed ({key!r} was unexpected)"
        yield path, Fault(sentence, "additionalProperties")
    elif inner == ["Missing data for required field."]:
        yield path, Fault(f"{key!r} is a required property", "required")
    elif key == "_schema":
        yield from _faults(inner, path)
    else:
        yield from _faults(inner, (*path, key))
