"""Conditions on single providers, each as the set of providers that it keeps or refuses."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from typing import NamedTuple

from placement.candidates.explain.conditions import NUMERIC, Condition, ConditionKind, any_of_value
from placement.candidates.explain.provider_kinds import ProviderKinds
from placement.domain.facts import owners_in
from placement.domain.search_plan import Demand


class Filter(NamedTuple):
    """A condition and the providers it keeps, or refuses."""

    condition: Condition
    providers: AbstractSet[int]
    keeps: bool

    def refused(self, among: AbstractSet[int]) -> AbstractSet[int]:
        """Return which of some providers fail the condition."""
        return among - self.providers if self.keeps else among & self.providers


class Reach(Enum):
    """The way in which a provider may serve a demand; it decides what the filters look at."""

    ITSELF = auto()
    """In its own tree, judged by its own aggregates."""
    ROOT = auto()
    """In its own tree, judged by the root's aggregates, which span the tree for the unsuffixed group."""
    SHARED = auto()
    """In trees that it shares with."""


class ProviderFilters:
    """Makes the filters of demands in one cloud, for a provider of each kind."""

    def __init__(self, kinds: ProviderKinds) -> None:
        self._whole = kinds.facts
        self._facts = facts = kinds.sample
        self._owners = {name: owners_in(stocks) for name, stocks in facts.stocks.items()}
        self._numeric: dict[tuple[str, int], list[set[int]]] = {}

    def reaches(self, demand: Demand) -> list[Reach]:
        """Return the ways in which providers may serve a demand, sharing last.

        The aggregates of a root span its tree, but they do not mix with a provider's own: either the provider is in an
        aggregate of every set, or the root is. So judging by the root is a way of its own.
        """
        spans = not demand.group.is_granular and demand.group.member_of
        shares = [Reach.SHARED] if self._facts.shares else []
        return [Reach.ITSELF, *([Reach.ROOT] if spans else []), *shares]

    def base(self, demand: Demand, reach: Reach) -> AbstractSet[int]:
        """Return the providers considered before any filter: those with inventory of the first resource class."""
        if demand.resources:
            found: AbstractSet[int] = self._owners.get(demand.resources[0][0], frozenset())
        else:
            found = self._facts.parents.keys()
        return found & self._facts.shares.keys() if reach is Reach.SHARED else found

    def filters(self, demand: Demand, groups: tuple[str, ...], reach: Reach) -> Iterator[Filter]:
        """Yield the filters of a demand of some groups, in the order of the explanation."""
        group = demand.group
        facts = self._facts
        for name, _amount in demand.resources:
            owners = self._owners.get(name, frozenset())
            yield Filter(Condition(ConditionKind.INVENTORY, groups, name), owners, keeps=True)
        yield from self._amounts(demand, groups)
        if group.is_granular:
            for any_of in group.required:
                condition = Condition(ConditionKind.REQUIRED, groups, any_of_value(any_of))
                yield Filter(condition, facts.owners_of_any(any_of), keeps=True)
        yield from self._forbidden(group.forbidden, groups)
        for any_of in group.member_of:
            condition = Condition(ConditionKind.MEMBER_OF, groups, any_of_value(any_of))
            spans = reach is Reach.ROOT
            members = facts.inside(self._whole.members_of_any(any_of)) if spans else facts.members_of_any(any_of)
            yield Filter(condition, members, keeps=True)
        if group.forbidden_aggregates:
            members = facts.members_of_any(group.forbidden_aggregates)
            yield Filter(forbidden_aggregates(group.forbidden_aggregates, groups), members, keeps=False)
        if not (group.resources or group.required or group.member_of):
            # The reference finds no provider for a group that only forbids, whichever tree it names.
            yield Filter(Condition(ConditionKind.EMPTY_GROUP, groups), frozenset(), keeps=True)
        yield from self._tree(demand, groups, reach)
        if facts.held:
            yield Filter(Condition(ConditionKind.HELD, groups), facts.held, keeps=False)

    def _forbidden(self, names: AbstractSet[str], groups: tuple[str, ...]) -> Iterator[Filter]:
        for name in sorted(names):
            condition = Condition(ConditionKind.FORBIDDEN, groups, f"!{name}")
            yield Filter(condition, self._facts.owners.get(name, frozenset()), keeps=False)

    def _amounts(self, demand: Demand, groups: tuple[str, ...]) -> Iterator[Filter]:
        refused = [self._refused(name, amount) for name, amount in demand.resources]
        for index, kind in enumerate(NUMERIC):
            for (name, amount), sets in zip(demand.resources, refused, strict=True):
                yield Filter(Condition(kind, groups, f"{name}:{amount}"), sets[index], keeps=False)

    def _refused(self, name: str, amount: int) -> list[set[int]]:
        """Return the providers that each numeric filter refuses, in the order of NUMERIC."""
        found = self._numeric.get((name, amount))
        if found is None:
            full, low, high, step = found = [set(), set(), set(), set()]
            for left, min_unit, max_unit, step_size, providers in self._facts.stocks.get(name, ()):
                if amount > left:
                    full.update(providers)
                if amount < min_unit:
                    low.update(providers)
                if amount > max_unit:
                    high.update(providers)
                if step_size != 1 and amount % step_size:
                    step.update(providers)
            self._numeric[name, amount] = found
        return found

    def _tree(self, demand: Demand, groups: tuple[str, ...], reach: Reach) -> Iterator[Filter]:
        wanted = demand.group.in_tree
        if wanted is None:
            return
        condition = Condition(ConditionKind.IN_TREE, groups, wanted)
        root = self._facts.roots.get(wanted)
        if reach is Reach.SHARED and not demand.group.is_granular:
            # in_tree keeps the unsuffixed group inside the tree.
            yield Filter(condition, frozenset(), keeps=True)
        elif demand.resources:
            yield Filter(condition, self._facts.inside({root}), keeps=True)
        elif root is None:
            # Like the reference, find a granular group without resources in any tree, as long as the named tree exists.
            yield Filter(condition, frozenset(), keeps=True)


def forbidden_aggregates(any_of: frozenset[str], groups: tuple[str, ...]) -> Condition:
    """Return the condition that a group forbids aggregates; for the unsuffixed group it covers the root, too."""
    return Condition(ConditionKind.FORBIDDEN_AGGREGATES, groups, any_of_value(any_of, forbidden=True))
