"""Proposals of the planner: which providers serve each group, what is taken of each, and how compact that is.

Exclusivity is inventory: whoever uses a place takes 1 of its lock class, and whoever holds it exclusively takes all. If
``min_unit`` or ``step_size`` rules out 1, users take the least amount possible. So the promise is kept by ordinary
allocations, without races, for as long as they live.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.ranking_profile import Counts
from placement.domain.planner_request import THE_DEVICE, PlannerRequest
from placement.domain.search_plan import Plan
from placement.domain.tree import NO_STOCKS, Levels, PlannerTree, Stock, Tree, upwards


class Lock(NamedTuple):
    """A provider held exclusively, and the class that tells others so; None if it has no such class."""

    provider: int
    resource_class: str | None


class GroupScore(NamedTuple):
    """How well the resources of a tree are used: the mean of all their scores, from 0 to 1, and the sum."""

    mean: float
    total: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """A way to serve a planner request in one tree, given by its root.

    ``amounts`` has what is taken by provider and class, including ``locks``, the places held exclusively. ``mappings``
    has who serves each group, ``touched`` how many places of each level are; ``group_score`` is the Group Allocator's.
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

    proposals: list[Proposal] = field(default_factory=list)
    complete: bool = True


class WantedFree(NamedTuple):
    """A number of different providers of a demand that must be free of use around them: the places of some levels.

    ``is_device`` tells whether each provider itself must be free, ``is_card`` what each is a virtual function of.
    """

    demand: int
    number: int
    levels: tuple[int, ...]
    is_device: bool
    is_card: bool


class ProposalComposer(ABC):
    """Composes the proposals for one planner request, tree by tree, and remembers what it found."""

    plan: Plan
    """What it asks of single providers."""
    requested: Mapping[str, int]
    """How much is asked for of each class at the same time."""
    counted: Sequence[tuple[int, int]] = ()
    """(demand, how many different providers of it) for demands that are wanted more than once."""
    wanted_free: Sequence[WantedFree] = ()
    """What has to be free of use, because a group wants a place to itself."""

    def __init__(self, request: PlannerRequest, levels: Levels, *, locks: Mapping[str, str]) -> None:
        self.request = request
        self.levels = levels
        self._lock_classes = locks
        self._locks = Locks(levels.names, locks)

    @cached_property
    def written(self) -> str:
        """All that decides what a tree gives to it, as text."""
        # Requests that are equal may be written differently, which merely finds less.
        return repr((self.request, self.levels, sorted(self._lock_classes.items())))

    def is_hopeless(self, tree: Tree) -> bool:  # noqa: ARG002 - left to the search
        """Tell whether a tree has too few providers, as far as that is known without its details."""
        return False

    def lacks_room(self, tree: Tree, *, members: int = 1) -> bool:  # noqa: ARG002 - left to the search
        """Tell whether a tree has too little room for all of it, so many times, as far as known without its details.

        For several members the tree has to tell the room for each class asked for, not for contended ones alone.
        """
        return False

    @abstractmethod
    def proposals(self, tree: Tree, details: PlannerTree, budget: Budget) -> Proposals:
        """Return the best ways to serve the request in a tree, as far as found before the budget runs out."""

    def serves(self, tree: Tree, details: PlannerTree, budget: Budget) -> bool | None:
        """Tell whether there is any way; None if the budget runs out first."""
        answer = self.proposals(tree, details, budget)
        return bool(answer.proposals) if answer.proposals or answer.complete else None


class Locks:
    """The lock classes of levels."""

    def __init__(self, levels: Sequence[str], classes: Mapping[str, str]) -> None:
        self._classes = {level: name for level, name in classes.items() if level in levels or level == THE_DEVICE}
        self._levels = list(levels)

    def usable(self, rows: Sequence[Sequence[int]], details: PlannerTree) -> list[list[int]]:
        """Return the options outside all places that are held exclusively, or whose lock class is used up."""
        held = {
            (place, level)
            for place, of_place in details.stocks.items()
            for level, name in self._classes.items()
            if name in of_place and not of_place[name].allows(of_place[name].least)
        }
        devices = {place for place, level in held if level == THE_DEVICE}.union(details.held)

        def is_usable(provider: int) -> bool:
            around = self._around(details, provider)
            return held.isdisjoint(around) and devices.isdisjoint(upwards(provider, details.parents))

        return [[*filter(is_usable, row)] if held or devices else [*row] for row in rows]

    def never_whole(self, levels: Collection[str], details: PlannerTree) -> set[int]:
        """Return the places of these levels that nobody can hold: unit rules forbid to take all of the lock at once."""
        closed = {
            (place, level)
            for level in self._classes.keys() & set(levels)
            for place, of_place in details.stocks.items()
            if (lock := of_place.get(self._classes[level])) is not None and not lock.is_whole_allowed
        }
        if not closed:
            return set()
        # A provider may have the class without being a place. An outline knows places of providers that serve only.
        around = {place for provider in details.positions for place in self._around(details, provider)}
        return {place for place, _level in closed & around if place is not None}

    def _around(self, details: PlannerTree, provider: int) -> Iterator[tuple[int | None, str]]:
        """Yield the places to lock around a provider: its place; or itself and what it is a virtual function of."""
        for level in self._classes:
            if level == THE_DEVICE:
                yield from [(provider, level), (details.parents.get(provider), level)]
            else:
                yield details.positions[provider][self._levels.index(level)], level

    def taken(
        self,
        details: PlannerTree,
        providers: Sequence[int],
        alone: Sequence[tuple[int | None, str]],
        amounts: dict[int, dict[str, int]],
    ) -> list[Lock]:
        """Add the lock classes to the amounts taken of ``providers``, in place; return the places held exclusively.

        ``alone`` are the places to hold exclusively, each with its level.
        """
        # Dictionaries, not sets: the order of an answer must not depend on the process.
        exclusive = dict.fromkeys(alone)
        shared = dict.fromkeys([place for provider in providers for place in self._around(details, provider)])
        for place, level in shared | exclusive:
            stock = self._stock(details, place, level)
            if place is not None and stock:
                of_place, name = amounts.setdefault(place, {}), self._classes[level]
                # The request may have asked for the lock class itself.
                part = max(stock.least, of_place.get(name, 0))
                of_place[name] = stock.capacity if (place, level) in exclusive else part
        locks = [
            Lock(place, self._classes[level] if self._stock(details, place, level) else None)
            for place, level in exclusive
            if place is not None
        ]
        return sorted(locks, key=lambda lock: lock.provider)

    def _stock(self, details: PlannerTree, place: int | None, level: str) -> Stock | None:
        """Return a place's stock of its lock class; None if it has none."""
        if place is None or level not in self._classes:
            return None
        stock = details.stocks.get(place, NO_STOCKS).get(self._classes[level])
        return stock if stock and stock.capacity else None
