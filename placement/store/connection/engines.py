"""Engines: how connections to each kind of database are made, limited, and begin their transactions."""

import logging
import sqlite3
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import OperationalError

from placement.domain.identity import current_origin
from placement.settings import DatabaseSettings
from placement.store.connection.direct import unmet
from placement.store.connection.faults import is_cut_off
from placement.store.connection.statements import SENDS_DIRECTLY, begin, execute_raw, is_direct, roll_back
from placement.store.journal.watched import REQUEST_SETTING, REQUEST_VARIABLE, SEPARATOR

LOG = logging.getLogger(__name__)

_BEGIN = "placement_begin"
"""Execution option: the text that begins a connection's transactions; empty for statements that stand alone."""

WRITE, READ, LOOK = "write", "read", "look"
"""Kinds of units of work: those that write, that read in one snapshot, and that send a single query."""

_BEGINNINGS = {
    # IMMEDIATE takes the write lock at once: an upgrade from a read lock could fail halfway through.
    "sqlite": {WRITE: "BEGIN IMMEDIATE", READ: "BEGIN", LOOK: ""},
    "postgresql": {
        WRITE: "BEGIN ISOLATION LEVEL READ COMMITTED",
        READ: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        LOOK: "",
    },
    # Sets the level of the next transaction, which the first statement begins implicitly.
    "mysql": {
        WRITE: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        READ: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        LOOK: "",
    },
}

SQLITE_BUSY_TIMEOUT_S = 15.0

# PostgreSQL's default random_page_cost assumes spinning disks. With it the planner scans all inventories of a class to
# find those of twenty trees: forty times the work in a cloud of 10,000 hosts. These tables are small enough to be
# cached. A value that an operator has set is left alone.
_PRICE_OF_A_PAGE = "SELECT set_config('random_page_cost', '1.1', false) WHERE current_setting('random_page_cost') = '4'"

POOL = "sqlalchemy.pool.impl.QueuePool"

_ERRORS = {"DatabaseError", "InterfaceError"}
"""What every driver calls the classes of its errors (PEP 249)."""


STATEMENTS_ARE_LOGGED, ROWS_ARE_LOGGED = 50, 100
"""Thresholds of ``connection_debug``."""

_POOL = {"pool_size": 8, "max_overflow": 16, "pool_timeout": 30}
"""How many connections a process holds, and how long it waits for them, unless the operator says otherwise."""

_COMPILED = 300
"""The most statements to keep compiled; those of long filters are not kept (``Transaction.keep_no_statement``)."""

PATIENT = DatabaseSettings(statement_timeout=0)
"""Statements take as long as they need, as maintenance wants."""


def transactions(engine: Engine, kind: str) -> dict[str, Any]:
    """Return the execution options for WRITE, READ or LOOK transactions."""
    return {_BEGIN: _BEGINNINGS[engine.dialect.name][kind]}


def engine_for(url: URL | str, settings: DatabaseSettings = PATIENT, **changed: Any) -> Engine:
    """Create the engine for a normalised database URL (``store/lifecycle/opening.py``). It connects on first use.

    The settings may be given one by one as well. Whatever URL they have does not matter.
    """
    url, settings = make_url(url), replace(settings, **changed)
    if settings.connection_debug >= STATEMENTS_ARE_LOGGED:
        level = logging.DEBUG if settings.connection_debug >= ROWS_ARE_LOGGED else logging.INFO
        logging.getLogger("sqlalchemy.engine").setLevel(level)
    if (backend := url.get_backend_name()) == "sqlite":
        return _sqlite_engine(url, synchronous=settings.sqlite_synchronous)
    logging.getLogger(POOL).addFilter(_ONE_LINE)  # has no effect a second time
    sizes = {"pool_size": settings.max_pool_size, "max_overflow": settings.max_overflow}
    pool = {**sizes, "pool_timeout": settings.pool_timeout}
    directly = backend == "postgresql" and not settings.plain_sqlalchemy and _can_send_directly()
    engine = create_engine(
        _with_timeouts(url, settings.connect_timeout),
        execution_options={SENDS_DIRECTLY: True} if directly else {},
        pool_recycle=settings.connection_recycle_time,
        query_cache_size=_COMPILED,
        **_POOL | {name: value for name, value in pool.items() if value is not None},
    )
    if backend == "postgresql":
        _limit_statements(engine, settings.statement_timeout)
        _speak_ourselves(engine, directly=directly)
    else:
        has_limits = {"read_timeout", "write_timeout"} & set(url.query)
        event.listen(engine, "connect", partial(_prepare_mariadb, settings, limits=not has_limits))
        event.listen(engine, "begin", _begin_on_mariadb)
        event.listen(engine, "handle_error", _tell_lost_connections)
    return engine


def _with_timeouts(url: URL, limit_s: int) -> URL:
    """Add timeouts that a URL does not set itself, so that requests do not wait long for a dead or stopped machine."""
    names = ["connect_timeout"]
    if url.get_backend_name() != "postgresql":
        names += ["read_timeout", "write_timeout"]
    return url.update_query_dict({name: str(limit_s) for name in names if name not in url.query})


def _prepare_mariadb(settings: DatabaseSettings, connection: Any, _record: Any, *, limits: bool) -> None:
    """Give statements their own limit: until the login is done, the driver's is that of connecting.

    On a Galera node, each transaction waits for what other nodes have acknowledged before it began.
    """
    if limits:
        limit_s = settings.statement_timeout or None
        vars(connection).update(_read_timeout=limit_s, _write_timeout=limit_s)
    with connection.cursor() as cursor:
        if settings.mysql_sql_mode:
            cursor.execute("SET SESSION sql_mode = %s", (settings.mysql_sql_mode,))
        cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
        if (switch := cursor.fetchone()) and switch[1] == "ON":
            cursor.execute("SET SESSION wsrep_sync_wait = @@SESSION.wsrep_sync_wait | 1")


def _limit_statements(engine: Engine, limit_s: int) -> None:
    # Imported late: importing psycopg would slow the start on SQLite.
    from placement.store.connection.statement_limit import StatementLimit, TimedConnection  # noqa: PLC0415

    limit = StatementLimit(limit_s) if limit_s else None

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, parameters: Any) -> TimedConnection:
        connection = TimedConnection.connect(*arguments, **parameters)
        if limit is not None:
            limit.watch(connection)
        return connection


def _tell_lost_connections(context: ExceptionContext) -> None:
    """Tell which connections to MariaDB are lost, such as that to a node of Galera that refuses even ROLLBACK.

    A connection that was never made is not lost: the request would try again, and wait as long for the same database.
    """
    if is_cut_off(context.original_exception):
        context.is_disconnect = True
    if context.connection is None and context.original_exception is not None:
        context.is_disconnect &= not isinstance(context.original_exception.__context__, TimeoutError)


def _can_send_directly() -> bool:
    missing = unmet()
    if missing:
        LOG.warning(
            "Statements go to PostgreSQL through SQLAlchemy, which takes longer: release %s lacks what the fast path "
            "needs (%s).",
            sqlalchemy.__version__,
            missing,
        )
    return missing is None


def _speak_ourselves(engine: Engine, *, directly: bool) -> None:
    """Begin and end PostgreSQL transactions ourselves.

    If the driver did, every switch between reading and writing would reconfigure the connection.
    """

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.autocommit = True
        if _has_a_session(connection):
            connection.execute(_PRICE_OF_A_PAGE)
        else:
            connection.prepare_threshold = None

    event.listen(engine, "begin", _begin_on_postgresql)
    if directly:
        event.listen(engine, "rollback", roll_back)


def _has_a_session(connection: Any) -> bool:
    """Tell whether the connection owns its session rather than borrowing one per transaction from, say, pgbouncer.

    A pooler reports a process id of its own making; in a shared session, statements and settings are others'.
    """
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    return bool(process == connection.info.backend_pid)


def _sqlite_engine(url: URL, *, synchronous: bool) -> Engine:
    patience = {"timeout": SQLITE_BUSY_TIMEOUT_S, "check_same_thread": False}
    engine = create_engine(url, connect_args=patience, query_cache_size=_COMPILED)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # The driver's own transaction handling cannot say BEGIN IMMEDIATE: switch it off and begin ourselves.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = " + ("FULL" if synchronous else "OFF"))

    event.listen(engine, "begin", _begin_on_sqlite)
    event.listen(engine, "commit", _complete_on_sqlite)
    return engine


class _OneLine(logging.Filter):
    """Lets the pool log errors of drivers as warnings of one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and _ERRORS & {base.__name__ for base in type(error).__mro__}:
            words = (str(error).strip().splitlines() or [""])[0]
            shown = {"msg": f"{record.getMessage()}: {words}", "args": (), "exc_info": None}
            vars(record).update(shown, levelno=logging.WARNING, levelname="WARNING")
        return True


_ONE_LINE = _OneLine()


_NEWEST = "SELECT max(id) FROM placement_journal"
_COMPLETE = "UPDATE placement_journal SET request_id = ?, by_user = ?, by_project = ?, route = ? WHERE id > ?"
_NEWEST_BEFORE = "placement_journal_newest"
_IS_SET = "placement_request_is_set"

# The journal's triggers learn on whose behalf a writing transaction runs (domain/identity.py). PostgreSQL gets it in
# the message that begins the transaction, MariaDB in one more. SQLite has no session variable that its triggers could
# read: the rows are completed just before the commit, while no other writer can be inside.


def _beginning(connection: Connection) -> tuple[str, str | None]:
    """Return the text that begins a connection's transaction, and the origin of its changes as a quoted text."""
    text: str = connection.get_execution_options().get(_BEGIN, "BEGIN")
    writes = text == _BEGINNINGS[connection.dialect.name][WRITE]
    origin = current_origin() if writes else None
    return text, None if origin is None else "'" + SEPARATOR.join(origin).replace("'", "''") + "'"


def _begin_on_postgresql(connection: Connection) -> None:
    text, origin = _beginning(connection)
    texts = [text, f"SET LOCAL {REQUEST_SETTING} = {origin}"] if origin else [text] if text else []
    if texts and is_direct(connection):
        begin(connection, "; ".join(texts))
        return
    for each_text in texts:
        connection.exec_driver_sql(each_text)


def _begin_on_mariadb(connection: Connection) -> None:
    """Set the isolation level of the next transaction, and its origin, or clear it: the session remembers it.

    SQLAlchemy's own isolation levels take four statements, and an error that no retry recognises if the connection
    breaks.
    """
    if not connection.get_execution_options().get(_BEGIN):
        return
    text, origin = _beginning(connection)
    execute_raw(connection, text)
    if origin is not None:
        execute_raw(connection, f"SET {REQUEST_VARIABLE} = {origin}")
        connection.info[_IS_SET] = True
    elif text == _BEGINNINGS["mysql"][WRITE] and connection.info.pop(_IS_SET, False):
        execute_raw(connection, f"SET {REQUEST_VARIABLE} = NULL")


def _begin_on_sqlite(connection: Connection) -> None:
    """Begin, and note the newest journal row of a writing transaction: the rows after it are its own."""
    text, origin = _beginning(connection)
    if text:
        connection.exec_driver_sql(text)
    connection.info.pop(_NEWEST_BEFORE, None)
    if origin is not None:
        connection.info[_NEWEST_BEFORE] = connection.exec_driver_sql(_NEWEST).scalar() or 0


def _complete_on_sqlite(connection: Connection) -> None:
    """Complete the journal rows of a transaction before it commits."""
    newest_before, origin = connection.info.pop(_NEWEST_BEFORE, None), current_origin()
    if newest_before is not None and origin is not None:
        connection.exec_driver_sql(_COMPLETE, (*(part or None for part in origin), newest_before))


class DatabaseFile:
    """The file of a SQLite database, which an operator may remove or replace while the server runs.

    Its connections would go on with the old file, and whatever they write would be lost. A server with caches cannot
    just go on with another file either, so it refuses to work until the file is back or the server is restarted.
    """

    def __init__(self, engine: Engine) -> None:
        is_file = engine.dialect.name == "sqlite" and "uri" not in engine.url.query
        self._path = Path(engine.url.database or "") if is_file else None
        self._opened = self._identity()
        if self._path is not None:
            event.listen(engine, "do_connect", lambda *_connecting: self.check())
            event.listen(engine, "checkout", lambda *_connection: self.check())

    def check(self) -> None:
        """Check that the path still leads to the file that was opened, or raise what SQLite itself reports then."""
        opened = self._opened  # before the look at the file, which another thread may be creating
        identity = self._identity()
        if opened is None:
            self._opened = self._opened or identity
        elif identity != opened:
            moved = sqlite3.OperationalError(f"{self._path} is not the file that was opened")
            moved.sqlite_errorcode = sqlite3.SQLITE_READONLY_DBMOVED
            raise OperationalError(None, None, moved)

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if status is None else (status.st_dev, status.st_ino)
