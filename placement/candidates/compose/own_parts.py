"""The own part of a candidate: what a tree itself gives where others share with it. The score charges only this.

Say a host has two pools to take storage from, its own disk and a shared one. A candidate with 4 VCPU and 100 GB has the
own part (4, 100) if the disk serves, and (4, 0) if the pool does. There are few own parts, though there may be many
candidates: thus they can be composed own part by own part, the best score first.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from operator import add

from placement.domain.search_plan import Choice, Plan, Slot
from placement.domain.tree import Tree

OwnAmounts = tuple[int, ...]
"""An own part: how much a tree itself gives of each class that matters, in their order."""

OwnPartSoFar = tuple[OwnAmounts, bool]
"""The own part so far, and whether any provider that does not share contributes to it."""

OWN, ITS_OWN_SHARING, FOREIGN = 1, 2, 4
"""The kinds of providers: of the tree; of the tree, but also sharing with others; of another tree.

A set of kinds is their sum.
"""

MAX_OWN_PARTS = 256
"""The most own parts, or sets of pools, to tell apart in a tree. With more, candidates do not come best score first."""


class OwnParts:
    """The own parts that candidates of one plan may have.

    Args:
        plan: what is asked for.
        weighed: the classes that matter.
    """

    def __init__(self, plan: Plan, weighed: Sequence[str]) -> None:
        self.nothing: OwnPartSoFar = (0,) * len(weighed), False
        self.amounts = {slot: tuple([dict(slot.resources).get(name, 0) for name in weighed]) for slot in plan.slots}
        """What each slot takes of these classes."""
        self._taking = [
            (index, slot.demand, self.amounts[slot]) for index, slot in enumerate(plan.slots) if slot.resources
        ]
        self._demands = {demand for _index, demand, _amounts in self._taking}
        self._possible = lru_cache(maxsize=1000)(self._states)

    def possible(self, tree: Tree) -> AbstractSet[OwnAmounts] | None:
        """Return the own parts of candidates to which a tree itself gives anything; None if there may be too many."""
        return self._possible(self._kinds(tree))

    def _kinds(self, tree: Tree) -> tuple[int, ...]:
        """Return for each demand the set of kinds of its providers."""
        sharing = tree.sharing
        return tuple(
            [
                OWN if sharing.isdisjoint(row) else sum({kind_of(provider, tree) for provider in row})
                for row in tree.options
            ]
        )

    def _states(self, kinds: tuple[int, ...]) -> AbstractSet[OwnAmounts] | None:
        states = {self.nothing}
        for _index, demand, amounts in self._taking:
            found = [kind for kind in (OWN, ITS_OWN_SHARING, FOREIGN) if kind & kinds[demand]]
            states = {taken(state, amounts, kind) for state in states for kind in found}
            if len(states) > 2 * MAX_OWN_PARTS:
                return None
        given = {given for given, is_of_tree in states if is_of_tree}
        return None if len(given) > MAX_OWN_PARTS else given

    def of(self, choice: Choice, tree: Tree) -> OwnAmounts | None:
        """Return the own part of a choice; None if sharing providers alone serve."""
        state = self.nothing
        for index, _demand, amounts in self._taking:
            state = taken(state, amounts, kind_of(choice[index], tree))
        given, is_of_tree = state
        return given if is_of_tree else None

    def of_pools_alone(self, tree: Tree) -> Tree | None:
        """Return a tree with only its sharing options; None if these cannot serve every demand."""
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
        """Return the sets of trees that choices of sharing options may take from; None if there are too many."""
        found = {frozenset[int]()}
        for _index, demand, _amounts in self._taking:
            homes = {home_of(provider, alone) for provider in alone.options[demand]}
            found = {roots | {home} for roots in found for home in homes}
            if len(found) > MAX_OWN_PARTS:
                return None
        return found

    def within(self, alone: Tree, roots: AbstractSet[int]) -> Tree:
        """Return such a tree with only the options that lie in some trees."""
        rows = [
            [provider for provider in row if home_of(provider, alone) in roots] if demand in self._demands else row
            for demand, row in enumerate(alone.options)
        ]
        return replace(alone, options=rows)


def home_of(provider: int, tree: Tree) -> int:
    """Return the root of the tree that an option of a tree lies in."""
    return tree.home.get(provider, tree.root)


def kind_of(provider: int, tree: Tree) -> int:
    """Return what kind of provider one is to a tree."""
    if provider not in tree.sharing:
        return OWN
    return ITS_OWN_SHARING if home_of(provider, tree) == tree.root else FOREIGN


def taken(state: OwnPartSoFar, amounts: OwnAmounts, kind: int) -> OwnPartSoFar:
    """Return the own part so far with the amounts of one more provider, of some kind."""
    given, is_of_tree = state
    if kind == FOREIGN:
        return state
    return tuple(map(add, given, amounts)), is_of_tree or kind == OWN


class WithOwnPart:
    """The constraint that the own part of a candidate is one of those wanted.

    Which states can still reach a wanted part is computed up front, for all depths, so ``take`` looks ahead in O(1).

    Args:
        own_parts: the own parts of the plan.
        tree: the tree.
        slots: in search order.
        wanted: the own parts wanted.
    """

    def __init__(self, own_parts: OwnParts, tree: Tree, slots: Sequence[Slot], wanted: AbstractSet[OwnAmounts]) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if slot.resources)
        self._amounts = [own_parts.amounts[slot] for slot in slots]
        self._tree = tree
        self._states = [own_parts.nothing]
        kinds = [{kind_of(provider, tree) for provider in tree.options[slot.demand]} for slot in slots]
        self._good: list[AbstractSet[OwnPartSoFar]] = []
        """For each depth, the states after it from which a wanted part can be reached."""
        reached: list[AbstractSet[OwnPartSoFar]] = [{own_parts.nothing}]
        for depth in range(len(slots)):
            reached.append(self._following(reached[-1], depth, kinds[depth]))
        good: AbstractSet[OwnPartSoFar] = {(given, True) for given in wanted}
        for depth in reversed(range(len(slots))):
            self._good.insert(0, good)
            good = {one for one in reached[depth] if not good.isdisjoint(self._following([one], depth, kinds[depth]))}
        self._is_hopeless = not good

    def _following(self, states: Iterable[OwnPartSoFar], depth: int, kinds: Iterable[int]) -> AbstractSet[OwnPartSoFar]:
        if depth not in self.depths:
            return {*states}
        return {taken(state, self._amounts[depth], kind) for state in states for kind in kinds}

    def is_hopeless(self) -> bool:
        """Tell whether no wanted part can be reached."""
        return self._is_hopeless

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider if a wanted part can still be reached."""
        state = taken(self._states[-1], self._amounts[depth], kind_of(provider, self._tree))
        if state not in self._good[depth]:
            return False
        self._states.append(state)
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        """Undo the last choice."""
        self._states.pop()
