"""The bodies of POST /planner/v1/candidates and /planner/v1/claims.

``request_document.py`` checks what involves several fields.
"""

from typing import Any

from placement.api.allocations import CONSUMER_TYPE, OWNER_ID
from placement.api.candidate_query import MAX_GROUPS, SUFFIX
from placement.api.fields import (
    ANYTHING,
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
from placement.api.planner.request_fields import (
    AGGREGATES,
    AMOUNT,
    MAX_COUNT,
    PROFILE,
    TRAITS,
    Count,
    HintingObject,
    Nested,
    Quantity,
)
from placement.domain.planner_request import PlannerRequest

MAX_CANDIDATES = 1000
MAX_ADDED = 1000
MAX_ADDED_IN_ALL = 10_000
MAX_PER_TREE = 20
MAX_MEMBERS = 1000
MAX_RULES = 64
"""Of each kind: every further level or same_subtree slows down each step of the search."""
MAX_ADDITIONS = 100
MAX_PARTS = 250
"""Of a pod or a hint: containers, device types, conditions on labels."""
LEVEL = "[A-Za-z0-9_]{1,255}"
RESOURCE_NAME = "[A-Za-z0-9][A-Za-z0-9._/-]{0,254}"
"""A class, or another name of one: cpu, nvidia.com/gpu."""
FABRIC_LEVEL = "[a-z][a-z0-9_-]{0,30}"


_AMOUNTS = Map("[^/]+(/[^/]+)*", AMOUNT)
"""Amounts by hierarchical name."""

GROUP = f"{SUFFIX}|[^/]+(/[^/]+)+"
"""The suffix of a group, or a prefix of hierarchical names."""


def _groups(shortest: int = 1) -> Array:
    return Array(text(pattern=GROUP), shortest=shortest, longest=MAX_GROUPS, unique=True)


_LEVEL = text(pattern=LEVEL)
_MODE = text("required", "preferred", default="required")

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
_AFFINITY = {"groups": _groups(shortest=2), "primary?": text(pattern=GROUP), "level": _LEVEL, "mode?": _MODE}
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
    "within?": Array(Object({"groups": _groups(), "level": _LEVEL, "mode?": _MODE}), longest=MAX_RULES),
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
CHANGES = {
    "with?": Array(Object(_ADDITION), longest=MAX_ADDITIONS),
    "without?": Array(UUID),
    "released?": Array(UUID),
}
"""A hypothetical cloud.

Without certain trees, named by a provider or an aggregate; with additional, empty ones, copied from existing ones; and
with what consumers hold released.
"""
_LIMITS = {
    "limit?": integer(minimum=1, maximum=MAX_CANDIDATES, default=PlannerRequest().limit),
    "per_tree?": integer(minimum=1, maximum=MAX_PER_TREE, default=1),
}
"""How many candidates to return. Claims accept and ignore it, so that one body serves both."""

CANDIDATES = HintingObject(_LIMITS | CHANGES | REQUEST_MEMBERS)

CONSUMER = Object(
    {
        "uuid": UUID,
        "project_id": OWNER_ID,
        "user_id": OWNER_ID,
        "consumer_type": CONSUMER_TYPE,
        "consumer_generation?": integer(nullable=True),
    }
)


class MembersField(Field):
    """The number of equal members, or a list of members; one without a request of its own uses the body's."""

    def __init__(self) -> None:
        self._listed = Array(Object({"consumer": CONSUMER, "request?": REQUEST}), shortest=1, longest=MAX_MEMBERS)
        numbers = integer(minimum=1, maximum=MAX_MEMBERS)
        super().__init__({"anyOf": [numbers.schema, self._listed.schema]}, default=1)

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the number or the members."""
        is_list = isinstance(value, list) and len(value) <= MAX_MEMBERS
        return (self._listed.load if is_list else super().load)(value, path, faults)

    def read(self, value: Any) -> int:
        """Return the number."""
        number = whole(value)
        if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MAX_MEMBERS:
            return number
        sentence = f"{shown(number)} is neither a number from 1 to {MAX_MEMBERS} nor a list of as many"
        raise Fault(sentence, "anyOf")


_FABRIC_LEVEL = text(pattern=FABRIC_LEVEL)
_TOGETHER = {"level": _FABRIC_LEVEL, "mode?": _MODE, "each?": integer(minimum=1, maximum=MAX_MEMBERS)}
CLAIM_MEMBERS = (
    _LIMITS
    | REQUEST_MEMBERS
    | {
        "consumer?": CONSUMER,
        "members?": MembersField(),
        "together?": Object(_TOGETHER),
        "apart?": Object({"level": _FABRIC_LEVEL}),
        "all_or_nothing?": flag(default=True),
        "stream?": flag(),
        "replaces?": flag(),
        "dry_run?": flag(),
    }
)
"""A claim: for one consumer, for several equal ones, or for each in a list."""
