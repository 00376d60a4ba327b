"""Query strings: decoding them, refusing what is unknown or malformed, and the parameters that select providers.

``resources``, ``required``, ``member_of`` and ``in_tree`` filter the list of providers and define the request groups of
allocation candidates. Only the syntax is checked; whether the names exist is the database's business.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl

from placement.api.fields import MAX_INTEGER, Faults, Field, Uuid, in_schema, missing, text, unexpected
from placement.api.versions import Version
from placement.domain.names import fitting_uuid, is_uuid_like
from placement.errors import Invalid

MAX_PARAMETERS = 1000
FAULTY = "Invalid query string parameters"
PREFIX = f"{FAULTY}: "


ANY = text()
_CANONICAL = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
CANONICAL_UUID, LAST_UUID = Uuid(_CANONICAL), Uuid(_CANONICAL)
"""Of a parameter that is LAST_UUID, all but the last of repeated values may be anything."""


class Query:
    """The parameters of a request, in order, with repeats."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._values: dict[str, list[str]] = {}
        for key, value in pairs:
            self._values.setdefault(key, []).append(value)

    @classmethod
    def parse(cls, query_string: bytes) -> "Query":
        """Decode a query string, or Invalid. Semicolons separate parameters, too, as in openstack-placement."""
        try:
            text = query_string.decode("utf-8").replace(";", "&")
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
        except ValueError as error:  # including UnicodeDecodeError
            raise Invalid(f"{PREFIX}{error}") from error
        if any("\0" in key or "\0" in value for key, value in pairs):
            raise Invalid(f"{PREFIX}NUL characters are not allowed")
        return cls(pairs)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def first(self, key: str) -> str | None:
        """Return the first value of a parameter, if any."""
        values = self._values.get(key)
        return values[0] if values else None

    def last(self, key: str) -> str | None:
        """Return the last value of a parameter, if any."""
        values = self._values.get(key)
        return values[-1] if values else None

    def every(self, key: str) -> list[str]:
        """Return all values of a parameter."""
        return self._values.get(key, [])

    def check(
        self, rules: Mapping[str, Field], *, patterns: Collection[str] = (), required: tuple[str, ...] = ()
    ) -> None:
        """Refuse unknown keys, and values that break their rule, in the words that clients of the reference know.

        ``patterns`` are regular expressions for further keys; ``required`` keys must be present.
        """
        for key in required:
            if key not in self._values:
                raise in_schema(FAULTY, (), missing(key))
        for key, values in self._values.items():
            rule = rules.get(key) or (ANY if any(re.fullmatch(pattern, key) for pattern in patterns) else None)
            if rule is None:
                raise _unknown_key(key, patterns)
            faults: Faults = []
            for value in values[-1:] if rule is LAST_UUID else values:
                rule.load(value, (key,), faults)
            for path, fault in faults:
                raise in_schema(FAULTY, path, fault)


def _unknown_key(key: str, patterns: Collection[str]) -> Invalid:
    if not patterns:
        return in_schema(FAULTY, (), unexpected(key))
    listed = ", ".join(f"'^{pattern}$'" for pattern in sorted(patterns))
    return Invalid(
        f"{PREFIX}{key!r} does not match any of the regexes: {listed}. Failed validating 'additionalProperties'"
    )


FORBIDDEN_TRAITS = (1, 22)
SEVERAL_MEMBER_OF = (1, 24)
FORBIDDEN_AGGREGATES = (1, 32)
ANY_TRAITS = (1, 39)

ALL_OF_ANY = list[frozenset[str]]
"""Sets of names: at least one of each set is required."""

MAX_CONDITIONS = 250
MAX_VALUES = 5000
"""Limits for one parameter. SQLite takes at most 1,000 conditions and 32,766 values per statement."""

_TRAITS = "HW_CPU_X86_VMX,CUSTOM_MAGIC"
_TRAITS_WITH_FORBIDDEN = "HW_CPU_X86_VMX,!CUSTOM_MAGIC"
_TRAITS_FORM = PREFIX + "Expected 'required' parameter value of the form: "


def parse_resources(value: str) -> dict[str, int]:
    """Return the amount of each resource class in ``VCPU:2,MEMORY_MB:1024``, or Invalid."""
    if not value.strip():
        raise _bad_resources("empty string")
    check_size("resources", value.split(","))
    return dict(_class_and_amount(item) for item in value.split(","))


def _class_and_amount(item: str) -> tuple[str, int]:
    name, *amounts = item.split(":")
    if len(amounts) != 1:
        raise _bad_resources(item)
    try:
        amount = int(amounts[0])
    except ValueError as error:
        raise Invalid(f"Requested resource {name} expected positive integer amount. Got: {amounts[0]}.") from error
    if amount < 1:
        raise Invalid(f"Requested resource {name} requires amount >= 1. Got: {amount}.")
    if amount > MAX_INTEGER:
        raise Invalid(f"Requested resource {name} requires amount <= {MAX_INTEGER}. Got: {amount}.")
    return name, amount


def _bad_resources(got: str) -> Invalid:
    return Invalid(
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        f"?resources=VCPU:2,MEMORY_MB:1024. Got: {got}."
    )


def parse_required(values: Sequence[str], version: Version) -> tuple[ALL_OF_ANY, frozenset[str]]:
    """Return the required traits, as sets of alternatives, and the forbidden ones, or Invalid.

    ``values`` are all values of one key in query order. Before 1.39, only the last one counts.
    """
    check_size("required", values)
    required: ALL_OF_ANY = []
    forbidden: set[str] = set()
    for value in values if version >= ANY_TRAITS else values[-1:]:
        if value.startswith("in:"):
            required.append(_alternative_traits(value, version))
        else:
            positive, negative = _listed_traits(value, version)
            required += [frozenset({trait}) for trait in positive]
            forbidden |= negative
    return required, frozenset(forbidden)


def _alternative_traits(value: str, version: Version) -> frozenset[str]:
    if version < ANY_TRAITS:
        raise Invalid(f"{PREFIX}The format 'in:{_TRAITS}' only supported since microversion 1.39. Got: {value}")
    traits = frozenset(trait.strip() for trait in value.removeprefix("in:").split(","))
    if "" in traits:
        raise Invalid(f"{_TRAITS_FORM}in:{_TRAITS}. Got an empty trait in: {value}")
    if any(trait.startswith("!") for trait in traits):
        raise Invalid(f"{PREFIX}The format 'in:{_TRAITS}' does not support forbidden traits. Got: {value}")
    return traits


def _listed_traits(value: str, version: Version) -> tuple[list[str], set[str]]:
    """Return what ``A,!B`` requires and forbids. As in the reference, ``!!B`` means ``!B``."""
    traits = [trait.strip() for trait in value.split(",")]
    positive = [trait for trait in traits if not trait.startswith("!")]
    negative = {trait.lstrip("!") for trait in traits if trait.startswith("!")}
    form = _TRAITS_FORM + (_TRAITS_WITH_FORBIDDEN if version >= FORBIDDEN_TRAITS else _TRAITS)
    if "" in positive or "" in negative:
        raise Invalid(f"{form}. Got an empty trait in: {value}")
    if negative and version < FORBIDDEN_TRAITS:
        raise Invalid(f"{form}. Got: {value}")
    return positive, negative


def parse_member_of(values: Sequence[str], version: Version, *, suffix: str = "") -> tuple[ALL_OF_ANY, frozenset[str]]:
    """Return the required aggregates, as sets of alternatives, and the forbidden ones, or Invalid.

    ``values`` are all values of one key; ``suffix`` is the key's suffix, for messages.
    """
    if len(values) > 1 and version < SEVERAL_MEMBER_OF:
        raise Invalid(f"Multiple member_of{suffix} parameters are not supported")
    check_size("member_of", values)
    required: ALL_OF_ANY = []
    forbidden: set[str] = set()
    for value in values:
        aggregates = _aggregates(value)
        if not value.startswith("!"):
            required.append(aggregates)
        elif version >= FORBIDDEN_AGGREGATES:
            forbidden |= aggregates
        else:
            raise Invalid(f"Forbidden member_of{suffix} parameters are not supported in the specified microversion")
    return required, frozenset(forbidden)


def _aggregates(value: str) -> frozenset[str]:
    """Return the uuids in ``U`` or ``in:U1,U2``, with or without a leading ``!``."""
    listed = value.removeprefix("!")
    if listed.startswith("in:"):
        uuids = listed.removeprefix("in:").split(",")
    elif "," in value:
        raise Invalid(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid "
            f"microversion. Got: {value}"
        )
    else:
        uuids = [listed]
    for uuid in uuids:
        if not is_uuid_like(uuid):
            raise Invalid(f"{PREFIX}Expected 'member_of' parameter to contain valid UUID(s). Got: {uuid}")
    return frozenset(fitting_uuid(uuid) for uuid in uuids)


def parse_in_tree(value: str) -> str:
    """Return the uuid of the provider that identifies the tree, or Invalid."""
    uuid = value.strip()
    if not is_uuid_like(uuid):
        raise Invalid(f"{PREFIX}Expected 'in_tree' parameter to be a format of uuid. Got: {value}")
    return uuid


def check_size(key: str, values: Sequence[str]) -> None:
    """Refuse more conditions or listed values than one statement can hold."""
    if len(values) > MAX_CONDITIONS or sum(value.count(",") + 1 for value in values) > MAX_VALUES:
        raise Invalid(f"{PREFIX}too many values for {key!r}")
