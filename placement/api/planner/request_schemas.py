"""marshmallow schemas of the bodies of POST /planner/v1/candidates and /planner/v1/claims.

``request_document.py`` checks what involves several fields.
"""

from typing import Any

from marshmallow import ValidationError

from placement.api.allocations import owner_id
from placement.api.candidate_query import MAX_GROUPS, SUFFIX
from placement.api.fields import Array, Exact, Integer, JsonText, Mapping, Object, Schema, Uuid, refuse, shown, whole
from placement.api.planner.request_fields import (
    AggregateFilters,
    Anything,
    Count,
    Flag,
    HintingSchema,
    Nested,
    OneOf,
    OrNull,
    ProfileField,
    Quantity,
    Traits,
)
from placement.domain.names import MAX_NAME_LENGTH, NAME_PATTERN
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


def _paths(**options: Any) -> Mapping:
    return Mapping("[^/]+(/[^/]+)*", Quantity(), **options)


def _amounts(**options: Any) -> Mapping:
    return Mapping(RESOURCE_NAME, Quantity(minimum=1), required=False, **options)


GROUP = f"{SUFFIX}|[^/]+(/[^/]+)+"
"""The suffix of a group, or a prefix of hierarchical names."""


def _names_of_groups(shortest: int = 1) -> Array:
    return Array(JsonText(pattern=GROUP), shortest=shortest, longest=MAX_GROUPS, unique=True)


class GroupSchema(HintingSchema):
    """A request group."""

    resources = _amounts()
    required = Traits()
    member_of = AggregateFilters()
    in_tree = Uuid(required=False)
    count = Count()
    at_least = Integer(minimum=1, maximum=Count.MAX, required=False, default=1)
    selector = Traits()
    vf_selector = Traits()


class AffinitySchema(Schema):
    """A joint allocation."""

    groups = _names_of_groups(shortest=2)
    primary = JsonText(pattern=GROUP, required=False)
    level = JsonText(pattern=LEVEL)
    mode = OneOf("required", "preferred", default="required")


class WithinSchema(Schema):
    """Groups that must, or should, lie in one place."""

    groups = _names_of_groups()
    level = JsonText(pattern=LEVEL)
    mode = OneOf("required", "preferred", default="required")


class ExclusiveSchema(Schema):
    """Groups whose places nobody else may use."""

    groups = _names_of_groups()
    level = JsonText(pattern=LEVEL)


class ScoreSchema(Schema):
    """How to score candidates."""

    profile = ProfileField(required=False)
    explain = Flag(required=False)


class ExpressionSchema(Schema):
    """An entry of Kubernetes' matchExpressions."""

    key = JsonText(shortest=1, longest=100)
    operator = OneOf("In", "NotIn", "Exists", "DoesNotExist", required=True)
    values = Array(JsonText(shortest=1, longest=100), longest=MAX_PARTS, required=False)


class SelectorSchema(Schema):
    """A label selector of Kubernetes."""

    matchLabels = Mapping(".{1,100}", JsonText(longest=100), required=False)  # noqa: N815
    matchExpressions = Array(Object(ExpressionSchema), longest=MAX_PARTS, required=False)  # noqa: N815


class JointAllocateSchema(Schema):
    """Koordinator's DeviceJointAllocate."""

    deviceTypes = Array(JsonText(shortest=1), longest=MAX_PARTS, unique=True)  # noqa: N815
    requiredScope = OneOf("SamePCIe", "SameNUMANode")  # noqa: N815


class HintSchema(Schema):
    """Koordinator's DeviceHint."""

    selector = OrNull(SelectorSchema)
    vfSelector = OrNull(SelectorSchema)  # noqa: N815
    allocateStrategy = OneOf("ApplyForAll", "RequestsAsCount")  # noqa: N815
    exclusivePolicy = OneOf("DeviceLevel", "PCIeLevel")  # noqa: N815


class AvoidSchema(Schema):
    """What to exclude from the search; any provider of a tree excludes the whole tree."""

    trees = Array(Uuid(), required=False)


class RequestSchema(HintingSchema):
    """A request, in the planner's terms, Koordinator's, or hierarchical names."""

    groups = Mapping(f"({SUFFIX})?", Object(GroupSchema), required=False)
    group_policy = OneOf("none", "isolate", default="none")
    same_subtree = Array(_names_of_groups(), longest=MAX_RULES, required=False)
    root_required = Traits()
    affinity = Array(Object(AffinitySchema), longest=MAX_RULES, required=False)
    within = Array(Object(WithinSchema), longest=MAX_RULES, required=False)
    exclusive = Array(Object(ExclusiveSchema), longest=MAX_RULES, required=False)
    avoid = Object(AvoidSchema, required=False)
    tree = Nested(required=False)
    paths = _paths(required=False)
    containers = Array(_paths(), longest=MAX_PARTS, required=False)
    init_containers = Array(_paths(), longest=MAX_PARTS, required=False)
    translate = Flag(required=False)
    distinct = Flag(required=False)
    requests = Mapping(".{1,255}", Integer(minimum=1), required=False)
    device_joint_allocate = Object(JointAllocateSchema, required=False)
    device_allocate_hint = Mapping(".{1,64}", Object(HintSchema), required=False)
    pod = Mapping(".{1,255}", Anything(), required=False)
    task = JsonText(shortest=1, longest=255, required=False)
    ignore_unknown = Flag(required=False)
    profile = ProfileField(required=False)
    score = Object(ScoreSchema, required=False)
    explain = Flag(required=False)


class AdditionSchema(Schema):
    """Additional, empty trees, copied from an existing one."""

    like = Uuid()
    count = Integer(minimum=1, maximum=MAX_ADDED)


# ``with`` is a Python keyword, so it cannot be an attribute.
_More = Schema.from_dict({"with": Array(Object(AdditionSchema), longest=MAX_ADDITIONS, required=False)}, name="More")


class ChangesSchema(_More):  # type: ignore[misc, valid-type]
    """A hypothetical cloud.

    Without certain trees, named by a provider or an aggregate; with additional ones; and with what consumers hold
    released.
    """

    without = Array(Uuid(), required=False)
    released = Array(Uuid(), required=False)


class LimitsSchema(Schema):
    """How many candidates to return. Claims accept and ignore it, so that one body serves both."""

    limit = Integer(minimum=1, maximum=MAX_CANDIDATES, required=False, default=PlannerRequest().limit)
    per_tree = Integer(minimum=1, maximum=MAX_PER_TREE, required=False, default=1)


class CandidatesSchema(RequestSchema, ChangesSchema, LimitsSchema):
    """The body of POST /planner/v1/candidates."""


class ConsumerSchema(Schema):
    """The consumer that is to hold the allocation."""

    uuid = Uuid()
    project_id = owner_id()
    user_id = owner_id()
    consumer_type = JsonText(pattern=NAME_PATTERN, shortest=1, longest=MAX_NAME_LENGTH)
    consumer_generation = Integer(required=False, nullable=True)


class MemberSchema(Schema):
    """One of several members; without a request of its own it uses the body's."""

    consumer = Object(ConsumerSchema)
    request = Object(RequestSchema, required=False)


class Members(Exact):
    """The number of equal members, or a list of members."""

    def __init__(self) -> None:
        super().__init__(required=False, default=1)
        self.listed = Array(Object(MemberSchema), shortest=1, longest=MAX_MEMBERS)
        self.alternatives = (Integer(minimum=1, maximum=MAX_MEMBERS), self.listed)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> int | list[Any]:  # noqa: ARG002
        value = whole(value)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_MEMBERS:
            return value
        if isinstance(value, list) and len(value) <= MAX_MEMBERS:
            return list(self.listed.deserialize(value))
        raise self._wrong_type(value)

    def _wrong_type(self, value: Any) -> ValidationError:
        return refuse(f"{shown(value)} is neither a number from 1 to {MAX_MEMBERS} nor a list of as many", "anyOf")


class TogetherSchema(Schema):
    """Members in as few places of the fabric as possible."""

    level = JsonText(pattern=FABRIC_LEVEL)
    mode = OneOf("required", "preferred", default="required")
    each = Integer(minimum=1, maximum=MAX_MEMBERS, required=False)


class ApartSchema(Schema):
    """Members in different places of the fabric."""

    level = JsonText(pattern=FABRIC_LEVEL)


class ClaimSchema(RequestSchema, LimitsSchema):
    """The body of POST /planner/v1/claims: for one consumer, for several equal ones, or for each in a list."""

    consumer = Object(ConsumerSchema, required=False)
    members = Members()
    together = Object(TogetherSchema, required=False)
    apart = Object(ApartSchema, required=False)
    all_or_nothing = Flag(required=False, default=True)
    stream = Flag(required=False)
    replaces = Flag(required=False)
    dry_run = Flag(required=False)
