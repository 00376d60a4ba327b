"""The content of an explanation, as plain values and in words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from placement.candidates.explain.conditions import LOOSE, Condition, ConditionKind
from placement.candidates.single_providers import SplitAmount, split_in_words


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left after a condition and all before it; ``providers`` is None where only trees are counted."""

    condition: Condition
    providers: int | None
    trees: int


@dataclass(frozen=True, slots=True)
class DemandCounts:
    """Something that one provider has to serve, and how many can.

    Each granular group is one demand, and so is each resource class of the unsuffixed group. Groups that ask the same
    under the same conditions share one.
    """

    groups: tuple[str, ...]
    resources: tuple[tuple[str, int], ...]
    steps: tuple[Remainder, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A provider that fails a condition, with the numbers or names that show how."""

    provider: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest amount that some provider could give, and how many providers could give as much."""

    amount: int
    providers: int


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A group, how many providers it asked for, and the most matching ones that one tree has."""

    group: str
    asked: int
    most: int


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A condition without which, all others kept, ``trees`` trees have candidates; at least, if not ``complete``.

    For an amount, ``largest`` tells what the providers of these trees have; None if they have nothing. ``shortfall``
    tells the same for a rule about several providers. With ``rules_aside`` the rules of a planner request are not
    among what is kept, so the trees have candidates only if these do not stand in the way, too.
    """

    condition: Condition
    trees: int
    complete: bool
    examples: tuple[Example, ...]
    largest: Largest | None = None
    shortfall: Shortfall | None = None
    rules_aside: bool = False


class HintKind(StrEnum):
    """Mistakes that newcomers to the API make."""

    NO_SINGLE_PROVIDER = "no_single_provider"
    NO_INVENTORY = "no_provider_has_class"
    NO_OWNER = "no_provider_has_trait"
    NO_MEMBER = "no_provider_in_aggregate"
    NO_TREE = "no_such_tree"
    TRAIT_ELSEWHERE = "trait_on_another_provider"
    AGGREGATE_DOES_NOT_SPAN = "aggregate_does_not_span"
    SHARER_NOT_MEMBER = "sharing_provider_not_in_aggregate"
    SHARER_ALONE = "sharing_provider_shares_with_nobody"
    NO_GROUP_POLICY = "group_policy_missing"


@dataclass(frozen=True, slots=True)
class Hint:
    """A lesson about a condition.

    Args:
        kind: what it is about.
        condition: the misunderstood condition.
        trees: the number of trees it shows in.
        here, there: providers of one such tree: one that could serve, and the one that has what it lacks; or its root,
            and the one that does not share with it.
        split: the amount, if it is about one that no single provider has.
    """

    kind: HintKind
    condition: Condition
    trees: int = 0
    here: int | None = None
    there: int | None = None
    split: SplitAmount | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a request has no candidates, or in how many trees it has some.

    Args:
        cause: the first condition that left nothing; None if there are candidates, or if the search ran out of steps.
        demands: what single providers are asked for.
        trees: what trees are asked for; the last step tells how many have candidates.
        near_misses: most trees first; none if there are candidates.
        hints: lessons to learn from it.
        complete: whether no search ran out of steps.
        shortfall: how many providers there could be, if the cause is a group that wants several.
    """

    cause: Condition | None
    demands: tuple[DemandCounts, ...]
    trees: tuple[Remainder, ...]
    near_misses: tuple[NearMiss, ...] = ()
    hints: tuple[Hint, ...] = ()
    complete: bool = True
    shortfall: Shortfall | None = None

    @property
    def found(self) -> int:
        """How many trees have candidates."""
        return 0 if self.cause else self.trees[-1].trees

    def with_rules_aside(self) -> "Explanation":
        """Return this explanation with near misses that do not claim to regard the rules of the request."""
        return replace(self, near_misses=tuple([replace(one, rules_aside=True) for one in self.near_misses]))

    def left_out_by_profile(self) -> "Explanation":
        """Return this explanation with the profile as the cause: it rules out all trees that would serve.

        That is what ``proportional`` does with ``mode: filter``.
        """
        condition = Condition(ConditionKind.PROPORTION)
        missed = NearMiss(condition, self.found, self.complete, ())
        trees = (*self.trees, Remainder(condition, None, 0))
        return replace(self, cause=condition, trees=trees, near_misses=(missed,))

    def providers(self) -> Iterator[int]:
        """Yield all providers that the explanation names."""
        for near_miss in self.near_misses:
            for example in near_miss.examples:
                yield example.provider
        for hint in self.hints:
            yield from (provider for provider in (hint.here, hint.there) if provider is not None)


CONDITIONS = {
    ConditionKind.INVENTORY: "inventory of {value}",
    ConditionKind.CAPACITY: "{amounts} free",
    ConditionKind.MIN_UNIT: "min_unit of at most {amounts}",
    ConditionKind.MAX_UNIT: "max_unit of at least {amounts}",
    ConditionKind.STEP_SIZE: "step_size that divides {amounts}",
    ConditionKind.AMOUNT: "{amounts} from one provider",
    ConditionKind.REQUIRED: "trait {value}",
    ConditionKind.FORBIDDEN: "no trait {value}",
    ConditionKind.MEMBER_OF: "member of {value}",
    ConditionKind.FORBIDDEN_AGGREGATES: "no member of {value}",
    ConditionKind.IN_TREE: "in the tree of {value}",
    ConditionKind.EMPTY_GROUP: "a group that asks for resources, required or member_of",
    ConditionKind.EVERY_GROUP: "providers for every group in one tree",
    ConditionKind.ROOT_REQUIRED: "root with trait {value}",
    ConditionKind.ROOT_FORBIDDEN: "root without trait {value}",
    ConditionKind.TRAIT_PLACEMENT: "traits on the providers that serve: {value}",
    ConditionKind.GROUP_POLICY: "a provider of its own for each group (group_policy=isolate)",
    ConditionKind.SAME_SUBTREE: "same_subtree={value}",
    ConditionKind.COMBINED_CAPACITY: "room for {value} of all groups together",
    ConditionKind.ONE_PROVIDER_PER_TREE: "one provider of a tree serves all (microversions before 1.29)",
    ConditionKind.HELD: "places that nobody else holds exclusively",
    ConditionKind.PATHS: "room for the paths as they are nested",
    ConditionKind.DEVICE: "virtual functions of a device with {value}",
    ConditionKind.COUNT: "{value} different providers",
    ConditionKind.WITHIN: "all in one place of the level {value}",
    ConditionKind.AFFINITY: "the other groups beside the first in each place of the level {value}",
    ConditionKind.EXCLUSIVE: "places of the level {value} that nobody else uses",
    ConditionKind.DISTINCT: "different places for the groups beside each other (distinct)",
    ConditionKind.TRANSLATE: "outer groups of its own for each group that omits them (translate)",
    ConditionKind.PROPORTION: "what the profile keeps idle beside scarce resources (proportional, mode: filter)",
    ConditionKind.TOGETHER: "all that the groups ask for together",
    ConditionKind.RESOURCE: "resources of {value}",
    ConditionKind.GROUP: "all that is asked for",
}

HINTS = {
    HintKind.NO_INVENTORY: "No provider of this cloud has inventory of {value}.",
    HintKind.NO_OWNER: "No provider of this cloud has the trait {value}.",
    HintKind.NO_MEMBER: "No provider of this cloud is in the aggregate {value}.",
    HintKind.NO_TREE: "There is no provider {value}.",
    HintKind.TRAIT_ELSEWHERE: (
        "The trait {value} sits on another provider of the tree than what is asked for. Traits do not flow up or down a"
        " tree: ask for it in a group of its own and tie the groups with same_subtree."
    ),
    HintKind.AGGREGATE_DOES_NOT_SPAN: (
        "Another provider of the tree is in the aggregate {value}. Only the aggregates of a root span its tree, and"
        " only for the unsuffixed group."
    ),
    HintKind.SHARER_NOT_MEMBER: (
        "What could be shared with the tree is not in the aggregate {value} itself. Whoever serves has to be in it: put"
        " the sharing provider into it, too."
    ),
    HintKind.SHARER_ALONE: (
        "Who could share {value} shares it with no other tree: a provider shares with the trees that have somebody in"
        " one of its aggregates. Put it into an aggregate with those that are to use it."
    ),
    HintKind.NO_GROUP_POLICY: (
        "With more than one granular group, GET /allocation_candidates refuses a request without group_policy. It is"
        " explained here as if it had group_policy=none."
    ),
}

OF_TREES = frozenset(
    {
        *(
            ConditionKind.EVERY_GROUP,
            ConditionKind.ROOT_REQUIRED,
            ConditionKind.ROOT_FORBIDDEN,
            ConditionKind.TRAIT_PLACEMENT,
            ConditionKind.GROUP_POLICY,
        ),
        *(
            ConditionKind.SAME_SUBTREE,
            ConditionKind.COMBINED_CAPACITY,
            ConditionKind.ONE_PROVIDER_PER_TREE,
            ConditionKind.TOGETHER,
        ),
        *(
            ConditionKind.HELD,
            ConditionKind.PATHS,
            ConditionKind.DEVICE,
            ConditionKind.COUNT,
            ConditionKind.WITHIN,
            ConditionKind.AFFINITY,
            ConditionKind.EXCLUSIVE,
            ConditionKind.DISTINCT,
            ConditionKind.TRANSLATE,
            ConditionKind.PROPORTION,
        ),
    }
)
MAX_VALUE_LENGTH = 100


def in_words(condition: Condition) -> str:
    """Return what a condition asks for, as a phrase."""
    value = condition.value.removeprefix("!")
    if _is_of_trees(condition):
        value += " in the tree"
    amounts = ", ".join(f"{amount} {name}" for name, _, amount in (item.partition(":") for item in value.split(",")))
    return CONDITIONS[condition.kind].format(value=_short(value), amounts=_short(amounts))


def of_groups(condition: Condition) -> str:
    """Return the groups that a condition belongs to, as a phrase in brackets; empty for the request as a whole."""
    if not condition.groups:
        return ""
    if condition.groups == LOOSE:
        return " (unsuffixed group)"
    names = ", ".join(condition.groups)
    return f" (group{'s' if len(condition.groups) > 1 else ''} {_short(names)})"


def cause_in_words(condition: Condition, shortfall: Shortfall | None = None) -> str:
    """Return a sentence about the condition that leaves nothing."""
    left = "tree" if condition.kind in OF_TREES or _is_of_trees(condition) else "provider"
    return (
        f"No {left} is left after this condition: {in_words(condition)}{of_groups(condition)}"
        f"{_shortfall_in_words(shortfall)}."
    )


def near_miss_in_words(near_miss: NearMiss) -> str:
    """Return a sentence about a near miss."""
    many = "1 tree fails" if near_miss.trees == 1 else f"{near_miss.trees} trees fail"
    least = "" if near_miss.complete else "at least "
    aside = "counts and rules aside, " if near_miss.rules_aside else ""
    who = f"{aside}{least}{many}"
    text = f"{who[0].upper()}{who[1:]} only this condition: "
    text += f"{in_words(near_miss.condition)}{of_groups(near_miss.condition)}{_shortfall_in_words(near_miss.shortfall)}"
    return f"{text}.{_largest_in_words(near_miss.largest)}"


def _shortfall_in_words(shortfall: Shortfall | None) -> str:
    if shortfall is None:
        return ""
    return f"; of the {shortfall.asked} asked for by group {_short(shortfall.group)} at most {shortfall.most} fit"


def _largest_in_words(largest: Largest | None) -> str:
    if largest is None:
        return ""
    have = "1 provider has it" if largest.providers == 1 else f"{largest.providers} providers have it"
    return f" The largest amount that can be had of one is {largest.amount}: {have}."


def hint_in_words(hint: Hint) -> str:
    """Return the lesson of a hint."""
    if hint.split is not None:
        return split_in_words(hint.split)
    return HINTS[hint.kind].format(value=_short(hint.condition.value))


def _is_of_trees(condition: Condition) -> bool:
    """Tell whether a condition is a trait that the unsuffixed group needs somewhere in the tree."""
    return condition.kind == ConditionKind.REQUIRED and condition.groups == LOOSE


def _short(text: str) -> str:
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 3] + "..."
