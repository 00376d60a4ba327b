"""The assignment problem: match rows to columns one to one so that the sum of weights is maximal.

Kuhn's Hungarian method with potentials and shortest augmenting paths, O(rows^2 x columns). Weights are integers of any
size, so nothing is rounded and several objectives can be packed into one number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WeightMatrix = Sequence[Sequence[int | None]]


@dataclass(frozen=True, slots=True)
class Assignment:
    """An optimal assignment.

    Args:
        columns: the column of each row.
        total: the sum of the weights.
        row_prices, column_prices: the dual solution. The two prices of a pair add up to its weight where it is matched,
            and to no less elsewhere. Column prices are never negative, and 0 for unmatched columns. So the prices prove
            optimality, and bound what can be achieved when part of the assignment is fixed otherwise.
    """

    columns: tuple[int, ...]
    total: int
    row_prices: tuple[int, ...]
    column_prices: tuple[int, ...]


def best_assignment(weights: WeightMatrix) -> Assignment | None:
    """Return an optimal assignment of each row to a column of its own, or None if there is none.

    Args:
        weights: for each row the weight of each column; None forbids the pair.

    >>> best_assignment([[5, 4], [5, 1]]).columns
    (1, 0)
    >>> best_assignment([[5, None], [5, None]]) is None
    True
    """
    method = _Hungarian(weights)
    if not all([method.admit(row) for row in range(len(weights))]):
        return None
    columns = [0] * len(weights)
    for column, row in enumerate(method.row_of):
        if row is not None:
            columns[row] = column
    total = sum([weights[row][column] or 0 for row, column in enumerate(columns)])
    return Assignment(tuple(columns), total, tuple(method.row_prices), tuple(method.column_prices))


class _Hungarian:
    """The method row by row. Invariant: the rows admitted so far have an optimal assignment."""

    def __init__(self, weights: WeightMatrix) -> None:
        self._weights = weights
        self._width = len(weights[0]) if weights else 0
        self.row_of: list[int | None] = [None] * self._width
        self.row_prices = [max([weight for weight in row if weight is not None], default=0) for row in weights]
        self.column_prices = [0] * self._width
        self._distance: list[int | None] = []  # how far each column's reduced cost is from 0
        self._before: list[int] = []  # the column from whose row each column was reached
        self._reached: set[int] = set()

    def admit(self, row: int) -> bool:
        """Match one more row, along an augmenting path if need be; return False if it cannot be matched."""
        self._distance = [None] * self._width
        self._before = [-1] * self._width
        self._reached = set()
        last = -1
        current: int | None = row
        while current is not None:
            self._look(current, last)
            column = self._nearest()
            if column is None:
                return False
            self._lower(row, self._distance[column] or 0)
            self._reached.add(column)
            last, current = column, self.row_of[column]
        self._shift(row, last)
        return True

    def _look(self, row: int, last: int) -> None:
        """Relax the distances of columns by the edges of a row."""
        price = self.row_prices[row]
        for column, weight in enumerate(self._weights[row]):
            if weight is None or column in self._reached:
                continue
            distance = price + self.column_prices[column] - weight
            known = self._distance[column]
            if known is None or distance < known:
                self._distance[column], self._before[column] = distance, last

    def _nearest(self) -> int | None:
        best: tuple[int, bool] | None = None
        nearest = None
        for column, distance in enumerate(self._distance):
            if distance is None or column in self._reached:
                continue
            # Among equals, an unmatched column ends the search at once.
            rank = (distance, self.row_of[column] is not None)
            if best is None or rank < best:
                best, nearest = rank, column
        return nearest

    def _lower(self, row: int, step: int) -> None:
        """Adjust prices so that one more column becomes tight; the present assignment stays optimal."""
        if not step:
            return
        self.row_prices[row] -= step
        for column in self._reached:
            self.column_prices[column] += step
            holder = self.row_of[column]
            if holder is not None:
                self.row_prices[holder] -= step
        for column, distance in enumerate(self._distance):
            if distance is not None and column not in self._reached:
                self._distance[column] = distance - step

    def _shift(self, row: int, last: int) -> None:
        """Augment: hand the columns on along the path that reached the last one."""
        while last >= 0:
            origin = self._before[last]
            self.row_of[last] = row if origin < 0 else self.row_of[origin]
            last = origin


def first_assignment(weights: WeightMatrix) -> tuple[int, ...] | None:
    """Return the lexicographically first optimal assignment: the first row takes the lowest possible column, and so on.

    >>> first_assignment([[1, 1, 1], [1, 1, 1]])
    (0, 1)
    >>> first_assignment([[1, 1], [2, 1]])
    (1, 0)
    """
    best = best_assignment(weights)
    if best is None or not weights:
        return None if best is None else ()
    return _FirstOfEquals(weights, best).columns()


class _FirstOfEquals:
    """Walks through the optimal assignments by exchanging tight pairs.

    Padded with dummy rows that take the unmatched columns, the optimal assignments are exactly those that use only
    pairs whose prices add up to their weight.
    """

    def __init__(self, weights: WeightMatrix, best: Assignment) -> None:
        height, width = len(weights), len(weights[0])
        free = [column for column, price in enumerate(best.column_prices) if price == 0]
        self._tight = [self._tight_columns(row, weights[row], best) for row in range(height)]
        self._tight += [free] * (width - height)
        self._column_of = [*best.columns, *sorted(set(range(width)) - set(best.columns))]
        self._row_of = [0] * width
        for row, column in enumerate(self._column_of):
            self._row_of[column] = row
        self._height = height

    def _tight_columns(self, row: int, weights: Sequence[int | None], best: Assignment) -> list[int]:
        price = best.row_prices[row]
        return [column for column, weight in enumerate(weights) if weight == price + best.column_prices[column]]

    def columns(self) -> tuple[int, ...]:
        for row in range(self._height):
            for column in self._tight[row]:
                if column == self._column_of[row] or self._give(row, column):
                    break
        return tuple(self._column_of[: self._height])

    def _give(self, row: int, column: int) -> bool:
        """Give a row the column of a later row, if that one and others can move to close the gap."""
        holder = self._row_of[column]
        if holder < row:
            return False
        gap = self._column_of[row]
        if not self._close(gap, holder, row, column):
            return False
        self._set(row, column)
        return True

    def _close(self, gap: int, holder: int, fixed: int, taken: int) -> bool:
        """Move the holder of a taken column and a chain of later rows, so that the last of them fills the gap."""
        origin: dict[int, int] = {}
        rows = [holder]
        for row in rows:
            for column in self._tight[row]:
                if column in origin or column == taken or (column != gap and self._row_of[column] <= fixed):
                    continue
                origin[column] = row
                if column == gap:
                    self._shift(gap, holder, origin)
                    return True
                rows.append(self._row_of[column])
        return False

    def _shift(self, gap: int, holder: int, origin: dict[int, int]) -> None:
        column = gap
        while True:
            row = origin[column]
            left = self._column_of[row]
            self._set(row, column)
            if row == holder:
                return
            column = left

    def _set(self, row: int, column: int) -> None:
        self._column_of[row] = column
        self._row_of[column] = row
