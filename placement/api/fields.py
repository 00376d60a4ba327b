"""JSON values in requests: what each may be, as JSON Schema for the API reference, and the check that it is.

The reference validates with a JSON Schema validator, and its clients and tests quote that validator's sentences
("'total' is a required property", "Failed validating 'minimum' in schema['properties']['total']"). Fields say the same,
on one line, because the ``openstack`` command shows only the last line. ``1.0`` is an integer, ``true`` is not,
``"1.5"`` is not a number. Members of an object that may be absent are written with a question mark.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from placement.domain.names import is_uuid_like
from placement.errors import Invalid, InvalidAt

Json = dict[str, Any]

BodyPath = tuple[str | int, ...]
"""The keys and positions that lead to a part of a body."""

DEEPEST = 254
"""How deep a body may nest, which is how deep orjson writes: far beyond any request, far from the end of the stack."""

MAX_INTEGER = 2**63 - 1
MAX_COLUMN_VALUE = 2**31 - 1
"""The largest integer that the tables' columns hold."""
MAX_ITEMS = 10_000
"""The number of items that a list, or of keys that an object, in a body may have, unless its field says otherwise."""


class Fault(Exception):
    """What is wrong with one value, and the JSON Schema name of the broken rule."""

    def __init__(self, sentence: str, rule: str) -> None:
        super().__init__(sentence)
        self.rule = rule


Faults = list[tuple[BodyPath, Fault]]


_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "array": list,
    "object": dict,
}

_RULES: dict[str, Callable[[Any, Any], str | None]] = {
    "minimum": lambda number, bound: f"{number} is less than the minimum of {bound}" if number < bound else None,
    "maximum": lambda number, bound: f"{number} is greater than the maximum of {bound}" if number > bound else None,
    "maxLength": lambda text, bound: f"{shown(text)} is too long" if len(text) > bound else None,
    "minLength": lambda text, bound: f"{text!r} should be non-empty" if len(text) < bound else None,
    "pattern": lambda text, bound: (
        None if re.fullmatch(bound[1:-1], text) else f"{shown(text)} does not match '{bound}'"
    ),
    "enum": lambda text, words: None if text in words else f"{shown(text)} is not one of {words}",
    "minItems": lambda items, bound: (
        f"{shown(items)} {'is too short' if items else 'should be non-empty'}" if len(items) < bound else None
    ),
    "maxItems": lambda items, bound: (
        f"A list of {len(items)} items is too long, the limit is {bound}" if len(items) > bound else None
    ),
    "minProperties": lambda entries, bound: (
        f"{shown(entries)} does not have enough properties (should be non-empty)" if len(entries) < bound else None
    ),
    "maxProperties": lambda entries, bound: (
        f"An object of {len(entries)} keys is too large, the limit is {bound}" if len(entries) > bound else None
    ),
}
"""By rule of JSON Schema, what is wrong with a value, if anything."""


class Field:
    """What one value may be.

    Args:
        schema: its JSON Schema, whose rules are checked in order.
        nullable: whether ``null`` is valid as well.
        default: what an absent key means, for the API reference; the code that reads the body applies it.
    """

    def __init__(self, schema: Mapping[str, Any], *, nullable: bool = False, default: Any = None) -> None:
        self._type = schema.get("type")
        self._rules = [(_RULES[rule], rule, bound) for rule, bound in schema.items() if rule in _RULES]
        self._nullable = nullable
        self.schema: Json = {**schema, "type": [self._type, "null"]} if nullable else dict(schema)
        if default is not None:
            self.schema["default"] = default

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the value as views use it, or None after adding what is wrong with it to the faults."""
        if value is None and self._nullable:
            return None
        try:
            return self.read(value)
        except Fault as fault:
            faults.append((path, fault))
            return None

    def read(self, value: Any) -> Any:
        """Return the value without looking into it, numbers as int or float; raise a Fault if it breaks a rule."""
        if self._type is None:
            return value
        value = whole(value) if self._type == "integer" else value
        if not isinstance(value, _TYPES[self._type]) or (isinstance(value, bool) and self._type != "boolean"):
            raise self.wrong_type(value)
        for sentence_of, rule, bound in self._rules:
            if sentence := sentence_of(value, bound):
                raise Fault(sentence, rule)
        if isinstance(value, str) and "\0" in value:
            raise Fault(f"{shown(value)} contains a NUL character", "pattern")  # databases refuse it
        return float(value) if self._type == "number" else value

    def wrong_type(self, value: Any) -> Fault:
        """Return the fault of a value of another type."""
        types = f"'{self._type}', 'null'" if self._nullable else f"'{self._type}'"
        return Fault(f"{shown(value)} is not of type {types}", "type")


def load(field: Field, document: Any) -> Any:
    """Return a validated body, or Invalid with the first of the outermost faults, in JSON Schema's words."""
    return _loaded(field, document, lambda path, fault: in_schema("JSON does not validate", path, fault))


def load_document(field: Field, document: Any) -> Any:
    """Return the same of a request without counterpart in the reference; InvalidAt names the place in the document."""
    return _loaded(field, document, lambda path, fault: InvalidAt(path, str(fault)))


def _loaded(field: Field, document: Any, refusal: Callable[[BodyPath, Fault], Invalid]) -> Any:
    faults: Faults = []
    loaded = field.load(document, (), faults)
    if faults:
        path, fault = min(faults, key=lambda entry: len(entry[0]))
        raise refusal(path, fault) from fault
    return loaded


def in_schema(subject: str, path: BodyPath, fault: Fault) -> Invalid:
    """Return an error worded as a JSON Schema validator would."""
    steps = "".join("['items']" if isinstance(step, int) else f"['properties'][{step!r}]" for step in path)
    return Invalid(f"{subject}: {fault}. Failed validating '{fault.rule}' in schema{steps}")


def missing(key: str) -> Fault:
    """Return the fault of an object without a required key."""
    return Fault(f"{key!r} is a required property", "required")


def unexpected(key: str) -> Fault:
    """Return the fault of an object with an unknown key."""
    return Fault(f"Additional properties are not allowed ({key!r} was unexpected)", "additionalProperties")


def refuse_deep(document: Any) -> None:
    """Refuse a document that nests deeper than functions that call themselves can follow; orjson counts fastest."""
    try:
        orjson.dumps(document)
    except orjson.JSONEncodeError as error:
        raise Invalid(f"The JSON is nested more than {DEEPEST} deep.") from error


def shown(value: Any) -> str:
    """Return a value as quoted in a sentence, truncated if long."""
    text = repr(value)
    return text if len(text) <= 500 else text[:500] + "..."


def whole(value: Any) -> Any:
    """Return ``4.0`` as 4, and anything else as it is: JSON has one kind of numbers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _without_none(**schema: Any) -> Json:
    return {rule: bound for rule, bound in schema.items() if bound is not None}


def number(*, minimum: float | None = None, maximum: float | None = None) -> Field:
    """Return a field for a number."""
    return Field(_without_none(type="number", minimum=minimum, maximum=maximum))


def integer(*, minimum: int = -MAX_INTEGER, maximum: int = MAX_INTEGER, **options: Any) -> Field:
    """Return a field for a whole number, written with or without ``.0``."""
    return Field({"type": "integer", "minimum": minimum, "maximum": maximum}, **options)


def text(
    *words: str, shortest: int | None = None, longest: int | None = None, pattern: str | None = None, **options: Any
) -> Field:
    """Return a field for a string, or one of some words."""
    bound, enum = pattern and f"^{pattern}$", [*map(str, words)] or None  # also of an enumeration
    rules = _without_none(type="string", maxLength=longest, minLength=shortest, pattern=bound, enum=enum)
    return Field(rules, **options)


def flag(*, default: bool | None = False) -> Field:
    """Return a field for ``true`` or ``false``."""
    return Field({"type": "boolean"}, default=default)


class Uuid(Field):
    """A uuid in any spelling that ``accepts`` takes, returned as it was sent."""

    def __init__(self, accepts: Callable[[str], object] = is_uuid_like, *, nullable: bool = False) -> None:
        super().__init__({"type": "string", "format": "uuid"}, nullable=nullable)
        self._accepts = accepts

    def read(self, value: Any) -> Any:
        """Return the uuid."""
        if not isinstance(value, str):
            raise self.wrong_type(value)
        if not self._accepts(value):
            raise Fault(f"{shown(value)} is not a 'uuid'", "format")
        return value


UUID = Uuid()

ANYTHING = Field({})
"""Any JSON value: it is not read here."""


class Array(Field):
    """A list of values of one kind."""

    def __init__(self, items: Field, *, shortest: int = 0, longest: int = MAX_ITEMS, unique: bool = False) -> None:
        rules = _without_none(minItems=shortest or None, maxItems=longest, uniqueItems=unique or None)
        super().__init__({"type": "array", "items": items.schema, **rules})
        self._items = items
        self._unique = unique

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the list with loaded items."""
        if (items := super().load(value, path, faults)) is None:
            return None
        faults_before = len(faults)
        loaded = [self._items.load(item, (*path, index), faults) for index, item in enumerate(items)]
        if self._unique and len(faults) == faults_before and len({repr(item) for item in loaded}) < len(loaded):
            faults.append((path, Fault(f"{shown(value)} has non-unique elements", "uniqueItems")))
        return loaded


class Map(Field):
    """An object whose keys are data: all match a pattern, and all values are of one kind.

    Values of other keys are of the kind ``value_field``; without it, such keys are refused.
    """

    def __init__(
        self, keys: str, values: Field, *, value_field: Field | None = None, smallest: int = 0, largest: int = MAX_ITEMS
    ) -> None:
        schema = _without_none(
            type="object",
            patternProperties={f"^{keys.replace('(?s)', '')}$": values.schema},
            additionalProperties=value_field is not None,
            minProperties=smallest or None,
            maxProperties=largest,
        )
        super().__init__(schema)
        self._keys = re.compile(keys)
        self._values = values
        self._value_field = value_field

    def read(self, value: Any) -> Any:
        """Return the object if its keys are right."""
        entries = super().read(value)
        for key in entries if self._value_field is None else ():
            if not self._keys.fullmatch(key):
                sentence = f"{shown(key)} does not match any of the regexes: '^{self._keys.pattern}$'"
                raise Fault(sentence, "additionalProperties")
        return entries

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the object with loaded values."""
        if (entries := super().load(value, path, faults)) is None:
            return None
        loaded = {}
        for key, entry in entries.items():
            field = self._values if self._value_field is None or self._keys.fullmatch(key) else self._value_field
            loaded[key] = field.load(entry, (*path, key), faults)
        return loaded


Members = Mapping[str, Field]


class Object(Field):
    """An object with these members; the names of those that may be absent end in ``?``."""

    def __init__(self, members: Members, *, nullable: bool = False) -> None:
        self.members = {name.removesuffix("?"): field for name, field in members.items()}
        self._required = [name for name in members if not name.endswith("?")]
        properties = {name: field.schema for name, field in self.members.items()}
        required = {"required": self._required} if self._required else {}
        schema = {"type": "object", "properties": properties, "additionalProperties": False, **required}
        super().__init__(schema, nullable=nullable)

    def read(self, value: Any) -> Any:
        """Return the object if its keys are right."""
        entries = super().read(value)
        for key in self._required:
            if key not in entries:
                raise missing(key)
        for key in entries:
            if key not in self.members:
                raise unexpected(key)
        return entries

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the object with loaded values, in the order of the members."""
        if (entries := super().load(value, path, faults)) is None:
            return None
        members = [(key, field) for key, field in self.members.items() if key in entries]
        return {key: field.load(entries[key], (*path, key), faults) for key, field in members}
