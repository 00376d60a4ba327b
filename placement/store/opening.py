"""Opening a database for serving: connect, bring it up to date where asked, and see what it offers."""

import logging

from placement.errors import ConfigurationError
from placement.settings import DatabaseSettings
from placement.store import schema
from placement.store.database import Database, PoolOptions, engine_for
from placement.store.maintenance import exclusively
from placement.store.standard_names import sync_standard_names
from placement.store.url import normalised

LOG = logging.getLogger(__name__)


def open_database(settings: DatabaseSettings) -> Database:
    """Return the database that the settings name, ready to serve.

    Raises:
        ConfigurationError: the URL cannot be used, or there are no tables.
        Unavailable: the database cannot be reached.
    """
    engine = engine_for(
        normalised(settings.connection, settings.connection_parameters),
        _pool(settings),
        sqlite_synchronous=settings.sqlite_synchronous,
    )
    if settings.sync_on_startup:
        schema.upgrade(engine)
    state = schema.current(engine)
    if state.is_empty:
        raise ConfigurationError(
            "The database holds no tables of Placement: run 'placement db upgrade', or set [placement_database] "
            "sync_on_startup."
        )
    with exclusively(engine) as connection:
        sync_standard_names(connection)
    if not state.keeps_usage:
        LOG.warning(
            "The triggers that keep usage are missing; usage is summed at each request. Run 'placement db upgrade' "
            "(on MariaDB the user needs the TRIGGER privilege)."
        )
    return Database(engine, keeps_usage=state.keeps_usage)


def _pool(settings: DatabaseSettings) -> PoolOptions:
    chosen = {
        "size": settings.max_pool_size,
        "overflow": settings.max_overflow,
        "timeout_s": settings.pool_timeout,
        "recycle_s": settings.connection_recycle_time,
    }
    return PoolOptions(**{name: value for name, value in chosen.items() if value is not None})  # type: ignore[arg-type]
