"""Statements that are made once and sent often: compiled once for PostgreSQL, left to SQLAlchemy on other databases.

On PostgreSQL a list is passed as one array. So a statement has one text, and one prepared plan, however long its lists.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Column,
    Connection,
    Executable,
    String,
    Table,
    any_,
    bindparam,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg

from placement.store.connection import direct
from placement.store.tables import utc_now

if TYPE_CHECKING:
    from psycopg import RawCursor

Values = Mapping[str, Any]
NO_VALUES: Values = {}


class Kept:
    """A query or a change; its values come by the names of its parameters."""

    def __init__(self, statement: Executable) -> None:
        self.statement = statement

    def tuples(self, connection: Connection, values: Values = NO_VALUES) -> list[Any]:
        """Run a query and return the driver's own tuples. Dates and truth values of SQLite come unconverted."""
        if connection.dialect.name == "postgresql":
            return self._sent(connection, values).fetchall()
        cursor = connection.execute(self.statement, values).cursor
        return [] if cursor is None else list(cursor.fetchall())

    def rows(self, connection: Connection, values: Values = NO_VALUES) -> list[Any]:
        """Run a query and return its rows with Python's types."""
        if connection.dialect.name == "postgresql":
            return self._sent(connection, values).fetchall()
        return list(connection.execute(self.statement, values))

    def change(self, connection: Connection, values: Values = NO_VALUES) -> int:
        """Run a change and return how many rows it touched."""
        if connection.dialect.name == "postgresql":
            return self._sent(connection, values).rowcount
        return connection.execute(self.statement, values).rowcount

    def _sent(self, connection: Connection, values: Values) -> "RawCursor[Any]":
        text = self._text
        return direct.send(connection, text.with_literals(values), text.in_order(values))

    @cached_property
    def _text(self) -> "_Text":
        compiled: Any = self.statement.compile(dialect=_DIALECT)  # type: ignore[attr-defined]
        defaults = {column.key: column.default for column in compiled.insert_prefetch}
        defaults |= {column.key: column.onupdate for column in compiled.update_prefetch}
        template: str = compiled.string
        return _Text(
            template=template,
            names=compiled.positiontup or (),
            own=compiled.params | {name: default.arg for name, default in defaults.items() if default.is_scalar},
            # The only defaults that are worked out are the moments of making and changing a row.
            stamps=[name for name, default in defaults.items() if default.is_callable],
            literals={name for _, name, *_ in Formatter().parse(template) if name},
        )


class KeptInsert:
    """Inserts rows with values for some columns; on PostgreSQL all of them by one statement, a list for each column."""

    def __init__(self, table: Table, *columns: Column[Any]) -> None:
        self._table = table
        self._names = [column.name for column in columns]
        lists: Any = func.unnest(*(bindparam(column.name, type_=_array_of(column.type)) for column in columns))
        rows = lists.table_valued(*self._names).render_derived()
        self._of_lists = Kept(insert(table).from_select(self._names, select(*rows.c)))

    def insert(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert the rows, in their order."""
        if connection.dialect.name == "postgresql":
            self._of_lists.change(connection, {name: [row[name] for row in rows] for name in self._names})
        else:
            connection.execute(insert(self._table), rows)


class _Text(NamedTuple):
    """A statement as PostgreSQL gets it.

    Args:
        template: the text, with room for literals.
        names: the names of its values, in the order of their numbers.
        own: values that belong to the statement.
        stamps: names of values that are the time.
        literals: names of ids that are written into the text.
    """

    template: str
    names: Sequence[str]
    own: Values
    stamps: Sequence[str]
    literals: Collection[str]

    def with_literals(self, values: Values) -> str:
        """Return the text with those ids written into it that the planner is to know."""
        if not self.literals:
            return self.template
        return self.template.format_map({name: _literal(values[name]) for name in self.literals})

    def in_order(self, values: Values) -> list[Any]:
        """Return the values as the text counts them."""
        known = {**self.own, **dict.fromkeys(self.stamps, utc_now()), **values}
        return [array(value) if isinstance(value := known[name], list) else value for name in self.names]


def _literal(value: Any) -> str:
    """Return an id, or ids for IN; NULL for none, which is equal to nothing. Anything else is never written."""
    if isinstance(value, list):
        return ",".join([str(int(member)) for member in value if isinstance(member, int)]) or "NULL"
    return str(value) if isinstance(value, int) else ""


def array(members: Iterable[float | str | None]) -> str:
    r"""Return a list as PostgreSQL writes it. The driver would take longer for this than for all the rest.

    >>> print(array([1, 2.5, None]), array(['a"b', "c,d"]))
    {1,2.5,NULL} {"a\"b","c,d"}
    """
    return "{" + ",".join([_quoted(one) if isinstance(one, str) else _plain(one) for one in members]) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(number: float | None) -> str:
    return "NULL" if number is None else str(number)


def _array_of(type_: Any) -> ARRAY[Any]:
    # A cast to VARCHAR(36) would cut off what is longer.
    return ARRAY(String() if isinstance(type_, String) else type_)


class _Compiler(PGCompiler_psycopg):
    def visit_in_op_binary(self, binary: Any, operator: Any, **options: Any) -> Any:  # noqa: ARG002 - it is IN
        """Write ``x IN (list)`` as ``x = ANY (array)``."""
        if not isinstance(binary.right, BindParameter) or binary.right.literal_execute:
            return self._generate_generic_binary(binary, " IN ", **options)
        members: Any = bindparam(binary.right.key, type_=_array_of(binary.left.type))
        return self.process(binary.left == any_(members), **options)

    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> Any:
        """Leave room for ids that are written into the text."""
        if bindparam.literal_execute:
            return f"({{{bindparam.key}}})"
        return super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]


class _Dialect(PGDialect_psycopg):
    statement_compiler = _Compiler
    supports_statement_cache = True


_DIALECT = _Dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
