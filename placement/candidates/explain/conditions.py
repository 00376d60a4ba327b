"""The conditions of a request by name and in words, and plans with only some of them.

The conditions that only the search can check are added stage by stage.
"""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Self

from placement.domain.search_plan import UNSUFFIXED, CandidateRequest, Plan

LOOSE = (UNSUFFIXED,)
"""The groups of a condition of the unsuffixed group."""


class Worded(StrEnum):
    """Names, each with a phrase."""

    phrase: str

    def __new__(cls, name: str, phrase: str = "") -> Self:
        """Return the member of a name."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.phrase = phrase
        return member


class ConditionKind(Worded):
    """What a condition is about, with what it asks for in words."""

    # On a single provider, in the order in which providers are counted.
    INVENTORY = "inventory", "inventory of {value}"
    CAPACITY = "capacity", "{amounts} free"
    MIN_UNIT = "min_unit", "min_unit of at most {amounts}"
    MAX_UNIT = "max_unit", "max_unit of at least {amounts}"
    STEP_SIZE = "step_size", "step_size that divides {amounts}"
    REQUIRED = "required", "trait {value}"
    FORBIDDEN = "forbidden", "no trait {value}"
    MEMBER_OF = "member_of", "member of {value}"
    FORBIDDEN_AGGREGATES = "forbidden_aggregates", "no member of {value}"
    IN_TREE = "in_tree", "in the tree of {value}"
    EMPTY_GROUP = "empty_group", "a group that asks for resources, required or member_of"
    # On a tree, in the order in which trees are counted.
    EVERY_GROUP = "every_group", "providers for every group in one tree"
    ROOT_REQUIRED = "root_required", "root with trait {value}"
    ROOT_FORBIDDEN = "root_forbidden", "root without trait {value}"
    TRAIT_PLACEMENT = "trait_placement", "traits on the providers that serve: {value}"
    GROUP_POLICY = "group_policy", "a provider of its own for each group (group_policy=isolate)"
    SAME_SUBTREE = "same_subtree", "same_subtree={value}"
    COMBINED_CAPACITY = "combined_capacity", "room for {value} of all groups together"
    ONE_PROVIDER_PER_TREE = "one_provider_per_tree", "one provider of a tree serves all (microversions before 1.29)"
    # On several providers at once, in planner requests.
    HELD = "held_exclusively", "places that nobody else holds exclusively"
    PATHS = "paths", "room for the paths as they are nested"
    DEVICE = "device", "virtual functions of a device with {value}"
    COUNT = "count", "{value} different providers"
    WITHIN = "within", "all in one place of the level {value}"
    AFFINITY = "affinity", "the other groups beside the first in each place of the level {value}"
    EXCLUSIVE = "exclusive", "places of the level {value} that nobody else uses"
    DISTINCT = "distinct", "different places for the groups beside each other (distinct)"
    TRANSLATE = "translate", "outer groups of its own for each group that omits them (translate)"
    # On a tree, by the operator's profile.
    PROPORTION = "proportional", "what the profile keeps idle beside scarce resources (proportional, mode: filter)"
    # Several of these, where it is unknown which one.
    TOGETHER = "together", "all that the groups ask for together"
    # All numeric conditions on one class at once.
    AMOUNT = "amount", "{amounts} from one provider"
    # Parts of a request that may be left out as a whole.
    RESOURCE = "resource", "resources of {value}"
    GROUP = "group", "all that is asked for"


UNITS = (ConditionKind.MIN_UNIT, ConditionKind.MAX_UNIT, ConditionKind.STEP_SIZE)
NUMERIC = (ConditionKind.CAPACITY, *UNITS)
OF_AMOUNTS = frozenset({*NUMERIC, ConditionKind.AMOUNT})
_KINDS = [*ConditionKind]
OF_TREES = frozenset(_KINDS[_KINDS.index(ConditionKind.EVERY_GROUP) : _KINDS.index(ConditionKind.AMOUNT)])
MAX_VALUE_LENGTH = 100


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

    @property
    def is_of_trees(self) -> bool:
        """Whether it is about a tree, as a trait is that the unsuffixed group needs somewhere in it."""
        return self.kind in OF_TREES or (self.kind == ConditionKind.REQUIRED and self.groups == LOOSE)

    @property
    def in_words(self) -> str:
        """What it asks for, as a phrase."""
        value = self.value.removeprefix("!")
        if self.is_of_trees and self.kind == ConditionKind.REQUIRED:
            value += " in the tree"
        amounts = ", ".join([" ".join(item.split(":")[::-1]) for item in value.split(",")])
        return self.kind.phrase.format(value=short(value), amounts=short(amounts))

    @property
    def groups_in_words(self) -> str:
        """The groups that impose it, as a phrase in brackets; empty for the request as a whole."""
        if not self.groups:
            return ""
        if self.groups == LOOSE:
            return " (unsuffixed group)"
        return f" (group{'s' if len(self.groups) > 1 else ''} {short(', '.join(self.groups))})"

    def includes(self, other: "Condition") -> bool:
        """Tell whether leaving this condition out drops another one: the same, or a part of an amount."""
        return self == other or (
            self.kind == ConditionKind.AMOUNT
            and other.kind in NUMERIC
            and (self.groups, self.value) == (other.groups, other.value)
        )


def short(text: str) -> str:
    """Return a text, cut off if it is long."""
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 3] + "..."


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
        value = " ".join(any_of_value(any_of) for any_of in plan.trait_sets)
        yield Stage(Condition(ConditionKind.TRAIT_PLACEMENT, LOOSE, value), so_far)
    granular = tuple(slot.suffix for slot in plan.slots if slot.is_granular)
    if request.isolate and len(granular) > 1:
        so_far = replace(so_far, request=replace(so_far.request, isolate=True))
        yield Stage(Condition(ConditionKind.GROUP_POLICY, granular, "isolate"), so_far)
    for suffixes in request.same_subtree:
        tied = (*so_far.request.same_subtree, suffixes)
        so_far = replace(so_far, request=replace(so_far.request, same_subtree=tied))
        yield Stage(subtree_condition(suffixes), so_far)
    for name in plan.contended:
        so_far = replace(so_far, contended=(*so_far.contended, name))
        asking = tuple(dict.fromkeys(slot.suffix for slot in plan.slots if name in dict(slot.resources)))
        yield Stage(Condition(ConditionKind.COMBINED_CAPACITY, asking, name), so_far)
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
            slots_by_class = Counter(name for slot in plan.slots for name, _amount in slot.resources)
            contended = tuple(sorted([name for name, slots in slots_by_class.items() if slots > 1]))
            return replace(plan, request=replace(request, isolate=False), contended=contended)
        case ConditionKind.COMBINED_CAPACITY:
            return replace(plan, contended=tuple(name for name in plan.contended if name != condition.value))
        case ConditionKind.SAME_SUBTREE:
            tied = tuple(suffixes for suffixes in request.same_subtree if subtree_condition(suffixes) != condition)
            request = replace(request, same_subtree=tied)
        case ConditionKind.ONE_PROVIDER_PER_TREE:
            request = replace(request, combines_nested=True)
    return replace(plan, request=request)


def is_searched(plan: Plan, condition: Condition) -> bool:
    """Tell whether dropping a condition changes what the search does, rather than only which providers can serve."""
    if condition.kind in {ConditionKind.CAPACITY, ConditionKind.MAX_UNIT, ConditionKind.AMOUNT}:
        return condition.resource_class in plan.contended
    if condition.kind == ConditionKind.REQUIRED:
        return condition.groups == LOOSE
    return condition in {stage.condition for stage in stages(plan)}


def removable_parts(plan: Plan) -> Iterator[tuple[Condition, CandidateRequest]]:
    """Yield each part with the rest of the request: first classes, of groups that ask for several, then groups.

    Groups that ask for the same are left out together. A part is not, if nothing would be asked for without it.
    """
    request = plan.request
    groups_of_demands = [groups_of(plan, index) for index in range(len(plan.demands))]
    for groups, demand in zip(groups_of_demands, plan.demands, strict=True):
        for name, _amount in demand.resources if len(demand.group.resources) > 1 else ():
            less = [
                replace(group, resources={kept: amount for kept, amount in group.resources.items() if kept != name})
                if group.suffix in groups
                else group
                for group in request.groups
            ]
            yield Condition(ConditionKind.RESOURCE, groups, name), replace(request, groups=tuple(less))
    for groups in dict.fromkeys(groups_of_demands):
        remaining = tuple([group for group in request.groups if group.suffix not in groups])
        if any(group.resources for group in remaining):
            tied = tuple([suffixes.difference(groups) for suffixes in request.same_subtree])
            less_tied = replace(request, groups=remaining, same_subtree=tuple(filter(None, tied)))
            yield Condition(ConditionKind.GROUP, groups, ",".join(groups)), less_tied


def groups_of(plan: Plan, demand: int) -> tuple[str, ...]:
    """Return the suffixes of the groups behind a demand, given its index."""
    planned = plan.demands[demand]
    if planned.ignores_usage:
        # It stands beside the demand of the same group that has to have room.
        demand = next(index for index, twin in enumerate(plan.demands) if twin.identity == planned.identity)
    return tuple(dict.fromkeys(slot.suffix for slot in plan.slots if slot.demand == demand))
