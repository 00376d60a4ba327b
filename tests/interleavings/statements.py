"""What a statement may have to do with a statement of another request; knows SQL by its words only.

Two statements whose order cannot make a difference are independent, and only one order of them has to be tried. When in
doubt, statements depend on each other: that costs time, but misses nothing. Under READ COMMITTED, a read sees what was
committed before it, so it depends on the commits of others and not on their writes.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import MetaData

READ, WRITE, END = "read", "write", "end"
"""Kinds of steps: what takes no lock, what may take one, and the end of a transaction, which gives all of them back."""

FREE = frozenset({(READ, READ), (READ, WRITE), (WRITE, READ), (END, END)})
"""Kinds whose order never matters."""

EVERYTHING = "*"
"""Stands for all tables."""

_WORD = re.compile(r"\w+")


class Step(NamedTuple):
    """A statement that a request sends, or the end of its transaction.

    Args:
        request: the number of the request.
        text: its SQL.
        kind: READ, WRITE or END.
        tables: what it reads or locks; at the end of a transaction what that has changed or locked.
    """

    request: int
    text: str
    kind: str
    tables: frozenset[str]

    def depends_on(self, other: "Step") -> bool:
        """Tell whether the order of two steps of different requests may matter."""
        if (self.kind, other.kind) in FREE or not self.tables or not other.tables:
            return False
        return EVERYTHING in self.tables | other.tables or not self.tables.isdisjoint(other.tables)


class Transaction:
    """What a request's open transaction has touched so far."""

    def __init__(self, neighbours: Mapping[str, frozenset[str]]) -> None:
        self._neighbours = neighbours
        self._changed: set[str] = set()
        self._has_read = False

    def step(self, request: int, text: str) -> Step:
        """Describe the next statement."""
        named = {word for word in _WORD.findall(text) if word in self._neighbours}
        if is_read(text):
            # The first read may fix what all later ones see.
            tables = frozenset(named if self._has_read else {EVERYTHING})
            self._has_read = self._has_read or bool(named)
            return Step(request, text, READ, tables)
        if takes_the_whole_database(text):
            named = {EVERYTHING}
        tables = frozenset(named).union(*[self._neighbours.get(name, ()) for name in named])
        self._changed |= tables
        return Step(request, text, WRITE, tables)

    def end(self, request: int, text: str) -> Step | None:
        """Describe the end, None if it cannot matter to anybody; a new transaction begins."""
        changed, self._changed, self._has_read = frozenset(self._changed), set(), False
        return Step(request, text, END, changed) if changed else None


def is_read(text: str) -> bool:
    """Tell whether a statement locks nothing that others could want."""
    words = text.lstrip().upper()
    is_query = words.startswith(("SELECT", "WITH", "PRAGMA", "SHOW")) and "INSERT INTO" not in words
    return (is_query and " FOR " not in words) or words == "BEGIN"


def takes_the_whole_database(text: str) -> bool:
    """Tell whether a statement excludes all other writers, as SQLite's does."""
    return text.startswith("BEGIN IMMEDIATE")


def neighbours(metadata: MetaData, triggers: Iterable[tuple[str, str]] = ()) -> dict[str, frozenset[str]]:
    """Return, for each table, the tables that a change of its rows may lock or change as well.

    Args:
        metadata: the tables, with their foreign keys.
        triggers: pairs of a table that has a trigger, and one that the trigger locks or changes.
    """
    pairs = {(table.name, key.column.table.name) for table in metadata.tables.values() for key in table.foreign_keys}
    pairs.update(triggers)
    return {name: frozenset({name}).union(*[pair for pair in pairs if name in pair]) for name in metadata.tables}
