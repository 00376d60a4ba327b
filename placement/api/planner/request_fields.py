# ruff: noqa: ARG002 - the signatures of fields are marshmallow's
"""Fields of planner requests: flags, words and amounts, what the plain API has in query strings, and hints.

A hint says what to write instead of a known key in the wrong place.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from marshmallow import ValidationError

from placement.api.fields import (
    MAX_INTEGER,
    Array,
    Exact,
    Fault,
    Integer,
    JsonText,
    Object,
    Schema,
    refuse,
    shown,
    whole,
)
from placement.api.query import MAX_CONDITIONS, MAX_VALUES, parse_member_of, parse_required
from placement.api.versions import MAXIMUM
from placement.domain.device_types import DeviceSettings
from placement.domain.quantities import QUANTITY
from placement.errors import Invalid
from placement.settings.planner.document import HIERARCHY, IMPORT_HINT, SCHEDULER_KEYS
from placement.settings.planner.volcano import profile_of_arguments

SCORING_KEYS = SCHEDULER_KEYS | {"fit", "sra", "proportional", "compactness", "resourceWeight"}
"""Keys about scoring, in Volcano's terms or those of profiles."""

A_PROFILE = {
    "fit": {"weight": 10, "resources": {"PGPU": {"type": "MostAllocated", "weight": 2}}},
    "sra": {"weight": 10, "resources": {"PGPU": 1}},
}
FOR_EACH_RESOURCE = (
    "A profile defines whether to fill or spread each resource: "
    '"profile": {"fit": {"resources": {"PGPU": {"type": "MostAllocated"}, "VCPU": {"type": "LeastAllocated"}}}}.'
)
POD_KEYS = {"apiVersion", "kind", "metadata", "spec"}
AROUND_A_POD = 'A pod, or what has its template, goes under the key pod: {{"pod": {pod}}}.'
LONGEST_LINE = 300


class HintingSchema(Schema):
    """A schema that suggests what to write instead of certain unknown keys."""

    def handle_error(self, error: ValidationError, data: Any, **_options: Any) -> None:
        """Replace all messages about unknown keys by a hint, if there is one."""
        for key, hint in _hints(data):
            if isinstance(error.messages, dict) and key not in self.fields:
                fitting = {name: messages for name, messages in error.messages.items() if name in self.fields}
                error.messages = {**fitting, key: [Fault(hint, "additionalProperties")]}
                return


def _hints(body: Any) -> Iterator[tuple[str, str]]:
    for key, value in body.items() if isinstance(body, Mapping) else ():
        if key in SCORING_KEYS or (key == "resources" and _are_weights(value)):
            yield key, profile_hint(body)
        elif key in {"scorer", "scorers"}:
            yield key, FOR_EACH_RESOURCE
        elif key == "resources":
            yield key, _line_for_resources(value)
        elif key in POD_KEYS:
            yield key, AROUND_A_POD.format(pod=_line({name: body[name] for name in body if name in POD_KEYS}))
        elif key.startswith(HIERARCHY):
            yield key, f"Queues stand in planner.yaml: {IMPORT_HINT}"


def profile_hint(pasted: Mapping[str, Any]) -> str:
    """Return the profile that arguments of Volcano's scheduler mean, in a sentence; an example if they mean none."""
    profile = profile_of_arguments(pasted, DeviceSettings()) or A_PROFILE
    line = f'"profile": "NAME" of planner.yaml, or "profile": {orjson.dumps(profile).decode()}'
    return f"A profile defines how candidates are scored: {line}. {IMPORT_HINT}"


def _line_for_resources(resources: Any) -> str:
    """Return what to write instead of resources that are not in a group, with what they are."""
    if isinstance(resources, Mapping) and resources.keys() & {"requests", "limits"}:
        return AROUND_A_POD.format(pod=_line({"spec": {"containers": [{"resources": resources}]}}))
    asked = resources if isinstance(resources, Mapping) and resources else {"VCPU": 2}
    return f'A group requests resources: "groups": {_line({"": {"resources": asked}})}.'


def _line(value: Any) -> str:
    """Return a value in one line of JSON, unless that is long."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= LONGEST_LINE else "{...}"


def _are_weights(resources: Any) -> bool:
    """Tell whether these are strategies by resource rather than amounts."""
    entries = resources.values() if isinstance(resources, Mapping) else ()
    return any(isinstance(entry, Mapping) and entry.keys() & {"type", "weight"} for entry in entries)


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
