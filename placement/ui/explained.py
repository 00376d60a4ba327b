"""Explanations for people: the amounts in their sentences get readable units, and so do the facts about providers."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flask import Flask
from markupsafe import Markup, escape

from placement.ui.numbers import amount, number

_AMOUNT = re.compile(r"(?<![\w.:-])(\d{1,20}) ([A-Z][A-Z0-9_]*)\b")
"""``65536 MEMORY_MB``"""

_COUNT = re.compile(r"(?<![\w.:-])(\d{4,20})(?![\w-]|[.:]\w)")
_LARGEST = re.compile(r"(can be had of one is )(\d{1,20})")

IDENTITY = ("uuid", "name", "root_provider_uuid")


def in_units(text: str, value: str = "") -> Markup:
    """Return a sentence with its amounts in suitable units, and the exact values on hover.

    Args:
        text: the sentence.
        value: the value of its condition, such as ``MEMORY_MB:65536``: the class of amounts that name none.
    """
    class_name = value.partition(":")[0]
    if "," not in value:
        text = _LARGEST.sub(rf"\1\2 {class_name}", text)
    parts, end = [], 0
    for found in _AMOUNT.finditer(text):
        parts += [_counts(text[end : found.start()]), amount(int(found[1]), found[2]), escape(f" {found[2]}")]
        end = found.end()
    return Markup("").join([*parts, _counts(text[end:])])


def _counts(text: str) -> Markup:
    return escape(_COUNT.sub(lambda found: number(int(found[1])), text))


def facts(provider: Mapping[str, Any], value: str = "") -> Iterator[tuple[str, Markup]]:
    """Yield what an explanation states about a provider, as pairs such as ``free`` and an amount."""
    class_name = value.partition(":")[0] if "," not in value else ""
    for key, told in provider.items():
        if key not in IDENTITY:
            yield key.replace("_", " "), amount(told, class_name) if isinstance(told, int) else escape(told)


def install_explained(app: Flask) -> None:
    """Register the filters for templates."""
    app.jinja_env.filters.update(in_units=in_units, facts=facts)
