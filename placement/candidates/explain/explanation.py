"""What an explanation says, as plain values and in words; first the conditions of a request by name."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

from placement.candidates.serving import SplitAmount
from placement.domain.search_plan import UNSUFFIXED

LOOSE = (UNSUFFIXED,)
"""The groups of a condition of the unsuffixed group."""


class Worded(StrEnum):
    """Names, each with a phrase."""

    phrase: str

    def __new__(cls, name: str, phrase: str = "") -> Self:  # noqa: D102
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
OF_STAGES = frozenset(_KINDS[_KINDS.index(ConditionKind.TRAIT_PLACEMENT) : _KINDS.index(ConditionKind.HELD)])
"""What only the search can check."""

MAX_VALUE_LENGTH, MAX_GROUPS = 100, 64
"""The longest value that is shown whole; for more groups than this no way to ask is shown."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a request, by the suffixes of the groups that impose it; none if the request does as a whole.

    The ``value`` is written as in a query string: ``VCPU:8``, ``in:HW_A,HW_B``, ``!HW_A``; for rules about places it is
    the level, for a count the number.
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


class Remainder(NamedTuple):
    """What is left after a condition and all before it; ``providers`` is None where only trees are counted."""

    condition: Condition
    providers: int | None
    trees: int


class DemandCounts(NamedTuple):
    """A demand of the plan, with the groups that share it, and how many providers can serve it."""

    groups: tuple[str, ...]
    resources: tuple[tuple[str, int], ...]
    steps: tuple[Remainder, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A provider that fails a condition, and how."""

    provider: int
    facts: Mapping[str, Any] = field(default_factory=dict)


class Largest(NamedTuple):
    """The largest amount that some provider could give, and how many providers could give as much."""

    amount: int
    providers: int


class Shortfall(NamedTuple):
    """A group, how many providers it asked for, and the most matching ones that one tree has."""

    group: str
    requested: int
    available: int


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A condition without which, all others kept, ``trees`` trees have candidates; at least, if not ``complete``.

    For an amount, ``largest`` tells what their providers have; ``shortfall`` the same for a rule about several. With
    ``rules_aside`` the rules of a planner request, too, may stand in the way.
    """

    condition: Condition
    trees: int
    complete: bool
    examples: tuple[Example, ...]
    largest: Largest | None = None
    shortfall: Shortfall | None = None
    rules_aside: bool = False

    @property
    def in_words(self) -> str:
        """A sentence about it."""
        trees = "1 tree fails" if self.trees == 1 else f"{self.trees} trees fail"
        text = f"{'counts and rules aside, ' * self.rules_aside}{'' if self.complete else 'at least '}{trees}"
        text = f"{text[0].upper()}{text[1:]} only this condition: {_named(self.condition, self.shortfall)}"
        if self.largest is None:
            return text
        have = "1 provider has it" if self.largest.providers == 1 else f"{self.largest.providers} providers have it"
        return f"{text} The largest amount that can be had of one is {self.largest.amount}: {have}."


class HintKind(Worded):
    """Mistakes that newcomers to the API make, with the lesson in words."""

    NO_SINGLE_PROVIDER = "no_single_provider", "No single provider has so much."
    NO_INVENTORY = "no_provider_has_class", "No provider of this cloud has inventory of {value}."
    NO_OWNER = "no_provider_has_trait", "No provider of this cloud has the trait {value}."
    NO_MEMBER = "no_provider_in_aggregate", "No provider of this cloud is in the aggregate {value}."
    NO_TREE = "no_such_tree", "There is no provider {value}."
    TRAIT_ELSEWHERE = (
        "trait_on_another_provider",
        (
            "The trait {value} sits on another provider of the tree than what is asked for. Traits do not flow up or"
            " down a tree: ask for it in a group of its own and tie the groups with same_subtree."
        ),
    )
    AGGREGATE_DOES_NOT_SPAN = (
        "aggregate_does_not_span",
        (
            "Another provider of the tree is in the aggregate {value}. Only the aggregates of a root span its tree, and"
            " only for the unsuffixed group."
        ),
    )
    SHARER_NOT_MEMBER = (
        "sharing_provider_not_in_aggregate",
        (
            "What could be shared with the tree is not in the aggregate {value} itself. Whoever serves has to be in it:"
            " put the sharing provider into it, too."
        ),
    )
    SHARER_ALONE = (
        "sharing_provider_shares_with_nobody",
        (
            "Who could share {value} shares it with no other tree: a provider shares with the trees that have somebody"
            " in one of its aggregates. Put it into an aggregate with those that are to use it."
        ),
    )
    NO_GROUP_POLICY = (
        "group_policy_missing",
        (
            "With more than one granular group, GET /allocation_candidates refuses a request without group_policy. It"
            " is explained here as if it had group_policy=none."
        ),
    )


def split_in_words(split: SplitAmount) -> str:
    """Say that no single provider has an amount, and how to ask for it.

    >>> split_in_words(SplitAmount("VCPU", 96, 64, 0, is_everywhere=True))
    'No provider could give 96 VCPU, even if it were empty: the largest has 64 VCPU.'
    """
    requested, has = [f"{amount} {split.resource_class}" for amount in (split.amount, split.largest)]
    if split.is_everywhere:
        sentence = f"No provider could give {requested}, even if it were empty: the largest has {has}."
    else:
        where = "1 tree" if split.trees == 1 else f"{split.trees} trees"
        sentence = f"On {where} no single provider could give {requested}: the largest there has {has}."
    groups = -(-split.amount // split.largest)
    if not split.trees or groups > MAX_GROUPS:
        return sentence
    trees = "1 tree has" if split.trees == 1 else f"{split.trees} trees have"
    last = split.amount - (groups - 1) * split.largest
    second = last if groups == 2 else split.largest
    example = f"resources_1={split.resource_class}:{split.largest}&resources_2={split.resource_class}:{second}"
    more = " and so on" if groups > 2 else ""
    counted = f', or with "count": {groups} in a planner request' if last == split.largest else ""
    advice = f"ask for it in {groups} groups, {example}{more}{counted}."
    return f"{sentence} {trees} as much free on several providers: {advice}"


@dataclass(frozen=True, slots=True)
class Hint:
    """A lesson about a misunderstood condition, and the number of trees it shows in.

    ``provider`` and ``owner`` are of one such tree: one that could serve, and the one that has what it lacks; or its
    root, and the one that does not share with it.
    """

    kind: HintKind
    condition: Condition
    trees: int = 0
    provider: int | None = None
    owner: int | None = None
    split: SplitAmount | None = None

    @property
    def in_words(self) -> str:
        """The lesson."""
        return split_in_words(self.split) if self.split else self.kind.phrase.format(value=short(self.condition.value))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a request has no candidates, or in how many trees it has some.

    The ``cause`` is the first condition that left nothing; None if there are candidates, or if the search ran out of
    steps (not ``complete``). ``demands`` are asked of single providers, ``trees`` of trees: the last step tells how
    many have candidates. A ``shortfall`` is that of the cause. Near misses come most trees first.
    """

    cause: Condition | None
    demands: tuple[DemandCounts, ...]
    trees: tuple[Remainder, ...]
    near_misses: tuple[NearMiss, ...] = ()
    hints: tuple[Hint, ...] = ()
    complete: bool = True
    shortfall: Shortfall | None = None

    @property
    def trees_with_candidates(self) -> int:
        """Their number, 0 with a cause."""
        return 0 if self.cause else self.trees[-1].trees

    def left_out_by_profile(self) -> "Explanation":
        """Return this explanation with the profile as the cause: it filters out all trees that would serve."""
        condition = Condition(ConditionKind.PROPORTION)
        missed = NearMiss(condition, self.trees_with_candidates, self.complete, ())
        trees = (*self.trees, Remainder(condition, None, 0))
        return replace(self, cause=condition, trees=trees, near_misses=(missed,))

    def providers(self) -> Iterator[int]:
        """Yield all providers that the explanation names."""
        for near_miss in self.near_misses:
            yield from [example.provider for example in near_miss.examples]
        for hint in self.hints:
            yield from [provider for provider in (hint.provider, hint.owner) if provider is not None]


def cause_in_words(condition: Condition, shortfall: Shortfall | None = None) -> str:
    """Return a sentence about the condition that leaves nothing."""
    noun = "tree" if condition.is_of_trees else "provider"
    return f"No {noun} is left after this condition: {_named(condition, shortfall)}"


def _named(condition: Condition, shortfall: Shortfall | None) -> str:
    """Return a condition with its groups, and how far it is from being met, as the end of a sentence."""
    text, groups = condition.in_words, f"group{'s' * (len(condition.groups) > 1)} {short(', '.join(condition.groups))}"
    if condition.groups:
        text += f" ({'unsuffixed group' if condition.groups == LOOSE else groups})"
    if shortfall is not None:
        group = short(shortfall.group)
        text += f"; of the {shortfall.requested} asked for by group {group} at most {shortfall.available} fit"
    return f"{text}."
