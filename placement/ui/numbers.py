"""How pages format numbers, alone and in the sentences of explanations: filters for templates."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from markupsafe import Markup, escape

from placement.domain.quantities import amount_in_words, with_separators
from placement.store.console.stocks import ClassTotals

NOTHING = "\N{EN DASH}"


_AMOUNT = re.compile(r"(?<![\w.:-])(\d{1,20}) ([A-Z][A-Z0-9_]*)\b")
"""``65536 MEMORY_MB``"""

_COUNT = re.compile(r"(?<![\w.:-])(\d{4,20})(?![\w-]|[.:]\w)")

_LARGEST = re.compile(r"(can be had of one is )(\d{1,20})")

IDENTITY = ("uuid", "name", "root_provider_uuid")


def number(value: float | None) -> str:
    """Return a number with thousands separators; a dash where a row has none."""
    return NOTHING if value is None else with_separators(value)


def amount(value: float, class_name: str) -> Markup:
    """Return the same as HTML, with the exact value on hover."""
    words = amount_in_words(value, class_name)
    exact = with_separators(value)
    if words == exact:
        return Markup("{}").format(words)
    return Markup('<data value="{}" title="{} {}">{}</data>').format(value, exact, class_name, words)


def one_scale(trees: Iterable[Sequence[ClassTotals]]) -> dict[str, float]:
    """Return the largest total of each class among some trees, as the scale of their bars."""
    largest: dict[str, float] = {}
    for stock in chain.from_iterable(trees):
        largest[stock.class_name] = max(largest.get(stock.class_name, 0), stock.capacity + stock.set_aside)
    return largest


def percent(part: float, whole: float) -> str:
    """Return a fraction in percent, rounded to 0 % or 100 % only where that is exact."""
    if whole <= 0:
        return NOTHING
    share = 100 * part / whole
    if 0 < share < 1:
        return "<1 %"
    return f"{99 if 99 < share < 100 else round(share)} %"


def timestamp(value: datetime | None) -> str:
    """Return a date from the database, which is UTC, to the minute."""
    return NOTHING if value is None else f"{value:%Y-%m-%d %H:%M} UTC"


def ago(value: datetime | None) -> str:
    """Return how long ago a date from the database was, in its largest unit."""
    if value is None:
        return NOTHING
    seconds = max(0, int((datetime.now(UTC).replace(tzinfo=None) - value).total_seconds()))
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def in_units(text: str, value: str = "") -> Markup:
    """Return a sentence with its amounts in suitable units, and the exact values on hover.

    ``value`` is that of its condition, such as ``MEMORY_MB:65536``: the class of amounts that name none.
    """
    class_name = value.partition(":")[0]
    if "," not in value:
        text = _LARGEST.sub(rf"\1\2 {class_name}", text)
    parts, end = [], 0
    for match in _AMOUNT.finditer(text):
        parts += [_counts(text[end : match.start()]), amount(int(match[1]), match[2]), escape(f" {match[2]}")]
        end = match.end()
    return Markup("").join([*parts, _counts(text[end:])])


def _counts(text: str) -> Markup:
    return escape(_COUNT.sub(lambda match: with_separators(int(match[1])), text))


def facts(provider: Mapping[str, Any], value: str = "") -> Iterator[tuple[str, Markup]]:
    """Yield what an explanation states about a provider, as pairs such as ``free`` and an amount."""
    class_name = value.partition(":")[0] if "," not in value else ""
    for key, fact in provider.items():
        if key not in IDENTITY:
            yield key.replace("_", " "), amount(fact, class_name) if isinstance(fact, int) else escape(fact)
