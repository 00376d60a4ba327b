"""Statements built once and sent often: straight to PostgreSQL where possible, else through SQLAlchemy.

Also how many this thread has sent, and how long lists are split.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    Engine,
    Executable,
    Integer,
    Select,
    Table,
    Update,
    bindparam,
    event,
    func,
    insert,
    select,
    update,
)

from placement.store.connection import direct
from placement.store.connection.direct import Values

if TYPE_CHECKING:
    from placement.store.connection.unit_of_work import Transaction

__all__ = [
    "NO_VALUES",
    "KeyedStatement",
    "PreparedInsert",
    "PreparedScalars",
    "PreparedStatement",
    "PreparedUpdate",
    "Values",
]

NO_VALUES: Values = {}


class PreparedStatement:
    """A query or a change that takes its values by parameter name; given as a statement or as what builds it.

    ``by_key``: it finds rows by lists of keys, each of which has few. PostgreSQL then plans once for all short lists.
    On the fast path only the text of a built statement is kept: a seventh of the memory.
    """

    def __init__(self, statement: Executable | Callable[[], Executable], *, by_key: bool = False) -> None:
        self._given = statement
        self._is_by_key = by_key

    @cached_property
    def statement(self) -> Executable:
        """The SQLAlchemy statement."""
        return self._made()

    def tuples(self, connection: Connection, values: Values = NO_VALUES) -> list[Any]:
        """Run a query and return the driver's raw tuples; SQLite's dates and booleans come unconverted."""
        if direct.is_used(connection):
            return direct.rows_of(connection, *self._bound(values))
        cursor = connection.execute(self.statement, values).cursor
        return [] if cursor is None else list(cursor.fetchall())

    def rows(self, connection: Connection, values: Values = NO_VALUES) -> list[Any]:
        """Run a query and return its rows, converted to Python types."""
        if direct.is_used(connection):
            return direct.rows_of(connection, *self._bound(values))
        return list(connection.execute(self.statement, values))

    def change(self, connection: Connection, values: Values = NO_VALUES) -> int:
        """Run a change and return the number of rows affected."""
        if direct.is_used(connection):
            return direct.rows_changed(connection, *self._bound(values))
        return connection.execute(self.statement, values).rowcount

    def _bound(self, values: Values) -> tuple[str, list[Any]]:
        text = self._text_for_short_lists if self._is_by_key and direct.has_short_lists(values) else self._text
        return text.bound(values)

    @cached_property
    def _text(self) -> direct.Text:
        return direct.text_of(self._made())

    @cached_property
    def _text_for_short_lists(self) -> direct.Text:
        return direct.text_of(self._made(), hides_lists=True)

    def _made(self) -> Executable:
        return self._given if isinstance(self._given, Executable) else self._given()


class KeyedStatement:
    """A query or a change of the rows with some keys of a column, each of which has few, whatever their number."""

    def __init__(self, statement: Select[Any] | Update | Delete, key: ColumnElement[Any]) -> None:
        has_key = key.in_(bindparam("keys", expanding=True))
        self._statement = PreparedStatement(statement.where(has_key), by_key=True)

    def tuples(self, connection: Connection, keys: Iterable[Any]) -> list[Any]:
        """Run the query and return the driver's raw tuples; SQLite's dates and booleans come unconverted."""
        return [row for chunk in chunks(sorted(keys)) for row in self._statement.tuples(connection, {"keys": chunk})]

    def rows(self, connection: Connection, keys: Iterable[Any]) -> list[Any]:
        """Run the query and return its rows, converted to Python types."""
        return [row for chunk in chunks(sorted(keys)) for row in self._statement.rows(connection, {"keys": chunk})]

    def change(self, connection: Connection, keys: Iterable[Any], values: Values = NO_VALUES) -> int:
        """Run the change and return the number of rows affected."""
        changed = [self._statement.change(connection, {**values, "keys": chunk}) for chunk in chunks(sorted(keys))]
        return sum(changed)


class PreparedScalars:
    """Scalar subqueries, read by a statement of their own or along with the row of another one."""

    def __init__(self, *columns: ColumnElement[Any]) -> None:
        self.columns = columns
        self._alone = PreparedStatement(select(*columns))

    def read(self, connection: Connection, values: Values = NO_VALUES) -> Sequence[Any]:
        """Read them alone."""
        first_row: Sequence[Any] = self._alone.tuples(connection, values)[0]
        return first_row


class PreparedInsert:
    """An INSERT of rows with some columns; PostgreSQL gets them in one statement, with an array for each column."""

    def __init__(self, table: Table, *columns: Column[Any]) -> None:
        self._table = table
        self._names = [column.name for column in columns]
        lists: Any = func.unnest(*(bindparam(column.name, type_=direct.array_of(column.type)) for column in columns))
        rows = lists.table_valued(*self._names).render_derived()
        self._of_lists = PreparedStatement(insert(table).from_select(self._names, select(*rows.c)))

    def insert(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert the rows in order."""
        if direct.is_used(connection):
            self._of_lists.change(connection, {name: [row[name] for row in rows] for name in self._names})
        else:
            connection.execute(insert(self._table), rows)


class PreparedUpdate:
    """An UPDATE of one column, with a value of its own for each row; PostgreSQL gets them in one statement."""

    def __init__(self, key: Column[int], changed: Column[int]) -> None:
        columns = {"key": key, "value": changed}
        lists: Any = func.unnest(
            *(bindparam(name, type_=direct.array_of(column.type)) for name, column in columns.items())
        )
        rows = lists.table_valued(*columns).render_derived()
        change = update(key.table)
        self._of_lists = PreparedStatement(change.where(key == rows.c.key).values({changed: rows.c.value}))
        self._of_each = change.where(key == bindparam("key")).values({changed: bindparam("value")})

    def change(self, connection: Connection, values: Mapping[int, int]) -> None:
        """Change the rows with some keys."""
        if direct.is_used(connection):
            self._of_lists.change(connection, {"key": [*values], "value": [*values.values()]})
        else:
            connection.execute(self._of_each, [{"key": key, "value": value} for key, value in values.items()])


T = TypeVar("T")

MAX_PARAMETERS = 10_000


class _Counted(threading.local):
    sent = 0


_COUNTED = _Counted()


def statements_so_far() -> int:
    """Return how many statements this thread has sent to counted databases."""
    return _COUNTED.sent


def count_statements(engine: Engine) -> None:
    """Count an engine's statements from now on."""
    event.listen(engine, "before_cursor_execute", _count)


def _count(*_statement: Any) -> None:
    _COUNTED.sent += 1


def record_statements(engine: Engine, tracer: Any) -> None:
    """Let ``osprofiler.sqlalchemy`` trace an engine's statements and their durations from now on."""
    tracer.add_tracing(sqlalchemy, engine, "db")


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in chunks that fit into one statement."""
    for start in range(0, len(values), MAX_PARAMETERS):
        yield values[start : start + MAX_PARAMETERS]


LISTED = 500
"""Up to this many trees or providers are listed by id; more are read as one range, with everything in between."""


def is_between(column: Any, first: str, last: str) -> ColumnElement[bool]:
    """Return the condition that a column lies between two parameters, inclusive.

    The bounds are written into the text when it is sent: without them PostgreSQL would estimate one row in two hundred
    for a prepared statement, and use the same plan for twenty trees as for twenty thousand.
    """
    bounds = [bindparam(name, type_=Integer, literal_execute=True) for name in (first, last)]
    return column.between(*bounds)  # type: ignore[no-any-return]


class RowsByIds:
    """A query by ids: listed, or, if there are many close together, as one range with everything in between.

    Args:
        column: the column with the ids.
        spread: as a range, if it spans at most so many ids for each.
    """

    def __init__(self, rows: Select[Any], column: Any, *, spread: float) -> None:
        listed = rows.where(column.in_(bindparam("ids", expanding=True)))
        self._listed = PreparedStatement(listed, by_key=True)
        self._between = PreparedStatement(rows.where(is_between(column, "first", "last")))
        self._spread = spread

    def read(self, tx: "Transaction", ids: Collection[int]) -> list[Any]:
        """Return the rows of some ids, perhaps with those of ids in between."""
        if len(ids) > LISTED and (last := max(ids)) - (first := min(ids)) < self._spread * len(ids):
            return tx.tuples(self._between, {"first": first, "last": last})
        return [row for chunk in chunks(sorted(ids)) for row in tx.tuples(self._listed, {"ids": list(chunk)})]
