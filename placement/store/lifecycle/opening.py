"""Open a database for serving: connect, upgrade it if asked to, and find out what it offers."""

import logging
import time

from sqlalchemy import URL, Engine

from placement.errors import ConfigurationError, Unavailable
from placement.settings import DatabaseSettings
from placement.store.checks.audit import odd_rows
from placement.store.connection.database import ATTEMPTS, Database
from placement.store.connection.engines import engine_for
from placement.store.connection.url import normalised
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively, looking
from placement.store.lifecycle.reference_schema import has_standard_names, sync_standard_names
from placement.store.lifecycle.schema import NO_SCHEMA, OLD_SCHEMA
from placement.store.lifecycle.standby import standby_of

LOG = logging.getLogger(__name__)


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
