"""Upgrades of one database, started at the same moment, what they leave, and the way back to an earlier release."""

import threading
from collections.abc import Sequence
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine

from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from placement.store.lifecycle.schema import migrations
from placement.store.tables import metadata

VERSION_TABLES = {"alembic_version", "placement_server_version"}


def differences(database: Database) -> list[Any]:
    """Return the differences between a database and the tables that the code knows."""
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        found = compare_metadata(context, metadata)
    return [each for each in found if each[0] != "remove_table" or each[1].name not in VERSION_TABLES]


def upgraded_at_once(engines: Sequence[Engine]) -> list[str]:
    """Upgrade through all engines at once; return the steps that any of them took.

    Raises:
        ExceptionGroup: some of them failed.
    """
    start = threading.Barrier(len(engines))
    steps: list[str] = []
    errors: list[Exception] = []

    def upgrade(engine: Engine) -> None:
        start.wait()
        try:
            schema.upgrade(engine, lambda step, _done: steps.append(step))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=upgrade, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise ExceptionGroup("upgrades failed", errors)
    return steps


def downgrade(connection: Connection, revision: str) -> None:
    """Bring a database back to an earlier revision; the connection is one of ``maintenance.exclusively``."""
    config = Config()
    config.set_main_option("script_location", str(migrations()))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.downgrade(config, revision)
