"""The own part of a candidate: what a tree itself gives where others share with it. The score charges only this.

Say a host has two pools to take storage from, its own disk and a shared one. A candidate with 4 VCPU and 100 GB has the
own part (4, 100) if the disk serves, and (4, 0) if the pool does. There are few own parts, though there may be many
candidates: thus they can be composed own part by own part, the best score first.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache, partial
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
        # Trees differ in little that matters here.
        self._possible = lru_cache(maxsize=1000)(self._states)
        self._pools = lru_cache(maxsize=1000)(_sets_of_one_each)
        self.leading_to = lru_cache(maxsize=1000)(partial(_leading_to, self.nothing))

    def possible(self, tree: Tree) -> AbstractSet[OwnAmounts] | None:
        """Return the own parts of candidates to which a tree itself gives anything; None if there may be too many."""
        return self._possible(self.kinds(tree))

    def kinds(self, tree: Tree) -> tuple[int, ...]:
        """Return for each demand the set of kinds of its providers."""
        sharing = tree.sharing
        return tuple(
            [
                OWN if sharing.isdisjoint(row) else sum({kind_of(provider, tree) for provider in row})
                for row in tree.options
            ]
        )

    def _states(self, kinds: tuple[int, ...]) -> AbstractSet[OwnAmounts] | None:
        states: AbstractSet[OwnPartSoFar] = {self.nothing}
        for _index, demand, amounts in self._taking:
            states = _following(states, amounts, kinds[demand])
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
        return frozenset([root_of(choice[index], alone) for index, _demand, _amounts in self._taking])

    def possible_pools(self, alone: Tree) -> AbstractSet[frozenset[int]] | None:
        """Return the sets of trees that choices of sharing options may take from; None if there are too many."""
        roots = {
            demand: frozenset([root_of(provider, alone) for provider in alone.options[demand]])
            for demand in self._demands
        }
        return self._pools(tuple([roots[demand] for _index, demand, _amounts in self._taking]))

    def within(self, alone: Tree, roots: AbstractSet[int]) -> Tree:
        """Return such a tree with only the options that lie in some trees."""
        rows = [
            [provider for provider in row if root_of(provider, alone) in roots] if demand in self._demands else row
            for demand, row in enumerate(alone.options)
        ]
        return replace(alone, options=rows)


def root_of(provider: int, tree: Tree) -> int:
    """Return the root of the tree that an option of a tree lies in."""
    return tree.root_of.get(provider, tree.root)


def kind_of(provider: int, tree: Tree) -> int:
    """Return what kind of provider one is to a tree."""
    if provider not in tree.sharing:
        return OWN
    return ITS_OWN_SHARING if root_of(provider, tree) == tree.root else FOREIGN


def taken(state: OwnPartSoFar, amounts: OwnAmounts, kind: int) -> OwnPartSoFar:
    """Return the own part so far with the amounts of one more provider, of some kind."""
    given, is_of_tree = state
    if kind == FOREIGN:
        return state
    return tuple(map(add, given, amounts)), is_of_tree or kind == OWN


def _following(states: Iterable[OwnPartSoFar], amounts: OwnAmounts, kinds: int) -> AbstractSet[OwnPartSoFar]:
    """Return the own parts so far once a provider of some kinds gives this much; the same if there are no kinds."""
    if not kinds:
        return {*states}
    possible = [kind for kind in (OWN, ITS_OWN_SHARING, FOREIGN) if kind & kinds]
    return {taken(state, amounts, kind) for state in states for kind in possible}


def _leading_to(
    nothing: OwnPartSoFar, wanted: AbstractSet[OwnAmounts], takes: Sequence[tuple[OwnAmounts, int]]
) -> Sequence[AbstractSet[OwnPartSoFar]]:
    """Return the states before the first slot, and after each, from which a wanted own part can be reached.

    Args:
        nothing: the state before the first slot.
        wanted: the own parts wanted.
        takes: what each slot takes, and the kinds of its providers; no kind if it takes nothing.
    """
    reached: list[AbstractSet[OwnPartSoFar]] = [{nothing}]
    for amounts, kinds in takes:
        reached.append(_following(reached[-1], amounts, kinds))
    good: list[AbstractSet[OwnPartSoFar]] = [{(given, True) for given in wanted}]
    for states, (amounts, kinds) in zip(reversed(reached[:-1]), reversed(takes), strict=True):
        good.append({one for one in states if not good[-1].isdisjoint(_following([one], amounts, kinds))})
    return good[::-1]


def _sets_of_one_each(rows: Sequence[AbstractSet[int]]) -> AbstractSet[frozenset[int]] | None:
    """Return the sets that have one of each row; None if there are too many."""
    found = {frozenset[int]()}
    for row in rows:
        found = {chosen | {one} for chosen in found for one in row}
        if len(found) > MAX_OWN_PARTS:
            return None
    return found


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
        of_demand = own_parts.kinds(tree)
        kinds = [of_demand[slot.demand] if slot.resources else 0 for slot in slots]
        before, *after = own_parts.leading_to(frozenset(wanted), tuple(zip(self._amounts, kinds, strict=True)))
        self._is_hopeless = not before
        self._good = after
        """For each depth, the states after it from which a wanted part can be reached."""

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
