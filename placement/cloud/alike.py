"""Numbers what is alike: rows of columns, and trees by the rows of their providers. Equal ones get the same number."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placement.cloud.columns import CloudColumns
from placement.cloud.providers import Flags, Ints

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


def stock_columns(columns: CloudColumns, class_ids: Collection[int]) -> Iterator[Ints]:
    """Yield what each provider has of some classes, by position: a column for each amount of a stock; -2 for none."""
    for class_id in sorted(class_ids):
        stock = columns.stock(class_id)
        for amounts in stock[1:]:
            column = np.full(len(columns.providers.ids), -2)
            # Negative capacities are as good as none.
            column[stock.at] = np.maximum(-1, amounts.astype(np.int64))
            yield column


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
