"""Open a database for serving: connect, upgrade it if asked to, and find out what it offers."""

import logging
import time
from dataclasses import replace
from typing import Any

from sqlalchemy import URL, Engine, event

from placement.errors import ConfigurationError, Unavailable
from placement.settings import DatabaseSettings
from placement.store.checks.audit import odd_rows
from placement.store.connection.database import ATTEMPTS, Database
from placement.store.connection.engines import PoolOptions, engine_for
from placement.store.connection.url import normalised
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively, looking
from placement.store.lifecycle.reference_schema import has_standard_names, sync_standard_names
from placement.store.lifecycle.schema import NO_SCHEMA, OLD_SCHEMA
from placement.store.lifecycle.standby import standby_of

LOG = logging.getLogger(__name__)

STATEMENTS_ARE_LOGGED = 50
ROWS_ARE_LOGGED = 100
"""Thresholds of ``connection_debug``."""


def open_database(settings: DatabaseSettings, *, retries: int = ATTEMPTS - 2, keep_journal: bool = True) -> Database:
    """Return the configured database, ready to serve, with no connection open.

    Servers fork after the application is created, and some (uWSGI) do so behind Python's back: connections open by then
    would be shared by all processes.

    Args:
        settings: ``[placement_database]``.
        retries: how often a unit of work is retried after a transient failure.
        keep_journal: ``[journal] enabled``.

    Raises:
        ConfigurationError: a URL is unusable, or there are no tables.
        Unavailable: the database cannot be reached.
    """
    url, standby_url = _urls(settings)
    state = _prepared(settings, url, keep_journal=keep_journal)
    _warn_of_schema(state)
    _warn_of_triggers(state, keep_journal=keep_journal)
    engine = _engine(settings, url)
    # One for the first attempt, one more for a race between two requests that create the same thing.
    database = Database(engine, keeps_usage=state.keeps_usage, keeps_journal=state.keeps_journal, attempts=retries + 2)
    if database.dialect != "sqlite":
        database.prober = Database(_engine(_for_probes(settings), url), attempts=2)
    if standby_url is not None:
        database.standby = standby_of(database, _engine(settings, standby_url))
    return database


def _for_probes(settings: DatabaseSettings) -> DatabaseSettings:
    """Allow health checks one connection, and give it up soon if the database is silent."""
    return replace(settings, max_pool_size=1, max_overflow=0, pool_timeout=1, connect_timeout=2, statement_timeout=1)


def _prepared(settings: DatabaseSettings, url: URL, *, keep_journal: bool) -> schema.SchemaState:
    """Bring the database up to date as configured, where a statement may take as long as it needs."""
    engine = _engine(replace(settings, statement_timeout=0), url)
    _await(engine, settings)
    if settings.sync_on_startup:
        schema.upgrade(engine, keep_journal=keep_journal)
    state = schema.current(engine)
    if state.is_empty:
        raise ConfigurationError(
            "The database has no Placement tables: run 'placement db upgrade', or set [placement_database] "
            "sync_on_startup."
        )
    _add_standard_names(engine)
    _warn_of_odd_rows(engine)
    engine.dispose()
    return state


def _warn_of_schema(state: schema.SchemaState) -> None:
    """Warn if the database still has to be adopted or migrated; then /readycheck says the same."""
    if not state.is_up_to_date and not state.is_newer:
        problem = NO_SCHEMA if state.revision is None else OLD_SCHEMA
        LOG.warning("Requests may fail, and the server is not ready: %s.", problem)


def _warn_of_triggers(state: schema.SchemaState, *, keep_journal: bool) -> None:
    """Warn if the database's triggers are not those that the settings ask for."""
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


def _warn_of_odd_rows(engine: Engine) -> None:
    """Warn of rows that are passed over, or read as others."""
    with looking(engine) as connection:
        found = [*odd_rows(connection, only_small_tables=True)]
    if found:
        LOG.warning(
            "Some rows are passed over or read with a bound; 'placement audit' lists them. %s.", "; ".join(found)
        )


def _add_standard_names(engine: Engine) -> None:
    """Add names that this installation's libraries define and the database lacks: usually none."""
    with looking(engine) as connection:
        if has_standard_names(connection):
            return
    with exclusively(engine) as connection:
        sync_standard_names(connection)


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
    if standby.get_backend_name() == "postgresql":
        standby = _with_defaults(standby, tcp_user_timeout="5000")
    return url, standby


def _with_defaults(url: URL, **parameters: str) -> URL:
    """Add the parameters that a URL does not set itself."""
    return url.update_query_dict({name: value for name, value in parameters.items() if name not in url.query})


def _with_timeouts(url: URL, settings: DatabaseSettings) -> URL:
    """Add timeouts, so that requests do not wait long for a dead or stopped machine."""
    limit = str(settings.connect_timeout)
    if url.get_backend_name() == "postgresql":
        return _with_defaults(url, connect_timeout=limit)
    if url.get_backend_name() == "sqlite":
        return url
    return _with_defaults(url, connect_timeout=limit, read_timeout=limit, write_timeout=limit)


def _engine(settings: DatabaseSettings, url: URL) -> Engine:
    engine = engine_for(
        _with_timeouts(url, settings),
        _pool(settings),
        sqlite_synchronous=settings.sqlite_synchronous,
        plain_sqlalchemy=settings.plain_sqlalchemy,
    )
    if engine.dialect.name in {"mysql", "mariadb"} and not {"read_timeout", "write_timeout"} & set(url.query):
        _limit_statements_on_mariadb(engine, settings.statement_timeout or None)
    if settings.connection_debug >= STATEMENTS_ARE_LOGGED:
        rows_too = settings.connection_debug >= ROWS_ARE_LOGGED
        logging.getLogger("sqlalchemy.engine").setLevel(logging.DEBUG if rows_too else logging.INFO)
    if engine.dialect.name in {"mysql", "mariadb"} and settings.mysql_sql_mode:
        _set_sql_mode(engine, settings.mysql_sql_mode)
    return engine


def _limit_statements_on_mariadb(engine: Engine, limit_s: int | None) -> None:
    """Give statements their own limit: until the login is done, the driver's is that of connecting."""

    @event.listens_for(engine, "connect")
    def set_limit(connection: Any, _record: Any) -> None:
        vars(connection).update(_read_timeout=limit_s, _write_timeout=limit_s)


def _set_sql_mode(engine: Engine, mode: str) -> None:
    @event.listens_for(engine, "connect")
    def set_mode(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = %s", (mode,))


def _await(engine: Engine, settings: DatabaseSettings) -> None:
    """Wait for the database to come up, as long as the operator allows: both may be starting at once."""
    left = settings.max_retries
    while True:
        try:
            with looking(engine):
                return
        except Unavailable as error:
            if left == 0:
                raise
            reason = error.message.removesuffix(".")
            LOG.warning("%s. Trying again in %s seconds.", reason, settings.retry_interval)
            left -= 1
            time.sleep(settings.retry_interval)


def _pool(settings: DatabaseSettings) -> PoolOptions:
    chosen = {
        "statement_s": settings.statement_timeout or None,
        "size": settings.max_pool_size,
        "overflow": settings.max_overflow,
        "timeout_s": settings.pool_timeout,
        "recycle_s": settings.connection_recycle_time,
    }
    return PoolOptions(**{name: value for name, value in chosen.items() if value is not None})
