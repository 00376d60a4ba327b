"""Constraints on providers chosen together: what rules a combination out although each provider fits alone.

A constraint follows the search step by step: ``take`` accepts or refuses one more provider at a depth, and
``give_back`` undoes what it accepted. To prune early it looks ahead, but soundly: it refuses only if no valid choice
can follow. ``depths`` are the depths that it has to be asked about.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import or_
from typing import Protocol

from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import Tree

Rows = Sequence[Sequence[int]]
"""The options of each slot in a tree."""


class Constraint(Protocol):
    """A rule about providers chosen together."""

    depths: frozenset[int]

    def is_hopeless(self) -> bool:
        """Tell whether no combination can satisfy the rule; asked once, before the search, to which some leave it."""
        return False

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider at a depth, or refuse it and change nothing."""

    def give_back(self, depth: int, provider: int) -> None:
        """Undo what ``take`` accepted."""


class _Isolation:
    """group_policy=isolate: the providers of granular groups are all different, also of those to come."""

    def __init__(self, slots: Sequence[Slot], options: Sequence[Sequence[int]]) -> None:
        granular = [(depth, options[depth]) for depth, slot in enumerate(slots) if slot.is_granular]
        uses = Counter(provider for _depth, row in granular for provider in row)
        # Groups that compete with no other for any provider need no matching.
        rows = {depth: row for depth, row in granular if any(uses[provider] > 1 for provider in row)}
        self.depths = frozenset(rows)
        self._matching = _Matching(rows, dict.fromkeys(uses, 1))

    def is_hopeless(self) -> bool:
        return not self._matching.is_complete

    def take(self, depth: int, provider: int) -> bool:
        return self._matching.fix(depth, provider)

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the matching knows it
        self._matching.free(depth)


class _Contention:
    """Slots that take the same class from one provider must fit there together.

    It looks ahead by a matching in which every slot takes the least amount: never wrong, and exact for equal amounts.
    """

    def __init__(self, slots: Sequence[Slot], options: Sequence[Sequence[int]], tree: Tree, name: str) -> None:
        amounts = {depth: dict(slot.resources).get(name, 0) for depth, slot in enumerate(slots)}
        self._amounts = {depth: amount for depth, amount in amounts.items() if amount}
        self.depths = frozenset(self._amounts)
        least = min(self._amounts.values())
        # Slots of one demand ask for the same amount of the same providers.
        of_demands = {slots[depth].demand: depth for depth in self._amounts}
        providers = {provider for depth in of_demands.values() for provider in options[depth]}
        self._free = {provider: tree.room[provider, name] for provider in providers}
        fitting = {
            demand: [provider for provider in options[depth] if self._free[provider] >= self._amounts[depth]]
            for demand, depth in of_demands.items()
        }
        self._matching = _Matching(
            {depth: fitting[slots[depth].demand] for depth in self._amounts},
            {provider: int(room // least) for provider, room in self._free.items()},
        )

    def is_hopeless(self) -> bool:
        return not self._matching.is_complete or sum(self._amounts.values()) > sum(self._free.values())

    def take(self, depth: int, provider: int) -> bool:
        amount = self._amounts[depth]
        if self._free[provider] < amount or not self._matching.fix(depth, provider):
            return False
        self._free[provider] -= amount
        return True

    def give_back(self, depth: int, provider: int) -> None:
        self._free[provider] += self._amounts[depth]
        self._matching.free(depth)


class _SameSubtree:
    """same_subtree: of the providers of some groups, one, the head, is an ancestor of all the others, or the only one.

    ``_common`` is a stack of the common ancestors (each provider being its own) of all providers chosen so far. As long
    as one of these is chosen, or among the options of a group to come, there may be a head.
    """

    def __init__(
        self, slots: Sequence[Slot], options: Rows, tree: Tree, suffixes: frozenset[str], *, isolate: bool
    ) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if slot.suffix in suffixes)
        members = {provider for depth in self.depths for provider in options[depth]}
        self._ancestry = {provider: tree.ancestry(provider) for provider in members}
        self._options = [options[depth] for depth in self.depths]
        self._isolate = isolate
        reached = [frozenset().union(*(self._ancestry[p] for p in row)) for row in self._options]
        self._heads = frozenset.intersection(*reached) & self._ancestry.keys() if reached else frozenset()
        """The options that are above an option of every group."""
        if not isolate:
            self._ancestry = {provider: above & self._heads for provider, above in self._ancestry.items()}
        later = {depth: [options[after] for after in self.depths if after > depth] for depth in self.depths}
        self._later = {depth: frozenset(chain.from_iterable(rows)) for depth, rows in later.items()}
        self._common: list[frozenset[int] | None] = [None]
        self._chosen: list[int] = []

    def is_hopeless(self) -> bool:
        """Tell whether no option can be the head: above an option of every group, a different one if isolated."""
        if not self._isolate:
            return bool(self._options) and not self._heads
        places = dict.fromkeys(self._ancestry, 1)
        for head in self._heads if self._options else ():
            below = {at: [p for p in row if head in self._ancestry[p]] for at, row in enumerate(self._options)}
            if _Matching(below, places).is_complete:
                return False
        return bool(self._options)

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider if some common ancestor of those chosen is one of them, or may still become one."""
        common = self._common[-1]
        shared = self._ancestry[provider] if common is None else common & self._ancestry[provider]
        has_head = provider in shared or not shared.isdisjoint(self._chosen)
        if not has_head and shared.isdisjoint(self._later[depth]):
            return False
        self._common.append(shared)
        self._chosen.append(provider)
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        self._common.pop()
        self._chosen.pop()


class _CollectiveTraits:
    """The providers of the unsuffixed group together meet each of its trait sets."""

    def __init__(self, slots: Sequence[Slot], options: Sequence[Sequence[int]], tree: Tree, sets: int) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if not slot.is_granular)
        self._all = (1 << sets) - 1
        self._met = tree.met
        self._possible = [0]
        """By depth, the sets that the slots from there on can meet."""
        for depth in reversed(range(len(slots))):
            reached = [tree.met.get(provider, 0) for provider in options[depth]] if depth in self.depths else []
            self._possible.insert(0, reduce(or_, reached, self._possible[0]))
        self._masks = [0]

    def is_hopeless(self) -> bool:
        return self._possible[0] != self._all

    def take(self, depth: int, provider: int) -> bool:
        mask = self._masks[-1] | self._met.get(provider, 0)
        if mask | self._possible[depth + 1] != self._all:
            return False
        self._masks.append(mask)
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        self._masks.pop()


class _OneProviderPerTree(Constraint):
    """Before microversion 1.29, a request takes no two providers of one tree."""

    def __init__(self, slots: Sequence[Slot], tree: Tree) -> None:
        self.depths = frozenset(range(len(slots)))
        self._tree = tree
        self._holder: dict[int, int] = {}
        self._uses: Counter[int] = Counter()

    def take(self, depth: int, provider: int) -> bool:  # noqa: ARG002 - the depth does not matter here
        root = self._tree.root_of.get(provider, self._tree.root)
        if self._uses[root] and self._holder[root] != provider:
            return False
        self._holder[root] = provider
        self._uses[root] += 1
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the depth does not matter here
        self._uses[self._tree.root_of.get(provider, self._tree.root)] -= 1


def constraints_on(plan: Plan, tree: Tree, slots: Sequence[Slot], options: Sequence[Sequence[int]]) -> list[Constraint]:
    """Return the constraints of a plan that can refuse anything, for slots in search order."""
    constraints: list[Constraint] = []
    isolate = plan.request.isolate
    if isolate and sum(slot.is_granular for slot in slots) > 1:
        constraints.append(_Isolation(slots, options))
    constraints += [_Contention(slots, options, tree, name) for name in plan.contended]
    ties = plan.request.same_subtree
    constraints += [_SameSubtree(slots, options, tree, suffixes, isolate=isolate) for suffixes in ties]
    all_sets = (1 << len(plan.trait_sets)) - 1
    loose = [row for slot, row in zip(slots, options, strict=True) if not slot.is_granular] if all_sets else []
    # A slot all of whose options meet all sets by themselves leaves nothing to check.
    if all_sets and not any([all([tree.met.get(provider, 0) == all_sets for provider in row]) for row in loose]):
        constraints.append(_CollectiveTraits(slots, options, tree, len(plan.trait_sets)))
    if not plan.request.combines_nested and len(slots) > 1:
        constraints.append(_OneProviderPerTree(slots, tree))
    return constraints


class _Matching:
    """A column for each row, if possible, maintained while a search fixes rows to columns and frees them.

    While the matching is complete, every row holds a column, and no column more rows than it has places. The search
    changes one row at a time, so at most one other row loses its column, and one augmenting path finds it another.
    ``rows`` has the columns that each row may have, ``places`` how many rows each column can take.

    >>> matching = _Matching({0: [7, 8], 1: [7]}, places={7: 1, 8: 1})
    >>> matching.fix(0, 7), matching.fix(0, 8)
    (False, True)
    """

    def __init__(self, rows: Mapping[int, Sequence[int]], places: Mapping[int, int]) -> None:
        self._rows = rows
        self._places = places
        self._open = dict(places)  # places that no fixed row holds
        self._holders: dict[int, list[int]] = {column: [] for row in rows.values() for column in row}
        self._column: dict[int, int] = {}
        self._fixed: set[int] = set()
        self.is_complete = all([self._augment(row, set()) for row in rows])
        """Whether every row has a column."""

    def fix(self, row: int, column: int) -> bool:
        """Fix a row to a column until freed, if all other rows can still have one. O(edges), mostly O(1)."""
        if self._open[column] <= 0 or not self.is_complete:
            return False
        self._fixed.add(row)
        if self._column[row] != column and not self._move(row, column):
            self._fixed.discard(row)
            return False
        self._open[column] -= 1
        return True

    def free(self, row: int) -> None:
        self._fixed.discard(row)
        self._open[self._column[row]] += 1

    def _move(self, row: int, column: int) -> bool:
        before, holders = self._column[row], self._holders[column]
        self._holders[before].remove(row)
        if len(holders) < self._places[column]:
            self._seat(row, column)
            return True
        # Any holder may give way: the augmenting path can move another one in its stead.
        displaced = next(holder for holder in holders if holder not in self._fixed)
        holders.remove(displaced)
        self._seat(row, column)
        if before in self._rows[displaced]:
            self._seat(displaced, before)
            return True
        if self._augment(displaced, set()):
            return True
        holders.remove(row)
        self._seat(displaced, column)
        self._seat(row, before)
        return False

    def _seat(self, row: int, column: int) -> None:
        self._holders[column].append(row)
        self._column[row] = column

    def _augment(self, row: int, visited: set[int]) -> bool:
        """Find a row a column, moving other rows if necessary; otherwise change nothing."""
        for column in self._rows[row]:
            if column in visited:
                continue
            visited.add(column)
            holders = self._holders[column]
            if len(holders) < self._places[column]:
                self._seat(row, column)
                return True
            for holder in holders:
                if holder not in self._fixed and self._augment(holder, visited):
                    # The holder has found another column, so its place is free.
                    holders.remove(holder)
                    self._seat(row, column)
                    return True
        return False
