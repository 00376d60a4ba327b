"""The conditions of a request by name, as explanations mention them, and plans with only some of them.

The conditions that only the search can check are added stage by stage.
"""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from placement.domain.candidate_request import UNSUFFIXED, CandidateRequest, RequestGroup
from placement.domain.search_plan import Plan

LOOSE = (UNSUFFIXED,)
"""The groups of a condition of the unsuffixed group."""


class ConditionKind(StrEnum):
    """What a condition is about."""

    # On a single provider, in the order in which providers are counted.
    INVENTORY = "inventory"
    CAPACITY = "capacity"
    MIN_UNIT = "min_unit"
    MAX_UNIT = "max_unit"
    STEP_SIZE = "step_size"
    REQUIRED = "required"
    FORBIDDEN = "forbidden"
    MEMBER_OF = "member_of"
    FORBIDDEN_AGGREGATES = "forbidden_aggregates"
    IN_TREE = "in_tree"
    EMPTY_GROUP = "empty_group"
    # On a tree, in the order in which trees are counted.
    EVERY_GROUP = "every_group"
    ROOT_REQUIRED = "root_required"
    ROOT_FORBIDDEN = "root_forbidden"
    TRAIT_PLACEMENT = "trait_placement"
    GROUP_POLICY = "group_policy"
    SAME_SUBTREE = "same_subtree"
    COMBINED_CAPACITY = "combined_capacity"
    ONE_PROVIDER_PER_TREE = "one_provider_per_tree"
    # On several providers at once, in planner requests.
    HELD = "held_exclusively"
    PATHS = "paths"
    DEVICE = "device"
    COUNT = "count"
    WITHIN = "within"
    AFFINITY = "affinity"
    EXCLUSIVE = "exclusive"
    DISTINCT = "distinct"
    TRANSLATE = "translate"
    # On a tree, by the operator's profile.
    PROPORTION = "proportional"
    # Several of these, where it is unknown which one.
    TOGETHER = "together"
    # All numeric conditions on one class at once.
    AMOUNT = "amount"
    # Parts of a request that may be left out as a whole.
    RESOURCE = "resource"
    GROUP = "group"


UNITS = (ConditionKind.MIN_UNIT, ConditionKind.MAX_UNIT, ConditionKind.STEP_SIZE)
NUMERIC = (ConditionKind.CAPACITY, *UNITS)
OF_AMOUNTS = frozenset({*NUMERIC, ConditionKind.AMOUNT})


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a request.

    Args:
        kind: what it is about.
        groups: the suffixes of the groups that impose it, "" for the unsuffixed one; empty for the request as a whole.
        value: what is asked for, written as in a query string: ``VCPU:8``, ``in:HW_A,HW_B``, ``!HW_A``; for rules about
            places the level, for a count the number.
    """

    kind: ConditionKind
    groups: tuple[str, ...] = ()
    value: str = ""

    @property
    def resource_class(self) -> str:
        """The resource class in the value."""
        return self.value.partition(":")[0]

    def includes(self, other: "Condition") -> bool:
        """Tell whether leaving this condition out drops another one: the same, or a part of an amount."""
        return self == other or (
            self.kind == ConditionKind.AMOUNT
            and other.kind in NUMERIC
            and (self.groups, self.value) == (other.groups, other.value)
        )


def any_of_value(any_of: AbstractSet[str], *, forbidden: bool = False) -> str:
    """Write a set of names the way ``required`` and ``member_of`` do."""
    names = sorted(any_of)
    text = names[0] if len(names) == 1 else "in:" + ",".join(names)
    return f"!{text}" if forbidden else text


def subtree_condition(suffixes: AbstractSet[str]) -> Condition:
    """Return the condition of a same_subtree."""
    groups = tuple(sorted(suffixes))
    return Condition(ConditionKind.SAME_SUBTREE, groups, ",".join(groups))


def traits_condition(any_of: AbstractSet[str]) -> Condition:
    """Return the condition that the providers of the unsuffixed group together have any of some traits."""
    return Condition(ConditionKind.REQUIRED, LOOSE, any_of_value(any_of))


class Stage(NamedTuple):
    """A condition, and the plan with it and all conditions before it."""

    condition: Condition
    plan: Plan


def with_traits_apart(plan: Plan) -> Plan:
    """Return a plan whose stages check all traits of the unsuffixed group.

    If one provider serves the whole group, the search looks only at providers with its traits. An explanation has to
    distinguish a trait that the tree lacks from one that another of its providers has.
    """
    loose = [demand.group.required for demand in plan.demands if not demand.group.is_granular]
    return replace(plan, trait_sets=loose[0]) if loose else plan


def stages(plan: Plan) -> Iterator[Stage]:
    """Yield the stages of a plan; the last one is the plan itself."""
    request = plan.request
    bare = replace(request, isolate=False, same_subtree=(), combines_nested=True)
    so_far = replace(plan, request=bare, contended=(), trait_sets=())
    if plan.trait_sets:
        so_far = replace(so_far, trait_sets=plan.trait_sets)
        yield Stage(_placement(plan), so_far)
    if _isolates(plan):
        so_far = replace(so_far, request=replace(so_far.request, isolate=True))
        yield Stage(Condition(ConditionKind.GROUP_POLICY, _granular(plan), "isolate"), so_far)
    for suffixes in request.same_subtree:
        tied = (*so_far.request.same_subtree, suffixes)
        so_far = replace(so_far, request=replace(so_far.request, same_subtree=tied))
        yield Stage(subtree_condition(suffixes), so_far)
    for name in plan.contended:
        so_far = replace(so_far, contended=(*so_far.contended, name))
        yield Stage(Condition(ConditionKind.COMBINED_CAPACITY, _asking(plan, name), name), so_far)
    if not request.combines_nested and len(plan.slots) > 1:
        so_far = replace(so_far, request=replace(so_far.request, combines_nested=False))
        yield Stage(Condition(ConditionKind.ONE_PROVIDER_PER_TREE), so_far)


def without(plan: Plan, condition: Condition) -> Plan:
    """Return a plan without one condition that the search checks; the same plan for any other condition."""
    request = plan.request
    match condition.kind:
        case ConditionKind.TRAIT_PLACEMENT:
            return replace(plan, trait_sets=())
        case ConditionKind.REQUIRED if condition.groups == LOOSE:
            kept = tuple([any_of for any_of in plan.trait_sets if traits_condition(any_of) != condition])
            return replace(plan, trait_sets=kept)
        case ConditionKind.GROUP_POLICY:
            # Groups that may share a provider may compete there.
            return replace(plan, request=replace(request, isolate=False), contended=_asked_twice(plan))
        case ConditionKind.COMBINED_CAPACITY:
            return replace(plan, contended=tuple(name for name in plan.contended if name != condition.value))
        case _:
            return replace(plan, request=_request_without(request, condition))


def _asked_twice(plan: Plan) -> tuple[str, ...]:
    """Return the classes that several slots ask for."""
    asked = Counter(name for slot in plan.slots for name, _amount in slot.resources)
    return tuple(sorted([name for name, slots in asked.items() if slots > 1]))


def is_searched(plan: Plan, condition: Condition) -> bool:
    """Tell whether dropping a condition changes what the search does, rather than only which providers can serve."""
    if condition.kind in {ConditionKind.CAPACITY, ConditionKind.MAX_UNIT, ConditionKind.AMOUNT}:
        return condition.resource_class in plan.contended
    if condition.kind == ConditionKind.REQUIRED:
        return condition.groups == LOOSE
    return condition in {stage.condition for stage in stages(plan)}


def _request_without(request: CandidateRequest, condition: Condition) -> CandidateRequest:
    match condition.kind:
        case ConditionKind.SAME_SUBTREE:
            tied = tuple(suffixes for suffixes in request.same_subtree if subtree_condition(suffixes) != condition)
            return replace(request, same_subtree=tied)
        case ConditionKind.ONE_PROVIDER_PER_TREE:
            return replace(request, combines_nested=True)
        case _:
            return request


def _placement(plan: Plan) -> Condition:
    return Condition(ConditionKind.TRAIT_PLACEMENT, LOOSE, " ".join(any_of_value(any_of) for any_of in plan.trait_sets))


def _granular(plan: Plan) -> tuple[str, ...]:
    return tuple(slot.suffix for slot in plan.slots if slot.is_granular)


def _isolates(plan: Plan) -> bool:
    return plan.request.isolate and len(_granular(plan)) > 1


def _asking(plan: Plan, name: str) -> tuple[str, ...]:
    asking = (slot.suffix for slot in plan.slots if name in dict(slot.resources))
    return tuple(dict.fromkeys(asking))


def removable_parts(plan: Plan) -> Iterator[tuple[Condition, CandidateRequest]]:
    """Yield each part with the rest of the request: first classes, of groups that ask for several, then groups.

    Groups that ask for the same are left out together. A part is not, if nothing would be asked for without it.
    """
    for index, demand in enumerate(plan.demands):
        groups = groups_of(plan, index)
        for name, _amount in demand.resources:
            if len(demand.group.resources) > 1:
                less = replace(plan.request, groups=tuple(_without_class(plan, name, groups)))
                yield Condition(ConditionKind.RESOURCE, groups, name), less
    for groups in dict.fromkeys(groups_of(plan, index) for index in range(len(plan.demands))):
        less = _without_groups(plan.request, frozenset(groups))
        if any(group.resources for group in less.groups):
            yield Condition(ConditionKind.GROUP, groups, ",".join(groups)), less


def _without_class(plan: Plan, name: str, groups: tuple[str, ...]) -> Iterator[RequestGroup]:
    for group in plan.request.groups:
        if group.suffix in groups:
            resources = {other: amount for other, amount in group.resources.items() if other != name}
            yield replace(group, resources=resources)
        else:
            yield group


def _without_groups(request: CandidateRequest, suffixes: frozenset[str]) -> CandidateRequest:
    tied = (of_set - suffixes for of_set in request.same_subtree)
    return replace(
        request,
        groups=tuple(group for group in request.groups if group.suffix not in suffixes),
        same_subtree=tuple(of_set for of_set in tied if of_set),
    )


def groups_of(plan: Plan, demand: int) -> tuple[str, ...]:
    """Return the suffixes of the groups behind a demand, given its index."""
    asked = plan.demands[demand]
    if asked.ignores_usage:
        # It stands beside the demand of the same group that has to have room.
        demand = next(index for index, one in enumerate(plan.demands) if one.identity == asked.identity)
    return tuple(dict.fromkeys(slot.suffix for slot in plan.slots if slot.demand == demand))
