"""How pages show names, numbers and times: filters for templates.

Names are given by others: they are abbreviated within a tree, and invisible characters made visible.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any

from markupsafe import Markup, escape

from placement.domain.quantities import amount_in_words, with_separators
from placement.store.console.stocks import ClassTotals

BLANK = "(blank name)"

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are invisible or control the direction of text."""

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that are invisible nevertheless."""

_BETWEEN_PARTS = re.compile(r"(?<=[0-9])[-_/]+(?=[A-Za-z]{2,}[0-9])")
"""The separator between numa0 and pcie1; not within an address such as pci_0000_ca_00_0, nor in gpu-a100."""


def visible(text: str) -> str:
    """Return a text with each invisible or direction-changing character replaced by its code point: ``[U+202E]``."""
    if text.isascii() and text.isprintable() and text.strip():
        return text
    shown = "".join(
        f"[U+{ord(letter):04X}]" if letter in _FILLERS or unicodedata.category(letter) in _INVISIBLE else letter
        for letter in text
    )
    return shown if shown.strip() else BLANK


@lru_cache(maxsize=4096)
def within(name: str, root: str) -> str:
    """Return the part of a provider's name that its root's name does not contain, split into parts: numa0 / pcie1.

    A child may repeat the root's whole name, or only its first label: the host's name without domain. A name that
    repeats neither is returned unchanged.
    """
    if not root or name == root:
        return name
    for prefix, separators in ((root, " -_/:."), (root.partition(".")[0], " -_/:")):
        remainder = name.removeprefix(prefix)
        part = remainder.lstrip(separators)
        if part and part != remainder != name:
            return _BETWEEN_PARTS.sub(" / ", part)
    return name


def named(name: str, root: str = "") -> Markup:
    """Return a name as pages show it, relative to its tree if ``root``, the name of the tree's root, is given.

    Screen readers get the omitted part, and hovering shows the whole name; ``bdi`` isolates the name's direction.
    """
    short, whole = visible(within(name, root)), visible(name)
    if short == whole == name:
        return Markup("<bdi>") + name + Markup("</bdi>")
    hidden = Markup('<span class="hidden-text">{} </span>').format(visible(root)) if short != whole else ""
    return Markup('<bdi title="{}">{}{}</bdi>').format(whole, hidden, escape(short))


def owner_named(names: Mapping[str, str], id_: str) -> Markup:
    """Return what a project or user is called, with the id on hover; the id if it has no name."""
    if id_ not in names:
        return named(id_)
    return Markup('<bdi title="{}">{}</bdi>').format(visible(id_), visible(names[id_]))


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
