"""Suggestions ("Did you mean"): requests whose unknown names are replaced by similar ones that this cloud has."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from placement.services.console.names_in_use import NamesInUse

_OF_CLASSES = re.compile(r"(resources[\w-]*=)([^&]*)")
_OF_TRAITS = re.compile(r"((?:required[\w-]*|root_required)=)([^&]*)")
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
MAX_SUGGESTIONS = 3


class Meant(NamedTuple):
    """A name as written, the similar name, and the request that uses it instead."""

    written: str
    name: str
    query: str


def meant(query: str, known: NamesInUse) -> list[Meant]:
    """Return suggestions for the names in a query string that the cloud does not have."""
    of_classes, of_traits = _OF_CLASSES.findall(query), _OF_TRAITS.findall(query)
    return [
        *_like(query, [value for _, value in of_classes], known.classes),
        *_like(query, [value for _, value in of_traits], known.traits),
    ][:MAX_SUGGESTIONS]


def _like(query: str, values: Sequence[str], known: Sequence[str]) -> list[Meant]:
    written = dict.fromkeys([name for value in values for name in _NAME.findall(value)])
    return [
        Meant(name, like, re.sub(rf"\b{re.escape(name)}\b", like, query))
        for name in written
        if name not in known
        for like in get_close_matches(name, known, n=1)
    ]
