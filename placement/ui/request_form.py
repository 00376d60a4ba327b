"""The request form: conversion between its fields and a query string of GET /allocation_candidates."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from placement.api.query import Query

OF_GROUPS = ("resources", "required", "member_of", "in_tree")
"""The fields of each group, which are also the prefixes of query keys."""

OF_REQUESTS = ("root_required", "same_subtree", "group_policy", "limit")
REPEATED = frozenset({"required", "member_of", "same_subtree"})
"""Fields that hold several values separated by blanks; each value becomes a parameter of its own."""

EMPTY_GROUPS = 2
"""How many empty suffixed groups the form offers; every answer offers new ones."""

_OF_GROUP = re.compile(f"({'|'.join(OF_GROUPS)})(.*)", re.DOTALL)
_AROUND_SEPARATORS = re.compile(r"\s*([,:=])\s*")


@dataclass(frozen=True, slots=True)
class GroupFields:
    """The fields of one group as shown. The unsuffixed group has an empty suffix."""

    suffix: str = ""
    resources: str = ""
    required: str = ""
    member_of: str = ""
    in_tree: str = ""


@dataclass(frozen=True, slots=True)
class FormFields:
    """The whole form: the unsuffixed group, the other groups, and what applies to the request as a whole."""

    unsuffixed: GroupFields
    groups: Sequence[GroupFields]
    root_required: str = ""
    same_subtree: str = ""
    group_policy: str = ""
    limit: str = ""


def query_string(fields: Mapping[str, Sequence[str]]) -> str:
    """Return the query string equivalent to a filled-in form.

    Args:
        fields: the values of each field in the form's order. ``suffix`` and the fields in OF_GROUPS have one value per
            group; the first group is the unsuffixed one.
    """
    pairs: list[tuple[str, str]] = []
    for position, suffix in enumerate(fields.get("suffix", ())):
        # A further group without a suffix gets one.
        own = (suffix.strip() or f"_{position}") if position else ""
        for name in OF_GROUPS:
            pairs += _pairs(name, _at(fields.get(name, ()), position), own)
    for name in OF_REQUESTS:
        pairs += _pairs(name, _at(fields.get(name, ()), 0))
    return urlencode(pairs, safe=":,!")


def form_fields(query: Query) -> FormFields:
    """Return the form fields for a query string; keys without a field are dropped."""
    suffixes = dict.fromkeys(
        match[2] for key in query if key not in OF_REQUESTS and (match := _OF_GROUP.fullmatch(key))
    )
    groups = [_group(query, suffix) for suffix in suffixes if suffix]
    empty = [GroupFields()] * EMPTY_GROUPS
    of_request = {name: " ".join(query.every(name)) for name in OF_REQUESTS}
    return FormFields(_group(query, ""), [*groups, *empty], **of_request)


def _group(query: Query, suffix: str) -> GroupFields:
    values: Iterable[tuple[str, str]] = ((name, " ".join(query.every(f"{name}{suffix}"))) for name in OF_GROUPS)
    return GroupFields(suffix, **dict(values))


def _pairs(name: str, value: str, suffix: str = "") -> Iterator[tuple[str, str]]:
    tight = _AROUND_SEPARATORS.sub(r"\1", value).strip()
    if name == "resources":
        # Other tools write VCPU=2 MEMORY_MB=512.
        tight = ",".join(tight.replace("=", ":").split())
    for part in tight.split() if name in REPEATED else [tight] if tight else []:
        yield f"{name}{suffix}", part


def _at(values: Sequence[str], position: int) -> str:
    return values[position] if position < len(values) else ""
