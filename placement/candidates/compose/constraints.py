"""Constraints on providers chosen together: what rules a combination out although each provider fits alone.

A constraint follows the search step by step: ``take`` accepts or refuses one more provider at a depth, and
``give_back`` undoes what it accepted. To prune early it looks ahead, but soundly: it refuses only if no valid choice
can follow. ``depths`` are the depths that it has to be asked about.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import Tree


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


class Isolation:
    """group_policy=isolate: the providers of granular groups are all different.

    Bipartite matching looks ahead: a provider is refused if the groups to come cannot all have their own then.
    """

    def __init__(self, slots: Sequence[Slot], options: Sequence[Sequence[int]]) -> None:
        granular = [(depth, options[depth]) for depth, slot in enumerate(slots) if slot.is_granular]
        uses = Counter(provider for _depth, row in granular for provider in row)
        # Groups that compete with no other for any provider need no matching.
        rows = {depth: row for depth, row in granular if any(uses[provider] > 1 for provider in row)}
        self.depths = frozenset(rows)
        self._matching = Matching(rows, dict.fromkeys(uses, 1))

    def is_hopeless(self) -> bool:
        """Tell whether there are too few providers."""
        return not self._matching.is_complete

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider that no other granular group has, if the groups to come can still have theirs."""
        return self._matching.fix(depth, provider)

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the matching knows it
        """Undo the last choice for this group."""
        self._matching.free(depth)


class Contention:
    """Slots that take the same class from one provider must fit there together.

    A relaxation looks ahead, which never refuses wrongly and is exact if all amounts are equal: a matching in which
    every slot takes the least amount.
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
        self._matching = Matching(
            {depth: fitting[slots[depth].demand] for depth in self._amounts},
            {provider: int(room // least) for provider, room in self._free.items()},
        )

    def is_hopeless(self) -> bool:
        """Tell whether the providers have too little room for all slots."""
        return not self._matching.is_complete or sum(self._amounts.values()) > sum(self._free.values())

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider with room for this slot beside those already there."""
        amount = self._amounts[depth]
        if self._free[provider] < amount or not self._matching.fix(depth, provider):
            return False
        self._free[provider] -= amount
        return True

    def give_back(self, depth: int, provider: int) -> None:
        """Return this slot's amount to its provider."""
        self._free[provider] += self._amounts[depth]
        self._matching.free(depth)


class SameSubtree:
    """same_subtree: of the providers of some groups, one, the head, is an ancestor of all the others, or the only one.

    ``_common`` is a stack of the common ancestors (each provider being its own) of all providers chosen so far. As long
    as one of these is chosen, or among the options of a group to come, there may be a head.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        options: Sequence[Sequence[int]],
        tree: Tree,
        suffixes: frozenset[str],
        *,
        isolate: bool,
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
        self._later = {
            depth: frozenset(p for later in self.depths if later > depth for p in options[later])
            for depth in self.depths
        }
        self._common: list[frozenset[int] | None] = [None]
        self._chosen: list[int] = []

    def is_hopeless(self) -> bool:
        """Tell whether no option can be the head: above an option of every group, a different one if isolated."""
        if not self._isolate:
            return bool(self._options) and not self._heads
        below = (
            {at: [p for p in row if head in self._ancestry[p]] for at, row in enumerate(self._options)}
            for head in self._heads
        )
        places = dict.fromkeys(self._ancestry, 1)
        return bool(self._options) and not any(Matching(rows, places).is_complete for rows in below)

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
        """Undo the last choice."""
        self._common.pop()
        self._chosen.pop()


class CollectiveTraits:
    """The providers of the unsuffixed group together meet each of its trait sets."""

    def __init__(self, slots: Sequence[Slot], options: Sequence[Sequence[int]], tree: Tree, sets: int) -> None:
        self.depths = frozenset(depth for depth, slot in enumerate(slots) if not slot.is_granular)
        self._all = (1 << sets) - 1
        self._met = tree.met
        self._possible = [self._reach(options, after=depth) for depth in range(-1, len(slots))]
        self._masks = [0]

    def _reach(self, options: Sequence[Sequence[int]], *, after: int) -> int:
        mask = 0
        for depth in self.depths:
            if depth > after:
                for provider in options[depth]:
                    mask |= self._met.get(provider, 0)
        return mask

    def is_hopeless(self) -> bool:
        """Tell whether some trait set is met by no provider."""
        return self._possible[0] != self._all

    def take(self, depth: int, provider: int) -> bool:
        """Accept a provider if the slots to come can meet the sets that are still unmet."""
        mask = self._masks[-1] | self._met.get(provider, 0)
        if mask | self._possible[depth + 1] != self._all:
            return False
        self._masks.append(mask)
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the last one taken is meant
        """Undo the last choice."""
        self._masks.pop()


class OneProviderPerTree(Constraint):
    """Before microversion 1.29, a request takes no two providers of one tree."""

    def __init__(self, slots: Sequence[Slot], tree: Tree) -> None:
        self.depths = frozenset(range(len(slots)))
        self._tree = tree
        self._holder: dict[int, int] = {}
        self._uses: Counter[int] = Counter()

    def take(self, depth: int, provider: int) -> bool:  # noqa: ARG002 - the depth does not matter here
        """Accept a provider unless another one of its tree already serves."""
        root = self._tree.root_of.get(provider, self._tree.root)
        if self._uses[root] and self._holder[root] != provider:
            return False
        self._holder[root] = provider
        self._uses[root] += 1
        return True

    def give_back(self, depth: int, provider: int) -> None:  # noqa: ARG002 - the depth does not matter here
        """Release the provider's tree."""
        self._uses[self._tree.root_of.get(provider, self._tree.root)] -= 1


def _met_by_one_slot(plan: Plan, tree: Tree, slots: Sequence[Slot], options: Sequence[Sequence[int]]) -> bool:
    """Tell whether all options of some slot of the unsuffixed group meet all trait sets by themselves."""
    all_sets = (1 << len(plan.trait_sets)) - 1
    for slot, providers in zip(slots, options, strict=True):
        if not slot.is_granular and all([tree.met.get(provider, 0) == all_sets for provider in providers]):
            return True
    return False


def constraints_on(plan: Plan, tree: Tree, slots: Sequence[Slot], options: Sequence[Sequence[int]]) -> list[Constraint]:
    """Return the constraints of a plan that can refuse anything, for slots in search order."""
    constraints: list[Constraint] = []
    isolate = plan.request.isolate
    if isolate and sum(slot.is_granular for slot in slots) > 1:
        constraints.append(Isolation(slots, options))
    constraints.extend(Contention(slots, options, tree, name) for name in plan.contended)
    constraints.extend(
        SameSubtree(slots, options, tree, suffixes, isolate=isolate) for suffixes in plan.request.same_subtree
    )
    if plan.trait_sets and not _met_by_one_slot(plan, tree, slots, options):
        constraints.append(CollectiveTraits(slots, options, tree, len(plan.trait_sets)))
    if not plan.request.combines_nested and len(slots) > 1:
        constraints.append(OneProviderPerTree(slots, tree))
    return constraints


class Matching:
    """A column for each row, if possible, maintained while a search fixes rows to columns and frees them.

    While the matching is complete, every row holds a column, and no column more rows than it has places. The search
    changes one row at a time, so at most one other row loses its column, and one augmenting path finds it another.

    Args:
        rows: the columns that each row may have.
        places: how many rows each column can take.

    >>> matching = Matching({0: [7, 8], 1: [7]}, places={7: 1, 8: 1})
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
        """Fix a row to a column if all other rows can still have one; otherwise change nothing. O(edges), mostly O(1).

        The row keeps the column until it is freed.
        """
        if self._open[column] <= 0 or not self.is_complete:
            return False
        self._fixed.add(row)
        if self._column[row] != column and not self._move(row, column):
            self._fixed.discard(row)
            return False
        self._open[column] -= 1
        return True

    def free(self, row: int) -> None:
        """Let a row have any column again."""
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
