"""The own part of a candidate: what a tree itself gives where others share with it, for which its score is charged."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from operator import add

from placement.domain.search_plan import Choice, Plan, Slot
from placement.domain.tree import Tree

Given = tuple[int, ...]
"""An own part: how much a tree itself gives of some classes, in their order."""

PartSoFar = tuple[Given, bool]
"""What a tree gives so far, and whether any of that is given by a provider that does not share."""

OWN, ITS_OWN_SHARING, FOREIGN = 1, 2, 4
"""A provider of the tree; one that shares with other trees, too; one of another tree. A set of them is their sum."""

MOST_GIVEN = 256
"""Where a tree may give more different amounts, candidates do not come in the order of their scores."""


class OwnParts:
    """What trees give themselves of one plan.

    Args:
        plan: what is asked for.
        weighed: the classes that matter.
    """

    def __init__(self, plan: Plan, weighed: Sequence[str]) -> None:
        self.nothing: PartSoFar = (0,) * len(weighed), False
        self.amounts = {slot: tuple([dict(slot.resources).get(name, 0) for name in weighed]) for slot in plan.slots}
        """What each slot takes."""
        self._taking = [
            (index, slot.demand, self.amounts[slot]) for index, slot in enumerate(plan.slots) if slot.resources
        ]
        self._demands = {demand for _index, demand, _amounts in self._taking}
        self._possible = lru_cache(maxsize=1000)(self._states)

    def possible(self, tree: Tree) -> AbstractSet[Given] | None:
        """Return what a tree may give, where it gives anything; None where that may be too much to tell."""
        return self._possible(self._kinds(tree))

    def _kinds(self, tree: Tree) -> tuple[int, ...]:
        """Return for each demand what its providers are to the tree."""
        sharing = tree.sharing
        return tuple(
            [
                OWN if sharing.isdisjoint(row) else sum({kind_of(provider, tree) for provider in row})
                for row in tree.options
            ]
        )

    def _states(self, kinds: tuple[int, ...]) -> AbstractSet[Given] | None:
        states = {self.nothing}
        for _index, demand, amounts in self._taking:
            found = [kind for kind in (OWN, ITS_OWN_SHARING, FOREIGN) if kind & kinds[demand]]
            states = {taken(state, amounts, kind) for state in states for kind in found}
            if len(states) > 2 * MOST_GIVEN:
                return None
        given = {given for given, is_of_tree in states if is_of_tree}
        return None if len(given) > MOST_GIVEN else given

    def of(self, choice: Choice, tree: Tree) -> Given | None:
        """Return what a tree gives in a choice; None where sharing providers alone serve."""
        state = self.nothing
        for index, _demand, amounts in self._taking:
            state = taken(state, amounts, kind_of(choice[index], tree))
        given, is_of_tree = state
        return given if is_of_tree else None

    def of_pools_alone(self, tree: Tree) -> Tree | None:
        """Return a tree with those options alone that share; None where these do not suffice."""
        options, sharing = tree.options, tree.sharing
        if any([sharing.isdisjoint(options[demand]) for demand in self._demands]):
            return None
        rows = [
            [provider for provider in row if provider in sharing] if demand in self._demands else row
            for demand, row in enumerate(options)
        ]
        return replace(tree, options=rows)

    def pools_of(self, choice: Choice, alone: Tree) -> frozenset[int]:
        """Return the roots of the trees that a choice of sharing providers takes from."""
        return frozenset([home_of(choice[index], alone) for index, _demand, _amounts in self._taking])

    def possible_pools(self, alone: Tree) -> AbstractSet[frozenset[int]] | None:
        """Return what that may be in a tree with sharing options alone; None where that is too much to tell."""
        found = {frozenset[int]()}
        for _index, demand, _amounts in self._taking:
            homes = {home_of(provider, alone) for provider in alone.options[demand]}
            found = {roots | {home} for roots in found for home in homes}
            if len(found) > MOST_GIVEN:
                return None
        return found

    def within(self, alone: Tree, roots: AbstractSet[int]) -> Tree:
        """Return such a tree with those options alone that take from some trees."""
        rows = [
            [provider for provider in row if home_of(provider, alone) in roots] if demand in self._demands else row
            for demand, row in enumerate(alone.options)
        ]
        return replace(alone, options=rows)


def home_of(provider: int, tree: Tree) -> int:
    """Return the root of the tree that an option of a tree lies in."""
    return tree.home.get(provider, tree.root)


def kind_of(provider: int, tree: Tree) -> int:
    """Return what a provider is to a tree."""
    if provider not in tree.sharing:
        return OWN
    return ITS_OWN_SHARING if home_of(provider, tree) == tree.root else FOREIGN


def taken(state: PartSoFar, amounts: Given, kind: int) -> PartSoFar:
    """Return what a tree gives once a provider of some kind gives amounts, too."""
    given, is_of_tree = state
    if kind == FOREIGN:
        return state
    return tuple(map(add, given, amounts)), is_of_tree or kind == OWN


class Gives:
    """The constraint that a tree itself gives one of some amounts.

    Args:
        own_parts: what trees give.
        tree: the tree.
        slots: in the order of the search.
        wanted: the amounts.
    """

    def __init__(self, own_parts: OwnParts, tree: Tree, slots: Sequence[Slot], wanted: AbstractSet[Given]) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if slot.resources)
        self._amounts = [own_parts.amounts[slot] for slot in slots]
        self._tree = tree
        self._states = [own_parts.nothing]
        kinds = [{kind_of(provider, tree) for provider in tree.options[slot.demand]} for slot in slots]
        self._good: list[AbstractSet[PartSoFar]] = []
        """For each depth the states from which something wanted is reached."""
        reached: list[AbstractSet[PartSoFar]] = [{own_parts.nothing}]
        for depth in range(len(slots)):
            reached.append(self._following(reached[-1], depth, kinds[depth]))
        good: AbstractSet[PartSoFar] = {(given, True) for given in wanted}
        for depth in reversed(range(len(slots))):
            self._good.insert(0, good)
            good = {one for one in reached[depth] if not good.isdisjoint(self._following([one], depth, kinds[depth]))}
        self._is_hopeless = not good

    def _following(self, states: Iterable[PartSoFar], depth: int, kinds: Iterable[int]) -> AbstractSet[PartSoFar]:
        if depth not in self.depths:
            return {*states}
        return {taken(state, self._amounts[depth], kind) for state in states for kind in kinds}

    def is_hopeless(self) -> bool:
        """Tell whether nothing wanted can be reached."""
        return self._is_hopeless

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider if something wanted can still be reached."""
        state = taken(self._states[-1], self._amounts[depth], kind_of(provider, self._tree))
        if state not in self._good[depth]:
            return False
        self._states.append(state)
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        """Forget the last provider."""
        self._states.pop()
