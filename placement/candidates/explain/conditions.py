"""The conditions of a request by name, as explanations mention them."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from placement.domain.candidate_request import UNSUFFIXED

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
