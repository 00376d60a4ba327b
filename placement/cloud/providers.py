"""Who the providers of a cloud are, in columns: by position, sorted by tree; and which rows of columns are alike."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NO_PARENT = 0


@dataclass(frozen=True, eq=False)
class ProviderColumns:
    """Who the providers are, sorted by the id of their root, then by their own; a root's parent is ``NO_PARENT``.

    ``roots`` has one for each tree, ascending; ``starts`` the position of its first provider, and last their number.
    """

    ids: Ints
    parents: Ints
    roots: Ints
    starts: Ints

    @classmethod
    def sorted_from(cls, root_of: Ints, ids: Ints, parents: Ints) -> "ProviderColumns":
        """Return the columns for providers that are sorted already, given the root of each."""
        starts = np.flatnonzero(np.diff(root_of, prepend=root_of[:1] - 1))
        return cls(ids, parents, root_of[starts], np.append(starts, len(ids)))

    @cached_property
    def trees(self) -> Ints:
        """The index of each provider's tree."""
        return np.repeat(np.arange(len(self.roots)), np.diff(self.starts))

    def with_ancestors(self, at: Ints) -> Ints:
        """Return the positions of providers and of all that they are in, ascending."""
        reached = np.zeros(len(self.ids), dtype=bool)
        while len(at):
            reached[at] = True
            above = self.parent_positions[at]
            above = above[above >= 0]
            at = np.unique(above[~reached[above]])  # an odd database may have a cycle
        return np.flatnonzero(reached)

    def nearest(self, at: Ints, is_place: Flags) -> Ints:
        """Return the positions of the nearest places at or above some providers, -1 where there is none."""
        nearest, current = np.full(len(at), -1), at
        for _ in range(self.longest_way_up):
            is_found = (current >= 0) & (nearest < 0) & is_place[current]
            nearest[is_found] = current[is_found]
            current = np.where((current >= 0) & (nearest < 0), self.parent_positions[current], -1)
            if not (current >= 0).any():
                break
        return nearest

    def inside(self, places: Flags) -> Flags:
        """Return which providers are places, or lie below one."""
        inside, has_parent = places.copy(), self.parent_positions >= 0
        reached = places
        while reached.any():
            reached = has_parent & reached[self.parent_positions] & ~inside
            inside |= reached
        return inside

    @cached_property
    def longest_way_up(self) -> int:
        """The number of providers in the largest tree: even in an odd database with a cycle no way up is longer."""
        return int(np.diff(self.starts).max(initial=0))

    def parents_of(self, at: Ints) -> dict[int, int | None]:
        """Return the parent of each of some providers by id, None for roots."""
        parents = [None if parent == NO_PARENT else parent for parent in self.parents[at].tolist()]
        return dict(zip(self.ids[at].tolist(), parents, strict=True))

    @cached_property
    def parent_positions(self) -> Ints:
        """The position of each provider's parent, -1 for roots."""
        return self.positions(self.parents)

    @cached_property
    def root_positions(self) -> Ints:
        """The position of each tree's root, -1 if that does not exist."""
        return self.positions(self.roots)

    @cached_property
    def _by_id(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.ids, kind="stable")
        return self.ids[order], order

    def positions(self, ids: npt.ArrayLike) -> Ints:
        """Return the positions of providers by id, -1 for those that are not here."""
        ascending, order = self._by_id
        places = places_in(ascending, np.asarray(ids, dtype=np.int64))
        return np.where(places >= 0, order[places], -1) if len(order) else places

    def positions_of_trees(self, roots: Collection[int]) -> Ints:
        """Return the positions of all providers of trees by the ids of their roots, without those that are not here."""
        indices = self.tree_indices(sorted(roots))
        return self.positions_in(indices[indices >= 0])

    def root_of(self, ids: Collection[int]) -> dict[int, int]:
        """Return the id of the root of each of some providers, without those that are not here."""
        at = self.positions(sorted(ids))
        at = at[at >= 0]
        return dict(zip(self.ids[at].tolist(), self.roots[self.trees[at]].tolist(), strict=True))

    def tree_indices(self, roots: npt.ArrayLike) -> Ints:
        """Return the indices of trees by the ids of their roots, -1 for those that are not here."""
        return places_in(self.roots, np.asarray(roots, dtype=np.int64))

    def is_same_as(self, second: "ProviderColumns") -> bool:
        """Tell whether the providers are the same, in the same trees."""
        columns = [(columns_.ids, columns_.parents, columns_.roots, columns_.starts) for columns_ in (self, second)]
        return all(map(np.array_equal, *columns))

    def of_trees(self, indices: Ints) -> "ProviderColumns":
        """Return those of some trees alone; the indices ascend."""
        at = self.positions_in(indices)
        root_of = np.repeat(self.roots[indices], self.starts[indices + 1] - self.starts[indices])
        return ProviderColumns.sorted_from(root_of, self.ids[at], self.parents[at])

    def positions_in(self, indices: Ints) -> Ints:
        """Return the positions of all providers of some trees."""
        return joined_ranges(self.starts[indices], self.starts[indices + 1])


def places_in(ascending: Ints, numbers: Ints) -> Ints:
    """Return where wanted numbers stand in an ascending column, -1 for those that are missing."""
    if not len(ascending):
        return np.full(len(numbers), -1)
    at = np.searchsorted(ascending, numbers)
    at[at == len(ascending)] = 0
    return np.where(ascending[at] == numbers, at, -1)


def joined_ranges(first: Ints, after: Ints) -> Ints:
    """Return the numbers of several ranges, one range after the other.

    >>> joined_ranges(np.array([3, 8]), np.array([5, 9])).tolist()
    [3, 4, 8]
    """
    sizes = after - first
    return np.repeat(first - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(sizes.sum())


NUMBERS_PER_ROW = 4
"""Up to this many numbers for each row, marking those that occur is faster than sorting."""

MAX_RANGE = 2**31
"""Columns with larger numbers are renumbered first, so that no product exceeds what integers hold."""


class DistinctRows(NamedTuple):
    """The rows that differ, in the order in which they come; the number of each row among them; where each is first."""

    rows: list[tuple[int, ...]]
    numbers: Ints
    first: Ints


def numbered(columns: Iterable[Ints | Flags]) -> Ints:
    """Number the rows of some columns."""
    numbers: Ints = np.zeros(1, dtype=np.int64)
    for column in columns:
        values = column - column.min(initial=0).astype(np.int64)
        if (limit := int(values.max(initial=0)) + 1) > MAX_RANGE:
            values = np.unique(values, return_inverse=True)[1]
            limit = len(values)
        rows = numbers * limit + values
        if (limit := int(rows.max(initial=0)) + 1) <= NUMBERS_PER_ROW * len(rows):
            is_present = np.zeros(limit, dtype=bool)
            is_present[rows] = True
            numbers = (np.cumsum(is_present) - 1)[rows]
        else:
            numbers = np.unique(rows, return_inverse=True)[1]
    return numbers


def distinct_rows(columns: Sequence[Ints]) -> DistinctRows:
    """Return the rows of some columns that differ; there is at least one column."""
    _numbers, first, numbers = np.unique(numbered(columns), return_index=True, return_inverse=True)
    order = np.argsort(first)
    first = first[order]
    return DistinctRows(
        [*zip(*[column[first].tolist() for column in columns], strict=True)], np.argsort(order)[numbers], first
    )


def numbered_owners(owners: Ints, values: Ints, number: int, *, in_order: bool = False) -> Ints:
    """Number owners by the values that they own, in any order or in the order given; 0 for those that own nothing.

    Args:
        owners: the owner of each value; ascending if the order counts.
        values: the values.
        number: how many owners there are.
        in_order: whether the order of an owner's values counts.
    """
    if not in_order:
        order = np.lexsort((values, owners))
        owners, values = owners[order], values[order]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    sizes = np.diff(np.append(starts, len(owners)))
    numbers = np.zeros(number, dtype=np.int64)
    for size in np.unique(sizes).tolist():
        of_size = starts[sizes == size]
        rows = values[of_size[:, np.newaxis] + np.arange(size)]
        numbers[owners[of_size]] = int(numbers.max()) + 1 + numbered(rows.T)
    return numbers
