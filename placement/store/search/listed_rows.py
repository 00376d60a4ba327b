"""Queries that return rows with equal keys as one row, with lists of what these rows differ in.

A list of ten thousand ids costs a tenth of what ten thousand rows cost in the driver and thereafter. Only PostgreSQL
makes lists: SQLite and MariaDB make texts, the latter cut off at a limit, so there the rows are listed here.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from placement.store.connection.prepared import PreparedStatement, Values
from placement.store.connection.unit_of_work import Transaction


class ListedRows:
    """A query by keys.

    Args:
        keys: the columns that rows have in common.
        members: the columns to list.
        of: adds to a selection of columns where they come from.
    """

    def __init__(
        self,
        keys: Sequence[ColumnElement[Any]],
        members: Sequence[ColumnElement[Any]],
        of: Callable[[Select[Any]], Select[Any]],
    ) -> None:
        lists = [func.array_agg(member) for member in members]
        self._keys = len(keys)
        self._listed = PreparedStatement(lambda: of(select(*keys, *lists)).group_by(*keys))
        self._rows = PreparedStatement(lambda: of(select(*keys, *members)))

    def read(self, tx: Transaction, values: Values) -> Iterable[tuple[Any, ...]]:
        """Return a row for all equal keys: the keys, then a list for each member; members of a row stand at one place.

        Their order is not defined.
        """
        if tx.dialect == "postgresql":
            return tx.tuples(self._listed, values)
        return _listed(tx.tuples(self._rows, values), self._keys)


def _listed(rows: Iterable[Sequence[Any]], keys: int) -> Iterable[tuple[Any, ...]]:
    """List the members of rows, given the number of keys.

    >>> [*_listed([("a", 1, 10), ("b", 2, 20), ("a", 3, 30)], 1)]
    [('a', [1, 3], [10, 30]), ('b', [2], [20])]
    """
    found: dict[Sequence[Any], list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        found[tuple(row[:keys])].append(row[keys:])
    return [(*key, *map(list, zip(*members, strict=True))) for key, members in found.items()]
