"""JSON Schema: shorthands for the shapes that answers consist of."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from placement.api.fields import Json
from placement.domain.names import NAME_PATTERN


class Ready(Json):
    """A JSON Schema, unlike an object of which ``shape`` has yet to make one."""


_KINDS: dict[type[Any], Ready] = {
    str: Ready(type="string"),
    UUID: Ready(type="string", format="uuid"),
    int: Ready(type="integer", minimum=0),
    float: Ready(type="number"),
    bool: Ready(type="boolean"),
    object: Ready(),
}


def shape(example: Any) -> Ready:
    """Return the schema of what is written as in Python: a type, a list of one type, or an object's members.

    An object has exactly these members, of which those whose names end in ``?`` may be absent. An ``int`` is a count,
    an ``object`` is anything.
    """
    if isinstance(example, Ready):
        return example
    if isinstance(example, list):
        (items,) = example
        return Ready(type="array", items=shape(items))
    if isinstance(example, dict):
        required = [name for name in example if not name.endswith("?")]
        optional = [name for name in example if name.endswith("?")]
        members = {name.removesuffix("?"): shape(example[name]) for name in required + optional}
        return Ready(type="object", required=required, properties=members, additionalProperties=False)
    return _KINDS[example]


def all_are(kind: Any, *names: str) -> dict[str, Any]:
    """Return the members of an object that are all of one kind."""
    return dict.fromkeys(names, kind)


def one_of(words: Iterable[str]) -> Ready:
    """Return the schema of a text with a fixed set of values."""
    return Ready(type="string", enum=[str(word) for word in words])


def by_uuid(values: Any) -> Ready:
    """Return the schema of an object whose keys are uuids."""
    return Ready(type="object", propertyNames={"format": "uuid"}, additionalProperties=shape(values))


def by_class(values: Any) -> Ready:
    """Return the schema of an object whose keys are resource classes."""
    return Ready(type="object", propertyNames={"pattern": f"^{NAME_PATTERN}$"}, additionalProperties=shape(values))


def by_name(values: Any) -> Ready:
    """Return the schema of an object with arbitrary keys."""
    return Ready(type="object", additionalProperties=shape(values))


def or_null(value: Any) -> Ready:
    """Return the schema of a value that may also be null."""
    schema = shape(value)
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return Ready({**schema, "type": [schema["type"], "null"]})
    return Ready(anyOf=[schema, {"type": "null"}])


def shared(name: str) -> Ready:
    """Return a reference to one of the document's shared schemas."""
    return Ready({"$ref": f"#/components/schemas/{name}"})
