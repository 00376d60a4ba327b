# ruff: noqa: ARG002 - the signatures of fields are marshmallow's
"""Fields of planner requests: flags, words and amounts, and what the plain API has in query strings, such as traits."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from marshmallow import ValidationError

from placement.api.fields import MAX_INTEGER, Array, Exact, Integer, JsonText, Object, refuse, whole
from placement.api.filters import MAX_CONDITIONS, MAX_VALUES, parse_member_of, parse_required
from placement.api.validation import Schema, shown
from placement.api.versions import MAXIMUM
from placement.domain.quantities import QUANTITY
from placement.errors import Invalid

ALL, PER_SUBTREE = "all", "per-subtree"


class Expressions(NamedTuple):
    """A conjunction: at least one of each set in ``required``, and none of ``forbidden``."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


class _Conjunction(Array):
    """A list of texts in the syntax of a query parameter; ``["in", "A", "B"]`` is equivalent to ``in:A,B``."""

    documented = MappingProxyType(
        {
            "type": "array",
            "items": {"type": ["string", "array"], "items": {"type": "string"}, "maxItems": MAX_VALUES + 1},
            "maxItems": MAX_CONDITIONS,
        }
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(JsonText(shortest=1), longest=MAX_CONDITIONS, required=False, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if not isinstance(value, list):
            raise self._wrong_type(value)
        texts = super()._deserialize([_as_text(item) for item in value], attr, data, **options)
        try:
            return self._parsed(texts)
        except Invalid as wrong:
            raise refuse(wrong.message, "format") from wrong

    def _parsed(self, texts: list[str]) -> Expressions:
        raise NotImplementedError


def _as_text(item: Any) -> Any:
    is_list = isinstance(item, list) and len(item) > 1 and all(isinstance(part, str) for part in item)
    if is_list and item[0] == "in" and not any("," in part for part in item):
        return "in:" + ",".join(item[1:])
    return item


class Traits(_Conjunction):
    """``["A", "!B", "in:C,D"]``."""

    def _parsed(self, texts: list[str]) -> Expressions:
        required, forbidden = parse_required(texts, MAXIMUM)
        return Expressions(tuple(dict.fromkeys(required)), forbidden)


class AggregateFilters(_Conjunction):
    """``["<uuid>", "!<uuid>", "in:<uuid>,<uuid>"]``."""

    def _parsed(self, texts: list[str]) -> Expressions:
        required, forbidden = parse_member_of(texts, MAXIMUM)
        return Expressions(tuple(dict.fromkeys(required)), forbidden)


class Count(Exact):
    """A number of providers, ``"all"`` or ``"per-subtree"``."""

    MAX = 1000
    documented = MappingProxyType(
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX}, {"enum": [ALL, PER_SUBTREE]}]}
    )

    def __init__(self) -> None:
        super().__init__(required=False, default=1)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> int | str:
        value = whole(value)
        is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= self.MAX
        if not is_number and value not in (ALL, PER_SUBTREE):
            raise self._wrong_type(value)
        return value  # type: ignore[no-any-return]

    def _wrong_type(self, value: Any) -> ValidationError:
        expected = f'a number from 1 to {self.MAX}, "{ALL}" or "{PER_SUBTREE}"'
        return refuse(f"{shown(value)} is not {expected}", "anyOf")


class Flag(Exact):
    """``true`` or ``false``; an optional flag defaults to false unless stated otherwise."""

    kind = "boolean"

    def __init__(self, *, required: bool = True, default: bool = False) -> None:
        super().__init__(required=required, default=None if required else default)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> bool:
        if not isinstance(value, bool):
            raise self._wrong_type(value)
        return value


class OneOf(JsonText):
    """One of a fixed set of words."""

    def __init__(self, *words: str, required: bool = False, default: str | None = None) -> None:
        super().__init__(required=required, default=default)
        self.words = tuple(map(str, words))  # also of an enumeration, which would be shown as such

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        text = super()._deserialize(value, attr, data, **options)
        if text not in self.words:
            raise refuse(f"{shown(text)} is not one of {list(self.words)}", "enum")
        return text


class Anything(Exact):
    """Any JSON value, for parts of foreign documents that are not read here."""

    documented: Mapping[str, Any] = MappingProxyType({})

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **options: Any) -> Any:
        """Return the value unchanged."""
        return value


class Nested(Exact):
    """Nested demands: a level has labels, a label has amounts of resources and further levels."""

    kind = "object"
    DEEPEST = 64

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> dict[str, int | str]:
        """Return amounts by hierarchical name."""
        if not isinstance(value, dict):
            raise self._wrong_type(value)
        return dict(self._names(value, ()))

    def _names(self, demand: dict[str, Any], path: tuple[str, ...]) -> list[tuple[str, int | str]]:
        amounts = []
        for key, inner in demand.items():
            self._check(key, path)
            if isinstance(inner, dict):
                amounts += self._inside(inner, (*path, key))
            else:
                amounts.append(("/".join((*path, key)), Quantity().deserialize(inner)))
        return amounts

    def _inside(self, labels: dict[str, Any], path: tuple[str, ...]) -> list[tuple[str, int | str]]:
        amounts = []
        for label, demand in labels.items():
            self._check(label, path)
            if not isinstance(demand, dict):
                raise refuse(f"{shown('/'.join((*path, label)))}: {shown(demand)} is not of type 'object'", "type")
            amounts += self._names(demand, (*path, label))
        return amounts

    def _check(self, name: str, path: tuple[str, ...]) -> None:
        if "/" in name or not name or len(path) > self.DEEPEST:
            raise refuse(f"{shown('/'.join((*path, name)))}: a name is empty, has a slash or is too deep", "pattern")


class Quantity(Exact):
    """A whole number, or a text: ``"4"``, ``"1GiB"``."""

    def __init__(self, *, minimum: int = 0, maximum: int = MAX_INTEGER) -> None:
        super().__init__()
        self._number = Integer(minimum=minimum, maximum=maximum)
        pattern = re.sub(r"\?P<\w+>", "", QUANTITY)
        self.documented = {"anyOf": [{"type": "integer", "minimum": minimum}, {"type": "string", "pattern": pattern}]}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> int | str:
        if isinstance(value, str) and re.fullmatch(QUANTITY, value):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong_type(value)
        return int(self._number.deserialize(value))

    def _wrong_type(self, value: Any) -> ValidationError:
        return refuse(f"{shown(value)} is not an amount; write a whole number, or bytes such as 8Gi", "pattern")


class ProfileField(Exact):
    """A profile's name, or a profile spelled out as in the planner file."""

    documented = MappingProxyType({"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]})

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if not isinstance(value, dict | str):
            raise self._wrong_type(value)
        return value if isinstance(value, dict) else JsonText(shortest=1).deserialize(value)

    def _wrong_type(self, value: Any) -> ValidationError:
        return refuse(f"{shown(value)} is neither the name of a profile nor a profile", "anyOf")


class OrNull(Object):
    """An object, or null as if absent, as Kubernetes serialises empty values."""

    def __init__(self, schema: type[Schema]) -> None:
        super().__init__(schema, required=False)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **options: Any) -> Any:
        """Validate one object."""
        return None if value is None else super().deserialize(value, attr, data, **options)
