"""The bodies of POST /planner/v1/candidates and /planner/v1/claims, and the fields that they consist of.

A hint says what to write instead of a known key in the wrong place. ``request_document.py`` checks what involves
several fields.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import orjson

from placement.allocators.strategy_fit import Profile
from placement.api.candidate_query import MAX_GROUPS, SUFFIX
from placement.api.fields import (
    ANYTHING,
    MAX_INTEGER,
    UUID,
    Array,
    BodyPath,
    Fault,
    Faults,
    Field,
    Map,
    Object,
    flag,
    integer,
    shown,
    text,
    whole,
)
from placement.api.query import MAX_CONDITIONS, MAX_VALUES, parse_member_of, parse_required
from placement.api.versions import MAXIMUM, Version
from placement.domain.device_types import DeviceSettings
from placement.domain.planner_request import PlannerRequest
from placement.domain.quantities import QUANTITY
from placement.errors import Invalid
from placement.formats.volcano import HIERARCHY, profile_of_arguments
from placement.settings.planner.document import IMPORT_HINT, SCHEDULER_KEYS

_POLICIES = {policy.name for policy in fields(Profile) if policy.init}
SCORING_KEYS = SCHEDULER_KEYS | _POLICIES | {"compactness", "resourceWeight"}
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


class HintingObject(Object):
    """An object that suggests what to write instead of certain unknown keys."""

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the object with loaded values; a hint replaces all messages about unknown keys."""
        for key, hint in _hints(value):
            if key not in self.members:
                fitting = {name: member for name, member in value.items() if name in self.members}
                loaded = super().load(fitting, path, faults)
                faults.append(((*path, key), Fault(hint, "additionalProperties")))
                return loaded
        return super().load(value, path, faults)


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
    amounts = resources if isinstance(resources, Mapping) and resources else {"VCPU": 2}
    return f'A group requests resources: "groups": {_line({"": {"resources": amounts}})}.'


def _line(value: Any) -> str:
    """Return a value in one line of JSON, unless that is long."""
    line = orjson.dumps(value).decode()
    return line if len(line) <= LONGEST_LINE else "{...}"


def _are_weights(resources: Any) -> bool:
    """Tell whether these are strategies by resource rather than amounts."""
    entries = resources.values() if isinstance(resources, Mapping) else ()
    return any(isinstance(entry, Mapping) and entry.keys() & {"type", "weight"} for entry in entries)


ALL, PER_SUBTREE = "all", "per-subtree"
MAX_COUNT = 1000


class Expressions(NamedTuple):
    """A conjunction: at least one of each set in ``required``, and none of ``forbidden``."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


class Conjunction(Array):
    """A list of texts in the syntax of a query parameter; ``["in", "A", "B"]`` is equivalent to ``in:A,B``."""

    def __init__(self, parse: Callable[[Sequence[str], Version], tuple[list[frozenset[str]], frozenset[str]]]) -> None:
        super().__init__(text(shortest=1), longest=MAX_CONDITIONS)
        self.schema["items"] = {"type": ["string", "array"], "items": {"type": "string"}, "maxItems": MAX_VALUES + 1}
        self._parse = parse

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the Expressions."""
        faults_before = len(faults)
        texts = super().load([_as_text(item) for item in value] if isinstance(value, list) else value, path, faults)
        if len(faults) > faults_before:
            return None
        try:
            required, forbidden = self._parse(texts, MAXIMUM)
        except Invalid as wrong:
            faults.append((path, Fault(wrong.message, "format")))
            return None
        return Expressions(tuple(dict.fromkeys(required)), forbidden)


def _as_text(item: Any) -> Any:
    is_list = isinstance(item, list) and len(item) > 1 and all(isinstance(part, str) for part in item)
    if is_list and item[0] == "in" and not any("," in part for part in item):
        return "in:" + ",".join(item[1:])
    return item


TRAITS = Conjunction(parse_required)
"""``["A", "!B", "in:C,D"]``."""

AGGREGATES = Conjunction(parse_member_of)
"""``["<uuid>", "!<uuid>", "in:<uuid>,<uuid>"]``."""


class Count(Field):
    """A number of providers, ``"all"`` or ``"per-subtree"``."""

    def __init__(self) -> None:
        words = {"enum": [ALL, PER_SUBTREE]}
        super().__init__({"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_COUNT}, words]}, default=1)

    def read(self, value: Any) -> int | str:
        """Return the number or the word."""
        count = whole(value)
        if not is_from_1_to(MAX_COUNT, count) and count not in (ALL, PER_SUBTREE):
            expected = f'a number from 1 to {MAX_COUNT}, "{ALL}" or "{PER_SUBTREE}"'
            raise Fault(f"{shown(count)} is not {expected}", "anyOf")
        return count  # type: ignore[no-any-return]


def is_from_1_to(maximum: int, number: Any) -> bool:
    """Tell whether a value is a whole number in a range."""
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= maximum


class Nested(Field):
    """Nested demands: a level has labels, a label has amounts of resources and further levels."""

    DEEPEST = 64

    def __init__(self) -> None:
        super().__init__({"type": "object"})

    def read(self, value: Any) -> dict[str, int | str]:
        """Return amounts by hierarchical name."""
        return dict(self._names(super().read(value), ()))

    def _names(self, demand: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, int | str]]:
        for key, inner in demand.items():
            self._check(key, path)
            if not isinstance(inner, dict):
                yield "/".join((*path, key)), AMOUNT.read(inner)
                continue
            for label, labelled in inner.items():
                self._check(label, (*path, key))
                if not isinstance(labelled, dict):
                    name = shown("/".join((*path, key, label)))
                    raise Fault(f"{name}: {shown(labelled)} is not of type 'object'", "type")
                yield from self._names(labelled, (*path, key, label))

    def _check(self, name: str, path: tuple[str, ...]) -> None:
        if "/" in name or not name or len(path) > self.DEEPEST:
            raise Fault(f"{shown('/'.join((*path, name)))}: a name is empty, has a slash or is too deep", "pattern")


class Quantity(Field):
    """A whole number, or a text: ``"4"``, ``"1GiB"``."""

    def __init__(self, *, minimum: int = 0, maximum: int = MAX_INTEGER) -> None:
        pattern = re.sub(r"\?P<\w+>", "", QUANTITY)
        whole_number = {"type": "integer", "minimum": minimum}
        super().__init__({"anyOf": [whole_number, {"type": "string", "pattern": pattern}]})
        self._number = integer(minimum=minimum, maximum=maximum)

    def read(self, value: Any) -> int | str:
        """Return the number or the text."""
        if isinstance(value, str) and re.fullmatch(QUANTITY, value):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            sentence = f"{shown(value)} is not an amount; write a whole number, or bytes such as 8Gi"
            raise Fault(sentence, "pattern")
        return int(self._number.read(value))


AMOUNT = Quantity()


class ProfileField(Field):
    """A profile's name, or a profile spelled out as in the planner file."""

    def read(self, value: Any) -> Any:
        """Return the name, or the profile as it is written."""
        if not isinstance(value, dict | str):
            raise Fault(f"{shown(value)} is neither the name of a profile nor a profile", "anyOf")
        return value if isinstance(value, dict) else text(shortest=1).read(value)


PROFILE = ProfileField({"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]})


MAX_CANDIDATES = 1000
MAX_ADDED = 1000
MAX_ADDED_IN_ALL = 10_000
MAX_PER_TREE = 20
MAX_RULES = 64
"""Of each kind: every further level or same_subtree slows down each step of the search."""
MAX_ADDITIONS = 100
MAX_PARTS = 250
"""Of a pod or a hint: containers, device types, conditions on labels."""
LEVEL = "[A-Za-z0-9_]{1,255}"
RESOURCE_NAME = "[A-Za-z0-9][A-Za-z0-9._/-]{0,254}"
"""A class, or another name of one: cpu, nvidia.com/gpu."""


_AMOUNTS = Map("[^/]+(/[^/]+)*", AMOUNT)
"""Amounts by hierarchical name."""

GROUP = f"{SUFFIX}|[^/]+(/[^/]+)+"
"""The suffix of a group, or a prefix of hierarchical names."""


def _groups(shortest: int = 1) -> Array:
    return Array(text(pattern=GROUP), shortest=shortest, longest=MAX_GROUPS, unique=True)


_LEVEL = text(pattern=LEVEL)
MODE = text("required", "preferred", default="required")

_GROUP = HintingObject(
    {
        "resources?": Map(RESOURCE_NAME, Quantity(minimum=1)),
        "required?": TRAITS,
        "member_of?": AGGREGATES,
        "in_tree?": UUID,
        "count?": Count(),
        "at_least?": integer(minimum=1, maximum=MAX_COUNT, default=1),
        "selector?": TRAITS,
        "vf_selector?": TRAITS,
    }
)
_AFFINITY = {"groups": _groups(shortest=2), "primary?": text(pattern=GROUP), "level": _LEVEL, "mode?": MODE}
_SCORE = {"profile?": PROFILE, "explain?": flag()}

_EXPRESSION = {
    "key": text(shortest=1, longest=100),
    "operator": text("In", "NotIn", "Exists", "DoesNotExist"),
    "values?": Array(text(shortest=1, longest=100), longest=MAX_PARTS),
}
_SELECTOR = Object(
    {
        "matchLabels?": Map(".{1,100}", text(longest=100)),
        "matchExpressions?": Array(Object(_EXPRESSION), longest=MAX_PARTS),
    },
    nullable=True,
)
"""A label selector; Kubernetes writes an empty one as null."""
_JOINT_ALLOCATE = {
    "deviceTypes": Array(text(shortest=1), longest=MAX_PARTS, unique=True),
    "requiredScope?": text("SamePCIe", "SameNUMANode"),
}
_HINT = {
    "selector?": _SELECTOR,
    "vfSelector?": _SELECTOR,
    "allocateStrategy?": text("ApplyForAll", "RequestsAsCount"),
    "exclusivePolicy?": text("DeviceLevel", "PCIeLevel"),
}

REQUEST_MEMBERS = {
    "groups?": Map(f"({SUFFIX})?", _GROUP),
    "group_policy?": text("none", "isolate", default="none"),
    "same_subtree?": Array(_groups(), longest=MAX_RULES),
    "root_required?": TRAITS,
    "affinity?": Array(Object(_AFFINITY), longest=MAX_RULES),
    "within?": Array(Object({"groups": _groups(), "level": _LEVEL, "mode?": MODE}), longest=MAX_RULES),
    "exclusive?": Array(Object({"groups": _groups(), "level": _LEVEL}), longest=MAX_RULES),
    "avoid?": Object({"trees?": Array(UUID)}),
    "tree?": Nested(),
    "paths?": _AMOUNTS,
    "containers?": Array(_AMOUNTS, longest=MAX_PARTS),
    "init_containers?": Array(_AMOUNTS, longest=MAX_PARTS),
    "translate?": flag(),
    "distinct?": flag(),
    "requests?": Map(".{1,255}", integer(minimum=1)),
    "device_joint_allocate?": Object(_JOINT_ALLOCATE),
    "device_allocate_hint?": Map(".{1,64}", Object(_HINT)),
    "pod?": Map(".{1,255}", ANYTHING),
    "task?": text(shortest=1, longest=255),
    "ignore_unknown?": flag(),
    "profile?": PROFILE,
    "score?": Object(_SCORE),
    "explain?": flag(),
}
"""A request, in the planner's terms, Koordinator's, or hierarchical names."""
REQUEST = HintingObject(REQUEST_MEMBERS)

_ADDITION = {"like": UUID, "count": integer(minimum=1, maximum=MAX_ADDED)}
CHANGES = {"with?": Array(Object(_ADDITION), longest=MAX_ADDITIONS), "without?": Array(UUID), "released?": Array(UUID)}
"""A hypothetical cloud.

Without certain trees, named by a provider or an aggregate; with additional, empty ones, copied from existing ones; and
with what consumers hold released.
"""
LIMITS = {
    "limit?": integer(minimum=1, maximum=MAX_CANDIDATES, default=PlannerRequest().limit),
    "per_tree?": integer(minimum=1, maximum=MAX_PER_TREE, default=1),
}
"""How many candidates to return. Claims accept and ignore it, so that one body serves both."""

CANDIDATES = HintingObject(LIMITS | CHANGES | REQUEST_MEMBERS)
