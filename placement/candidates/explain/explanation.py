"""The content of an explanation, as plain values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from placement.candidates.explain.conditions import Condition, ConditionKind


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
    """

    kind: HintKind
    condition: Condition
    trees: int = 0
    here: int | None = None
    there: int | None = None


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
