"""Opening a database for serving: connect, bring it up to date where asked, and see what it offers."""

import logging

from placement.settings import DatabaseSettings
from placement.store import schema
from placement.store.database import Database, PoolOptions, engine_for
from placement.store.standard_names import sync_standard_names
from placement.store.url import normalised
from placement.store.usage_triggers import triggers_in_place

LOG = logging.getLogger(__name__)


def open_database(settings: DatabaseSettings) -> Database:
    """Return the database that the settings name, ready to serve.

    Raises:
        ConfigurationError: the URL cannot be used.
    """
    engine = engine_for(
        normalised(settings.connection, settings.connection_parameters),
        _pool(settings),
        sqlite_synchronous=settings.sqlite_synchronous,
    )
    if settings.sync_on_startup:
        schema.upgrade(engine)
    with engine.begin() as connection:
        sync_standard_names(connection)
        keeps_usage = triggers_in_place(connection)
    if not keeps_usage:
        LOG.warning(
            "The triggers that keep usage are missing; usage is summed at each request. Run 'placement db upgrade' "
            "(on MariaDB the user needs the TRIGGER privilege)."
        )
    return Database(engine, keeps_usage=keeps_usage)


def _pool(settings: DatabaseSettings) -> PoolOptions:
    chosen = {
        "size": settings.max_pool_size,
        "overflow": settings.max_overflow,
        "timeout_s": settings.pool_timeout,
        "recycle_s": settings.connection_recycle_time,
    }
    return PoolOptions(**{name: value for name, value in chosen.items() if value is not None})  # type: ignore[arg-type]
