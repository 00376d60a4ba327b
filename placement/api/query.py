"""Query strings: decoding them and refusing unknown or malformed parameters. api/filters.py parses the values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from placement.errors import Invalid

MAX_PARAMETERS = 1000
PREFIX = "Invalid query string parameters: "


@dataclass(frozen=True, slots=True)
class ValueRule:
    """Constraints on the value of one parameter; None means unconstrained.

    With ``only_last_counts``, all but the last of repeated values may be anything.
    """

    pattern: str | None = None
    shortest: int | None = None
    longest: int | None = None
    choices: tuple[str, ...] | None = None
    uuid: bool = False
    only_last_counts: bool = False

    def fault(self, value: str) -> str | None:
        """Return what is wrong with a value, in the wording of JSON Schema validators, or None."""
        if self.shortest is not None and len(value) < self.shortest:
            return f"{value!r} should be non-empty. Failed validating 'minLength'"
        if self.longest is not None and len(value) > self.longest:
            return f"{value!r} is too long. Failed validating 'maxLength'"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return f"{value!r} does not match '^{self.pattern}$'. Failed validating 'pattern'"
        if self.choices is not None and value not in self.choices:
            return f"{value!r} is not one of {list(self.choices)}. Failed validating 'enum'"
        if self.uuid and not _is_canonical_uuid(value):
            return f"{value!r} is not a 'uuid'. Failed validating 'format'"
        return None


ANY = ValueRule()
UUID = ValueRule(uuid=True)


def _is_canonical_uuid(value: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value) is not None


class Query:
    """The parameters of a request, in order, with repeats."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._values: dict[str, list[str]] = {}
        for key, value in pairs:
            self._values.setdefault(key, []).append(value)

    @classmethod
    def parse(cls, query_string: bytes) -> "Query":
        """Decode a query string. Parameters may also be separated by semicolons, as in openstack-placement.

        Raises:
            Invalid: it is not UTF-8, contains NUL characters or has too many parameters.
        """
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
        self,
        rules: Mapping[str, ValueRule],
        *,
        patterns: Mapping[str, ValueRule] | None = None,
        required: tuple[str, ...] = (),
    ) -> None:
        """Refuse unknown keys and values that break their rule.

        Args:
            rules: the known keys.
            patterns: regular expressions for further keys; an unknown key is then reported as matching none of them.
            required: keys that must be present.

        Raises:
            Invalid: with the wording that clients of the reference know.
        """
        for key in required:
            if key not in self._values:
                raise Invalid(f"{PREFIX}{key!r} is a required property. Failed validating 'required' in schema")
        for key, values in self._values.items():
            rule = rules.get(key) or _pattern_rule(key, patterns or {})
            if rule is None:
                raise Invalid(PREFIX + _unknown_key(key, patterns))
            for value in values[-1:] if rule.only_last_counts else values:
                if fault := rule.fault(value):
                    raise Invalid(f"{PREFIX}{fault} in schema['properties'][{key!r}]")


def _pattern_rule(key: str, patterns: Mapping[str, ValueRule]) -> ValueRule | None:
    for pattern, rule in patterns.items():
        if re.fullmatch(pattern, key):
            return rule
    return None


def _unknown_key(key: str, patterns: Mapping[str, ValueRule] | None) -> str:
    if patterns:
        shown = ", ".join(f"'^{pattern}$'" for pattern in sorted(patterns))
        return f"{key!r} does not match any of the regexes: {shown}. Failed validating 'additionalProperties'"
    return (
        f"Additional properties are not allowed ({key!r} was unexpected). "
        "Failed validating 'additionalProperties' in schema"
    )
