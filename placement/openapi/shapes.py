"""JSON Schema: shorthands for the shapes that answers consist of, and the schemas of bodies.

Bodies are marshmallow schemas with the fields of ``api/fields.py``; there are no others.
"""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from marshmallow import fields as marshmallow_fields

from placement.api import fields
from placement.api.allocations import ByConsumer
from placement.api.fields import Schema
from placement.domain.names import NAME_PATTERN

Json = dict[str, Any]


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


def schema_json(schema: Schema) -> Json:
    """Return the JSON Schema of a body."""
    if isinstance(schema, ByConsumer):
        return field_json(schema.entries)
    properties = {name: field_json(field) for name, field in schema.fields.items()}
    if getattr(schema, "bare", False):  # a single list, not in an object
        (only,) = properties.values()
        return only
    required = [name for name, field in schema.fields.items() if field.required]
    shown: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**shown, "required": required} if required else shown


def field_json(field: Any) -> Json:
    """Return the JSON Schema of one field, including its default."""
    shown, default = _kind_json(field), getattr(field, "default", None)
    return shown if default is None else {**shown, "default": default}


def _kind_json(field: Any) -> Json:
    """Return the schema that a field declares itself (``documented``, ``alternatives``), or the one of its kind."""
    if documented := getattr(field, "documented", None):
        return dict(documented)
    if alternatives := getattr(field, "alternatives", None):
        return {"anyOf": [field_json(alternative) for alternative in alternatives]}
    for kind, convert in _CONVERTERS.items():
        if isinstance(field, kind):
            shown = convert(field)
            return {**shown, "type": [shown["type"], "null"]} if getattr(field, "nullable", False) else shown
    raise TypeError(f"the API reference knows no field like {field!r}")


def _bounded(field: Any) -> Json:
    return _without_none({"type": field.kind, "minimum": field.minimum, "maximum": field.maximum})


def _text(field: fields.JsonText) -> Json:
    pattern = None if field.pattern is None else f"^{field.pattern}$"
    shown = {"type": "string", "minLength": field.shortest, "maxLength": field.longest, "pattern": pattern}
    words = getattr(field, "words", None)
    return _without_none({**shown, "enum": None if words is None else list(words)})


def _array(field: fields.Array) -> Json:
    shown: Json = {"type": "array", "items": field_json(field.items), "maxItems": field.longest}
    if field.shortest:
        shown["minItems"] = field.shortest
    return {**shown, "uniqueItems": True} if field.unique else shown


def _mapping(field: fields.Mapping) -> Json:
    keys = field.keys.pattern.replace("(?s)", "")
    shown: Json = {
        "type": "object",
        "patternProperties": {f"^{keys}$": field_json(field.values)},
        "additionalProperties": field.others is not None,
        "maxProperties": field.largest,
    }
    return {**shown, "minProperties": field.smallest} if field.smallest else shown


def _object(field: fields.Object) -> Json:
    schema = field.schema
    assert isinstance(schema, Schema)
    return schema_json(schema)


def _without_none(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


_CONVERTERS: dict[type[Any], Callable[[Any], Json]] = {
    fields.Integer: _bounded,
    fields.JsonNumber: _bounded,
    fields.JsonText: _text,
    fields.Uuid: lambda _field: shape(UUID),
    fields.Array: _array,
    fields.Mapping: _mapping,
    fields.Object: _object,
    fields.Exact: lambda field: {"type": field.kind},
    marshmallow_fields.Raw: lambda _field: {},
}
