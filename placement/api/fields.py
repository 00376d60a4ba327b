# ruff: noqa: ARG002 - the signatures of fields are marshmallow's
"""JSON-exact marshmallow fields: ``1.0`` is an integer, ``true`` is not, ``"1.5"`` is not a number.

marshmallow's own fields convert generously; the API must not. Each field reports Faults in the wording of JSON Schema
validators (see api/validation.py).
"""

import re
from typing import Any

from marshmallow import ValidationError, fields, missing

from placement.api.validation import Fault, shown
from placement.domain.names import is_uuid_like

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
