"""The assignment problem: match rows to columns one to one so that the sum of weights is maximal.

Kuhn's Hungarian method with prices and shortest augmenting paths, O(rows^2 x columns). Weights are integers of any
size, so nothing is rounded and several objectives can be packed into one number.
"""

from collections.abc import Sequence

WeightMatrix = Sequence[Sequence[int | None]]
"""For each row the weight of each column; None forbids the pair."""


def best_assignment(weights: WeightMatrix) -> tuple[int, ...] | None:
    """Return the column of each row in an optimal assignment, or None if there is none.

    >>> best_assignment([[5, 4], [5, 1]])
    (1, 0)
    >>> best_assignment([[5, None], [5, None]]) is None
    True
    """
    method = _Hungarian(weights)
    if not all([method.admit(row) for row in range(len(weights))]):
        return None
    column_of = {row: column for column, row in method.row_of.items()}
    return tuple([column_of[row] for row in range(len(weights))])


class _Hungarian:
    """The method row by row. Invariant: the rows admitted so far have an optimal assignment."""

    def __init__(self, weights: WeightMatrix) -> None:
        self._weights = weights
        self.row_of: dict[int, int] = {}
        self._row_prices = [max([weight for weight in row if weight is not None], default=0) for row in weights]
        self._column_prices = [0] * (len(weights[0]) if weights else 0)

    def admit(self, row: int) -> bool:
        """Match one more row, along the cheapest augmenting path; return False if it cannot be matched."""
        waiting: dict[int, int] = {}  # column -> how far its reduced cost is from 0
        before: dict[int, int] = {}  # column -> the column from whose row it was reached
        reached: list[int] = []
        here, last = row, -1
        while True:
            for column, weight in enumerate(self._weights[here]):
                if weight is not None and column not in reached:
                    distance = self._row_prices[here] + self._column_prices[column] - weight
                    if column not in waiting or distance < waiting[column]:
                        waiting[column], before[column] = distance, last
            if not waiting:
                return False
            # Among equals, an unmatched column ends the search at once.
            last = min(waiting, key=lambda column: (waiting[column], column in self.row_of, column))
            step = waiting.pop(last)
            self._lower([row, *[self.row_of[column] for column in reached]], reached, step)
            waiting = {column: distance - step for column, distance in waiting.items()}
            reached.append(last)
            if last not in self.row_of:
                break
            here = self.row_of[last]
        while last >= 0:
            origin = before[last]
            self.row_of[last] = row if origin < 0 else self.row_of[origin]
            last = origin
        return True

    def _lower(self, rows: Sequence[int], columns: Sequence[int], step: int) -> None:
        """Adjust prices so that one more column becomes tight; the present assignment stays optimal."""
        for row in rows:
            self._row_prices[row] -= step
        for column in columns:
            self._column_prices[column] += step
