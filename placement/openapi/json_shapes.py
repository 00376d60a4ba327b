"""Shorthands for JSON Schema: the shapes that answers consist of."""

from collections.abc import Iterable, Mapping
from typing import Any

from placement.domain.names import NAME_PATTERN

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
UUID: Json = {"type": "string", "format": "uuid"}
COUNT: Json = {"type": "integer", "minimum": 0}
NUMBER: Json = {"type": "number"}
FLAG: Json = {"type": "boolean"}


def record(members: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    """Return the schema of an object with exactly these members, of which those in ``optional`` may be absent."""
    every = {**members, **(optional or {})}
    return {"type": "object", "required": [*members], "properties": every, "additionalProperties": False}


def array(items: Json) -> Json:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def one_of(words: Iterable[str]) -> Json:
    """Return the schema of a text with a fixed set of values."""
    return {"type": "string", "enum": [str(word) for word in words]}


def by_uuid(values: Json) -> Json:
    """Return the schema of an object whose keys are uuids."""
    return {"type": "object", "propertyNames": {"format": "uuid"}, "additionalProperties": values}


def by_class(values: Json) -> Json:
    """Return the schema of an object whose keys are resource classes."""
    return {"type": "object", "propertyNames": {"pattern": f"^{NAME_PATTERN}$"}, "additionalProperties": values}


def by_name(values: Json) -> Json:
    """Return the schema of an object with arbitrary keys."""
    return {"type": "object", "additionalProperties": values}


def or_null(schema: Json) -> Json:
    """Return the schema of a value that may also be null."""
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def shared(name: str) -> Json:
    """Return a reference to one of the document's shared schemas."""
    return {"$ref": f"#/components/schemas/{name}"}
