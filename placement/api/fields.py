# ruff: noqa: ARG002 - the signatures of fields are marshmallow's
"""JSON bodies: marshmallow schemas, JSON-exact fields, and faults in words that clients know.

The reference validates with a JSON Schema validator, and its clients and tests quote that validator's sentences
("'total' is a required property", "Failed validating 'minimum' in schema['properties']['total']"). Fields report
Faults; ``load`` turns the first into such a sentence, on one line, because the ``openstack`` command shows only the
last line. marshmallow's own fields convert generously; these do not: ``1.0`` is an integer, ``true`` is not, ``"1.5"``
is not a number.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson
from marshmallow import RAISE, ValidationError, fields, missing
from marshmallow import Schema as MarshmallowSchema

from placement.domain.names import is_uuid_like
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


MAX_INTEGER = 2**63 - 1
MAX_COLUMN_VALUE = 2**31 - 1
"""The largest integer that the tables' columns hold."""
MAX_ITEMS = 10_000
"""The number of items that a list, or of keys that an object, in a body may have, unless its field says otherwise."""


def refuse(sentence: str, rule: str) -> ValidationError:
    """Return an error with a single fault."""
    return ValidationError([Fault(sentence, rule)])


class Exact(fields.Field[Any]):
    """A field that validates without converting; ``null`` is valid only if ``nullable``.

    ``default`` documents, for the API reference, what an absent key means; the code that reads the body applies it.
    """

    kind = "string"

    def __init__(self, *, required: bool = True, nullable: bool = False, default: Any = None, **options: Any) -> None:
        super().__init__(required=required, allow_none=True, **options)
        self.nullable = nullable
        self.default = default

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **options: Any) -> Any:
        """Validate one value. ``None`` is treated like any other wrong type."""
        if value is None:
            if self.nullable:
                return None
            raise self._wrong_type(value)
        return super().deserialize(value, attr, data, **options)

    def _wrong_type(self, value: Any) -> ValidationError:
        kinds = f"'{self.kind}', 'null'" if self.nullable else f"'{self.kind}'"
        return refuse(f"{shown(value)} is not of type {kinds}", "type")


class _Bounded(Exact):
    """A number between bounds."""

    def __init__(self, *, minimum: float | None = None, maximum: float | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.minimum = minimum
        self.maximum = maximum

    def _within(self, value: Any) -> Any:
        if self.minimum is not None and value < self.minimum:
            raise refuse(f"{value} is less than the minimum of {self.minimum}", "minimum")
        if self.maximum is not None and value > self.maximum:
            raise refuse(f"{value} is greater than the maximum of {self.maximum}", "maximum")
        return value


def whole(value: Any) -> Any:
    """Return ``4.0`` as 4, and anything else as it is: JSON has one kind of numbers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Integer(_Bounded):
    """A whole number, written with or without ``.0``."""

    kind = "integer"

    def __init__(self, *, minimum: int = -MAX_INTEGER, maximum: int = MAX_INTEGER, **options: Any) -> None:
        super().__init__(minimum=minimum, maximum=maximum, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> int:
        value = whole(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong_type(value)
        return int(self._within(value))


class JsonNumber(_Bounded):
    """A number."""

    kind = "number"

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong_type(value)
        return float(self._within(value))


class JsonText(Exact):
    """A string without NUL characters, which databases refuse."""

    def __init__(
        self, *, shortest: int | None = None, longest: int | None = None, pattern: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.shortest = shortest
        self.longest = longest
        self.pattern = pattern

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        if not isinstance(value, str):
            raise self._wrong_type(value)
        if self.longest is not None and len(value) > self.longest:
            raise refuse(f"{shown(value)} is too long", "maxLength")
        if self.shortest is not None and len(value) < self.shortest:
            raise refuse(f"{value!r} should be non-empty", "minLength")
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            raise refuse(f"{shown(value)} does not match '^{self.pattern}$'", "pattern")
        if "\0" in value:
            raise refuse(f"{shown(value)} contains a NUL character", "pattern")
        return value


class Uuid(Exact):
    """A uuid in any spelling, returned as it was sent."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        if not isinstance(value, str):
            raise self._wrong_type(value)
        if not is_uuid_like(value):
            raise refuse(f"{shown(value)} is not a 'uuid'", "format")
        return value


class Array(Exact):
    """A list of values of one kind."""

    kind = "array"

    def __init__(
        self,
        items: fields.Field[Any],
        *,
        shortest: int = 0,
        longest: int = MAX_ITEMS,
        unique: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.items = items
        self.shortest = shortest
        self.longest = longest
        self.unique = unique

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self._wrong_type(value)
        if len(value) < self.shortest:
            raise refuse(f"{shown(value)} {'is too short' if value else 'should be non-empty'}", "minItems")
        if len(value) > self.longest:
            raise refuse(f"A list of {len(value)} items is too long, the limit is {self.longest}", "maxItems")
        loaded, faults = [], {}
        for index, item in enumerate(value):
            try:
                loaded.append(self.items.deserialize(item))
            except ValidationError as error:
                faults[index] = error.normalized_messages().get("_schema", error.messages)  # type: ignore[no-untyped-call]
        if faults:
            raise ValidationError(faults)
        if self.unique and len({repr(item) for item in loaded}) < len(loaded):
            raise refuse(f"{shown(value)} has non-unique elements", "uniqueItems")
        return loaded


class Mapping(Exact):
    """An object whose keys are data: all match a pattern, and all values are of one kind.

    Args:
        keys: the pattern that keys match.
        values: the field for values.
        others: the field for values of keys that do not match; without it, such keys are refused.
        smallest: the minimum number of keys.
        largest: the maximum number of keys.
        options: those of any field.
    """

    kind = "object"

    def __init__(
        self,
        keys: str,
        values: fields.Field[Any],
        *,
        others: fields.Field[Any] | None = None,
        smallest: int = 0,
        largest: int = MAX_ITEMS,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.keys = re.compile(keys)
        self.values = values
        self.others = others
        self.smallest = smallest
        self.largest = largest

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong_type(value)
        if len(value) < self.smallest:
            raise refuse(f"{shown(value)} does not have enough properties (should be non-empty)", "minProperties")
        if len(value) > self.largest:
            raise refuse(f"An object of {len(value)} keys is too large, the limit is {self.largest}", "maxProperties")
        loaded, faults = {}, {}
        for key, item in value.items():
            field = self.values if self.keys.fullmatch(key) else self.others
            if field is None:
                sentence = f"{shown(key)} does not match any of the regexes: '^{self.keys.pattern}$'"
                raise refuse(sentence, "additionalProperties")
            try:
                loaded[key] = field.deserialize(item)
            except ValidationError as error:
                faults[key] = error.normalized_messages().get("_schema", error.messages)  # type: ignore[no-untyped-call]
        if faults:
            raise ValidationError(faults)
        return loaded


class Object(fields.Nested):
    """An object with its own schema."""

    def __init__(self, schema: Any, *, required: bool = True, **options: Any) -> None:
        super().__init__(schema, required=required, **options)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **options: Any) -> Any:
        """Validate one object."""
        if value is not missing and not isinstance(value, dict):
            raise refuse(f"{shown(value)} is not of type 'object'", "type")
        return super().deserialize(value, attr, data, **options)
