"""Open a database for serving: read its URL, connect, upgrade it if asked to, and find out what it offers.

Deployment tools write ``mysql+pymysql://``, ``postgresql+psycopg2://`` or ``postgres://``, with query parameters for
those drivers. No message from this module shows a URL, because it may contain a password.
"""

import inspect
import logging
import re
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from sqlalchemy import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError

from placement.errors import ConfigurationError, Unavailable
from placement.settings import DatabaseSettings
from placement.store.checks.audit import odd_rows
from placement.store.connection.database import ATTEMPTS, Database
from placement.store.connection.engines import engine_for
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively, looking
from placement.store.lifecycle.reference_schema import has_standard_names, sync_standard_names
from placement.store.lifecycle.schema import NO_SCHEMA, OLD_SCHEMA
from placement.store.lifecycle.standby import standby_of

SQLITE_PARAMETERS = frozenset({"uri", "timeout", "check_same_thread", "cached_statements", "detect_types"})

_SEVERAL_HOSTS = re.compile(
    r"(?P<start>[\w+]+://(?:[^:/]*(?::[^@]*)?@)?)(?P<hosts>[^/?@]*,[^/?@]*)(?P<rest>(?:[/?].*)?)"
)


def normalised(connection: str, parameters: str = "", *, option: str = "connection") -> URL:
    """Return the URL to connect with, from ``connection`` and ``connection_parameters``; its string hides the password.

    ConfigurationError names the ``option`` of an unusable URL, and does not repeat that.
    """
    url = _parsed(connection.strip(), parameters.strip().lstrip("?&"), option)
    dialect = url.drivername.partition("+")[0]
    if dialect not in _URL_OF_DIALECT:
        raise ConfigurationError(
            "The database URL must begin with postgresql://, mysql+pymysql:// or sqlite:///, "
            f"not with {url.drivername}://."
        )
    return _URL_OF_DIALECT[dialect](url)


def missing_file(url: URL) -> Path | None:
    """Return the file that a normalised URL of SQLite names, if it does not exist."""
    if url.get_backend_name() != "sqlite" or "uri" in url.query:
        return None
    file = Path(url.database or "")
    return None if file.exists() else file


def _parsed(connection: str, parameters: str, option: str) -> URL:
    # libpq accepts several hosts, ``//one:5432,two:5432/``; SQLAlchemy expects them in the query.
    if several := _SEVERAL_HOSTS.fullmatch(connection):
        connection = several["start"] + several["rest"]
    hosts = several["hosts"].split(",") if several else []
    if parameters:
        connection += ("&" if "?" in connection else "?") + parameters
    try:
        url = make_url(connection)
    except (ArgumentError, ValueError):
        # Without the cause, whose message may contain parts of the URL.
        raise ConfigurationError(f"The database URL cannot be read; see [placement_database] {option}.") from None
    return url.update_query_pairs([("host", host) for host in hosts], append=True) if hosts else url


def _postgresql(url: URL) -> URL:
    # Imported late, so that a server on SQLite starts faster.
    from psycopg import pq  # noqa: PLC0415

    keywords = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    return _with_known_query(url.set(drivername="postgresql+psycopg"), keywords)


def _mariadb(url: URL) -> URL:
    try:
        driver = import_module("pymysql.connections")
    except ImportError:
        raise ConfigurationError(
            "MySQL and MariaDB need PyMySQL, which is not installed: pip install 'placement-server[mariadb]'."
        ) from None
    dialect = url.drivername.partition("+")[0]
    return _with_known_query(
        url.set(drivername=f"{dialect}+pymysql"), {*inspect.signature(driver.Connection).parameters}
    )


def _sqlite(url: URL) -> URL:
    url = url.set(drivername="sqlite")
    if url.database in (None, "", ":memory:", "file::memory:") or url.query.get("mode") == "memory":
        raise ConfigurationError(
            "SQLite in memory cannot be shared by the threads of a server; name a file: sqlite:////path/to/a/file."
        )
    return url if "uri" in url.query else _with_known_query(url, SQLITE_PARAMETERS)


def _with_known_query(url: URL, keywords: set[str] | frozenset[str]) -> URL:
    """Drop parameters meant for other drivers, with which this one would refuse to connect."""
    unknown = sorted(set(url.query) - keywords)
    if unknown:
        LOG.warning("Parameters of the database URL that the driver does not know are ignored: %s", ", ".join(unknown))
    return url.difference_update_query(unknown)


_URL_OF_DIALECT: Mapping[str, Callable[[URL], URL]] = {
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "mysql": _mariadb,
    "mariadb": _mariadb,
    "sqlite": _sqlite,
}


LOG = logging.getLogger(__name__)


def open_database(settings: DatabaseSettings, *, retries: int = ATTEMPTS - 2, keep_journal: bool = True) -> Database:
    """Return the configured database, ready to serve, with no connection open: uWSGI forks behind Python's back.

    ``retries`` are those of a unit of work, ``keep_journal`` is ``[journal] enabled``. ConfigurationError if a URL is
    unusable or there are no tables, Unavailable if the database cannot be reached.
    """
    url, standby_url = _urls(settings)
    state = _prepared(settings, url, keep_journal=keep_journal)
    _warn(state, keep_journal=keep_journal)
    engine = engine_for(url, settings)
    # One for the first attempt, one more for a race between two requests that create the same thing.
    database = Database(engine, keeps_usage=state.keeps_usage, keeps_journal=state.keeps_journal, attempts=retries + 2)
    if database.dialect != "sqlite":
        # Health checks have one connection, and give it up soon if the database is silent.
        probes = {
            "max_pool_size": 1,
            "max_overflow": 0,
            "pool_timeout": 1,
            "connect_timeout": 2,
            "statement_timeout": 1,
        }
        database.prober = Database(engine_for(url, settings, **probes), attempts=2)
    if standby_url is not None:
        database.standby = standby_of(database, engine_for(standby_url, settings))
    return database


def _prepared(settings: DatabaseSettings, url: URL, *, keep_journal: bool) -> schema.SchemaState:
    """Bring the database up to date as configured, where a statement may take as long as it needs."""
    engine = engine_for(url, settings, statement_timeout=0)
    _await(engine, settings)
    if settings.sync_on_startup:
        schema.upgrade(engine, keep_journal=keep_journal)
    state = schema.current(engine)
    if state.is_empty:
        raise ConfigurationError(
            "The database has no Placement tables: run 'placement db upgrade', or set [placement_database] "
            "sync_on_startup."
        )
    with looking(engine) as connection:
        lacks_names, rows = not has_standard_names(connection), [*odd_rows(connection, only_small_tables=True)]
    if lacks_names:  # this installation's libraries define names that the database lacks: usually none
        with exclusively(engine) as connection:
            sync_standard_names(connection)
    if rows:
        LOG.warning(
            "Some rows are passed over or read with a bound; 'placement audit' lists them. %s.", "; ".join(rows)
        )
    engine.dispose()
    return state


def _warn(state: schema.SchemaState, *, keep_journal: bool) -> None:
    """Warn if the database has not what this release and the settings ask for; /readycheck says the same of tables."""
    if not state.is_up_to_date and not state.is_newer:
        problem = NO_SCHEMA if state.revision is None else OLD_SCHEMA
        LOG.warning("Requests may fail, and the server is not ready: %s.", problem)
    if not state.keeps_usage:
        LOG.warning(
            "The triggers that keep usage are missing; usage is summed at each request. Run 'placement db upgrade' "
            "(on MariaDB the user needs the TRIGGER privilege)."
        )
    if state.keeps_journal != keep_journal:
        LOG.warning(
            "The journal is %s, although [journal] enabled says otherwise: run 'placement db upgrade'.",
            "written" if state.keeps_journal else "not written",
        )


def _urls(settings: DatabaseSettings) -> tuple[URL, URL | None]:
    """Return the URLs of the database and of its standby, if any."""
    url = normalised(settings.connection, settings.connection_parameters)
    if not settings.slave_connection:
        return url, None
    standby = normalised(settings.slave_connection, settings.connection_parameters, option="slave_connection")
    if url.get_backend_name() == "sqlite" or standby.drivername != url.drivername:
        raise ConfigurationError(
            "[placement_database] slave_connection has to name a standby of the database in connection, "
            "PostgreSQL or MariaDB."
        )
    if standby.get_backend_name() == "postgresql" and "tcp_user_timeout" not in standby.query:
        standby = standby.update_query_dict({"tcp_user_timeout": "5000"})
    return url, standby


def _await(engine: Engine, settings: DatabaseSettings) -> None:
    """Wait for the database to come up, as long as the operator allows: both may be starting at once."""
    tries_left = settings.max_retries
    while True:
        try:
            with looking(engine):
                return
        except Unavailable as error:
            if tries_left == 0:
                raise
            reason = error.message.removesuffix(".")
            LOG.warning("%s. Trying again in %s seconds.", reason, settings.retry_interval)
            tries_left -= 1
            time.sleep(settings.retry_interval)
