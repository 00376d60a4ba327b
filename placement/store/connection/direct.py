"""The fast path: SQL sent straight to the driver, mostly PostgreSQL's, and all use of SQLAlchemy's internals.

SQLAlchemy spends more time on a statement than PostgreSQL does. On 100 hosts this saves 30 % of the CPU time of a query
for ten candidates (3.75 ms instead of 5.34), 32 % of a claim and its release, and 20 % of a read of usages.

A list is passed as one array, so a statement has one text, and one prepared plan, however long its lists are. Short
lists of keys are hidden from PostgreSQL's query planner: a plan for one particular list would look cheaper to it than
one for any, and planning each time anew took half of what the database spent on a claim. Errors are still SQLAlchemy's,
and its statement listeners and log see these statements as well.

``unmet`` checks at start-up that SQLAlchemy still has the internals this relies on. If not, or if the operator sets
``[placement_database] plain_sqlalchemy``, every statement goes through SQLAlchemy.
"""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ARRAY, BindParameter, Connection, Engine, Executable, String, any_, bindparam, cast, select
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg
from sqlalchemy.exc import DBAPIError, IntegrityError

from placement.store.tables import projects, utc_now

if TYPE_CHECKING:
    from psycopg import RawCursor

LOG = logging.getLogger("sqlalchemy.engine.Engine")

Values = Mapping[str, Any]

SENDS_DIRECTLY = "placement_sends_directly"
"""Execution option that marks engines on the fast path."""

MAX_PREPARED_LENGTH = 30_000
"""Characters in the longest statement that is prepared: a search for about twenty request groups."""

MAX_SHORT = 100
"""Members of a short list. The plan for hidden lists expects ten; of many rows it would look up each."""

MAX_STATEMENTS = 100
"""Statements that a connection keeps with their cursors, some 4 kB each. The driver prepares as many."""

MAX_ROWS_HELD = 100
"""Rows that a remembered cursor may hold."""

_Statement = tuple["RawCursor[Any]", bytes]
"""The driver's cursor that ran a statement, and the text as sent: the driver recognises it by its identity."""

_STATEMENTS = "placement_statements"
"""Their key in what SQLAlchemy remembers of a connection."""

# libpq's codes are numbers here: importing psycopg would slow the start on SQLite.
_OPEN = (2, 3)
"""PQTRANS_INTRANS and PQTRANS_INERROR."""

_DONE = (1, 2)
"""PGRES_COMMAND_OK and PGRES_TUPLES_OK."""


def is_used(connection: Connection) -> bool:
    """Tell whether this connection's statements take the fast path."""
    return SENDS_DIRECTLY in connection.get_execution_options()


def rows_of(connection: Connection, text: str, values: Sequence[Any]) -> list[Any]:
    """Run a query with ``$1``, ``$2`` as placeholders and return its rows."""
    return _sent(connection, text, values).fetchall()


def rows_changed(connection: Connection, text: str, values: Sequence[Any]) -> int:
    """Run a change with such placeholders and return the number of rows affected."""
    return _sent(connection, text, values).rowcount


def begin(connection: Connection, text: str) -> None:
    """Begin a transaction, perhaps with a further statement; without a cursor, which saves 3 % of a small read."""
    LOG.info("%s", text)
    dbapi: Any = connection.dialect.loaded_dbapi
    try:
        result = _driver(connection).execute_raw(text.encode())
        if result.status not in _DONE:
            raise dbapi.errors.error_from_result(result)
    except dbapi.Error as error:
        raise _wrapped(connection, text, (), error) from error


def execute_raw(connection: Connection, text: str) -> None:
    """Send MariaDB a statement that takes no values and returns no rows."""
    LOG.info("%s", text)
    try:
        with _driver(connection).cursor() as cursor:
            cursor.execute(text)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, text, (), error) from error


def roll_back(connection: Connection) -> None:
    """Roll back the transaction, if one is open. The driver's own rollback would drop all prepared statements."""
    if not connection.invalidated:
        driver = _driver(connection)
        if driver.info.transaction_status in _OPEN:
            driver.execute_raw(b"ROLLBACK")


def _sent(connection: Connection, text: str, values: Sequence[Any]) -> "RawCursor[Any]":
    """Run a statement on the cursor that last ran it on this connection: that knows how to convert values and rows.

    It holds the rows until it runs again, so one that holds many is not remembered.
    """
    remembered: dict[str, _Statement] = connection.connection.info.setdefault(_STATEMENTS, {})
    if (statement := remembered.pop(text, None)) is None:
        statement = connection.dialect.loaded_dbapi.RawCursor(_driver(connection)), text.encode()
    cursor, query = statement
    for listener in connection.engine.dispatch.before_cursor_execute:
        listener(connection, cursor, text, values, None, False)  # noqa: FBT003 - the event's own shape
    LOG.info("%s\n%s", text, values)
    try:
        # Binary results skip the conversion from digits: a quarter less work for large answers. Very long statements
        # are not prepared, so that they occupy neither the driver's cache nor the server's.
        prepare = None if len(text) < MAX_PREPARED_LENGTH else False
        cursor.execute(query, values, binary=True, prepare=prepare)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, text, values, error) from error
    if cursor.rowcount <= MAX_ROWS_HELD and len(text) < MAX_PREPARED_LENGTH:
        remembered[text] = statement
        if len(remembered) > MAX_STATEMENTS:
            del remembered[next(iter(remembered))]
    return cursor


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _wrapped(connection: Connection, text: str, values: Sequence[Any], error: Any) -> Exception:
    """Wrap a driver's error as SQLAlchemy does, invalidating the connection first if it is broken."""
    dialect = connection.dialect
    is_broken = dialect.is_disconnect(error, _driver(connection), None)
    if is_broken:
        connection.invalidate(error)
    wrapped = DBAPIError.instance(
        text, values, error, dialect.loaded_dbapi.Error, connection_invalidated=is_broken, dialect=dialect
    )
    assert isinstance(wrapped, DBAPIError)
    return wrapped


class Text(NamedTuple):
    """A statement as sent to PostgreSQL: its text, with placeholders for the ids that are ``literals``.

    ``names`` are its parameters in the order of their numbers, ``own`` the values bound to the statement itself, and
    ``stamps`` the parameters that get the current time.
    """

    template: str
    names: Sequence[str]
    own: Values
    stamps: Sequence[str]
    literals: Collection[str]

    def bound(self, values: Values) -> tuple[str, list[Any]]:
        """Return the text and the values to send."""
        return self.with_literals(values), self.in_order(values)

    def with_literals(self, values: Values) -> str:
        """Return the text with the ids that the query planner should see written into it."""
        if not self.literals:
            return self.template
        return self.template.format_map({name: _literal(values[name]) for name in self.literals})

    def in_order(self, values: Values) -> list[Any]:
        """Return the values in the order of the numbered placeholders."""
        stamps = dict.fromkeys(self.stamps, utc_now()) if self.stamps else {}
        named = {**self.own, **stamps, **values}
        return [array(value) if isinstance(value := named[name], list) else value for name in self.names]


def _literal(value: Any) -> str:
    """Format an id, or ids for IN; NULL, which equals nothing, for an empty list. Drop anything but integers."""
    if isinstance(value, list):
        return ",".join([str(int(member)) for member in value if isinstance(member, int)]) or "NULL"
    return str(value) if isinstance(value, int) else ""


def array(members: Iterable[float | str | None]) -> str:
    r"""Format a list as a PostgreSQL array literal: the driver would spend more time on it than on all the rest.

    >>> print(array([1, 2.5, None]), array(['a"b', "c,d"]))
    {1,2.5,NULL} {"a\"b","c,d"}
    """
    return (
        "{" + ",".join([_quoted(element) if isinstance(element, str) else _plain(element) for element in members]) + "}"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(number: float | None) -> str:
    return "NULL" if number is None else str(number)


def array_of(type_: Any) -> ARRAY[Any]:
    """Return the array type for lists of a type."""
    # A cast to VARCHAR(36) would truncate longer values.
    return ARRAY(String() if isinstance(type_, String) else type_)


class _Compiler(PGCompiler_psycopg):
    def visit_in_op_binary(self, binary: Any, operator: Any, **options: Any) -> Any:  # noqa: ARG002 - it is IN
        """Compile ``x IN (list)`` to ``x = ANY (array)``."""
        if not isinstance(binary.right, BindParameter) or binary.right.literal_execute:
            return self._generate_generic_binary(binary, " IN ", **options)
        type_ = array_of(binary.left.type)
        members: Any = bindparam(binary.right.key, type_=type_)
        return self.process(binary.left == any_(self._shown(members, type_)), **options)

    def _shown(self, members: Any, type_: ARRAY[Any]) -> Any:  # noqa: ARG002 - for lists that are hidden
        return members

    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> Any:
        """Leave placeholders for ids that are written into the text."""
        if bindparam.literal_execute:
            return f"({{{bindparam.key}}})"
        return super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]


class _HidingCompiler(_Compiler):
    def _shown(self, members: Any, type_: ARRAY[Any]) -> Any:
        """Put a list into a subquery, whose value the query planner cannot see."""
        return cast(select(members).scalar_subquery(), type_)


class _NumberedDialect(PGDialect_psycopg):
    statement_compiler = _Compiler
    supports_statement_cache = True


class _HidingDialect(_NumberedDialect):
    statement_compiler = _HidingCompiler
    supports_statement_cache = True


_DIALECT = _NumberedDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_HIDING = _HidingDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]


def has_short_lists(values: Values) -> bool:
    """Tell whether there are lists among some values, and all of them are short."""
    lengths = [len(value) for value in values.values() if isinstance(value, list)]
    return bool(lengths) and max(lengths) <= MAX_SHORT


def text_of(statement: Executable, *, hides_lists: bool = False) -> Text:
    """Compile a statement for PostgreSQL."""
    compiled: Any = statement.compile(dialect=_HIDING if hides_lists else _DIALECT)  # type: ignore[attr-defined]
    defaults = {column.key: column.default for column in compiled.insert_prefetch}
    defaults |= {column.key: column.onupdate for column in compiled.update_prefetch}
    template: str = compiled.string
    return Text(
        template=template,
        names=compiled.positiontup or (),
        own=compiled.params | {name: default.arg for name, default in defaults.items() if default.is_scalar},
        # The only computed defaults are the timestamps of a row's creation and change.
        stamps=[name for name, default in defaults.items() if default.is_callable],
        literals={name for _, name, *_ in Formatter().parse(template) if name},
    )


@lru_cache(maxsize=1)
def unmet() -> str | None:
    """Return what this module needs of SQLAlchemy and the driver but does not find, or None."""
    try:
        return next(_unmet(), None)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _unmet() -> Iterator[str]:
    dbapi: Any = _DIALECT.import_dbapi()  # type: ignore[no-untyped-call]
    expanded: BindParameter[Any] = bindparam("ids", expanding=True)
    text = text_of(
        select(projects.c.id).where(projects.c.id.in_(expanded), projects.c.external_id == bindparam("name"))
    )
    places = re.findall(r"(\w+) = (?:ANY )?\(?\$(\d)", text.template)
    if {column: text.names[int(number) - 1] for column, number in places} != {"id": "ids", "external_id": "name"}:
        yield "numbered parameters"
    written: BindParameter[Any] = bindparam("ids", expanding=True, literal_execute=True)
    text = text_of(select(projects.c.id).where(projects.c.id.in_(written)))
    if text.literals != {"ids"} or not text.with_literals({"ids": [1, 2]}).endswith("IN (1,2)"):
        yield "ids in the text"
    made = text_of(projects.insert().values(external_id="x"))
    changed = text_of(projects.update().values(external_id="x"))
    if [*made.stamps, *changed.stamps] != ["created_at", "updated_at"] or "x" not in changed.own.values():
        yield "defaults of columns"
    error = dbapi.errors.UniqueViolation("duplicate key")
    wrapped = DBAPIError.instance("", (), error, dbapi.Error, connection_invalidated=False, dialect=_DIALECT)
    if not isinstance(wrapped, IntegrityError):
        yield "errors by their kind"
    if not hasattr(Engine.dispatch, "before_cursor_execute"):
        yield "listeners to statements"
    if not (hasattr(dbapi, "RawCursor") and hasattr(dbapi.errors, "error_from_result")):
        yield "the driver's raw cursor, and errors of results"
