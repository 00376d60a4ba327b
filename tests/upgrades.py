"""Upgrades of one database, started at the same moment."""

import threading
from collections.abc import Sequence

from sqlalchemy import Engine

from placement.store.lifecycle import schema


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
            schema.upgrade(engine, steps.append)
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
