"""Incremental bipartite matching of rows to columns, where a column has places for several rows.

It lets the search look ahead: nine groups that need a device each fail at once on eight devices, rather than after 8!
tries. By augmenting paths (Kuhn's algorithm).
"""

from collections.abc import Mapping, Sequence


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
        other = next(holder for holder in holders if holder not in self._fixed)
        holders.remove(other)
        self._seat(row, column)
        if before in self._rows[other]:
            self._seat(other, before)
            return True
        if self._augment(other, set()):
            return True
        holders.remove(row)
        self._seat(other, column)
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
