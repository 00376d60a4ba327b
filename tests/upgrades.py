"""Upgrades of one database, started at the same moment, and the way back to an earlier release."""

import threading
from collections.abc import Sequence

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine

from placement.store.lifecycle import schema
from placement.store.lifecycle.schema import migrations


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
