# ruff: noqa: ARG002 - the signatures of fields are marshmallow's
"""Fields of planner requests whose values the plain API has in query strings: traits, aggregates, counts."""

from types import MappingProxyType
from typing import Any, NamedTuple

from marshmallow import ValidationError

from placement.api.fields import Array, Exact, JsonText, refuse
from placement.api.filters import MAX_CONDITIONS, parse_member_of, parse_required
from placement.api.validation import shown
from placement.api.versions import MAXIMUM
from placement.errors import Invalid

ALL, PER_SUBTREE = "all", "per-subtree"


class Expressions(NamedTuple):
    """A conjunction: at least one of each set in ``required``, and none of ``forbidden``."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


class _Conjunction(Array):
    """A list of texts in the syntax of a query parameter; ``["in", "A", "B"]`` is equivalent to ``in:A,B``."""

    documented = MappingProxyType(
        {"type": "array", "items": {"type": ["string", "array"], "items": {"type": "string"}}}
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(JsonText(shortest=1), required=False, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if not isinstance(value, list):
            raise self._wrong_type(value)
        texts = super()._deserialize([_as_text(item) for item in value], attr, data, **options)
        if len(texts) > MAX_CONDITIONS:
            raise refuse(f"{shown(value)} has more than {MAX_CONDITIONS} items", "maxItems")
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
        is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= self.MAX
        if not is_number and value not in (ALL, PER_SUBTREE):
            raise self._wrong_type(value)
        return value  # type: ignore[no-any-return]

    def _wrong_type(self, value: Any) -> ValidationError:
        expected = f'a number from 1 to {self.MAX}, "{ALL}" or "{PER_SUBTREE}"'
        return refuse(f"{shown(value)} is not {expected}", "anyOf")
