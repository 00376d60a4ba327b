"""Proposals of the planner: which providers serve each group, what is taken of each, and how compact that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from placement.allocators.budget import Budget
from placement.allocators.compactness import Counts
from placement.candidates.compose.ruled_out import WantedFree
from placement.domain.tree import PlannerTree, Tree


@dataclass(frozen=True, slots=True)
class Lock:
    """A provider held exclusively, and the class that tells others so; None if it has no such class."""

    provider: int
    resource_class: str | None


class GroupScore(NamedTuple):
    """How well the resources of a tree are used: the mean of all their scores, from 0 to 1, and the sum."""

    mean: float
    total: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """A way to serve a planner request in one tree.

    Args:
        root: the id of the tree's root provider.
        amounts: what is taken, by provider and class, including locks.
        mappings: the providers that serve each group, by its name.
        touched: how many places are touched of each level.
        locks: the places held exclusively.
        group_score: the Group Allocator's own score, if it composed this.
    """

    root: int
    amounts: Mapping[int, Mapping[str, int]]
    mappings: Mapping[str, tuple[int, ...]]
    touched: tuple[int, ...] = ()
    locks: tuple[Lock, ...] = ()
    group_score: GroupScore | None = None

    @property
    def counts(self) -> Counts:
        """How many places of each level compactness counts: touching none is as good as touching one."""
        return tuple([max(1, number) for number in self.touched])


@dataclass(frozen=True, slots=True)
class Proposals:
    """The proposals for one tree, best first; ``complete`` is False if the search was cut off."""

    found: list[Proposal] = field(default_factory=list)
    complete: bool = True

    @property
    def verdict(self) -> bool | None:
        """Whether there are any; None if that is unknown."""
        return bool(self.found) if self.found or self.complete else None


class ProposalComposer(Protocol):
    """Composes the proposals for one planner request, tree by tree, and remembers what it found."""

    @property
    def requested(self) -> Mapping[str, int]:
        """How much is asked for of each class."""

    @property
    def counted(self) -> Sequence[tuple[int, int]]:
        """(demand, how many different providers of it) for demands that are wanted more than once."""

    @property
    def wanted_free(self) -> Sequence[WantedFree]:
        """What has to be free of use, because a group wants a place to itself."""

    def is_hopeless(self, tree: Tree) -> bool:
        """Tell whether a tree has too few providers, as far as that is known without its details."""

    def lacks_room(self, tree: Tree, *, members: int = 1) -> bool:
        """Tell whether a tree has too little room for all of it, so many times, as far as known without its details.

        For several members the tree has to tell the room for each class asked for, not for contended ones alone.
        """

    def proposals(self, tree: Tree, details: PlannerTree, budget: Budget) -> Proposals:
        """Return the best ways to serve the request in a tree, as far as found before the budget runs out."""

    def serves(self, tree: Tree, details: PlannerTree, budget: Budget) -> bool | None:
        """Tell whether there is any way; None if the budget runs out first."""
