"""Starts requests at the same moment, and inspects what they left in the database."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import func, select
from werkzeug.test import TestResponse

from placement.store.connection.database import Database
from placement.store.tables import allocations, consumers, inventories, provider_usages
from tests.store.rows import joined_stock, kept_stock

T = TypeVar("T")

MAX_WAIT_S = 60


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run each call in a separate thread, all at once, and return the results in the same order."""
    barrier = threading.Barrier(len(calls))
    results: dict[int, T] = {}
    failures: list[BaseException] = []

    def run(index: int) -> None:
        try:
            barrier.wait(MAX_WAIT_S)
            results[index] = calls[index]()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MAX_WAIT_S)
    assert not failures, failures
    assert len(results) == len(calls), "a request is still waiting"
    return [results[index] for index in range(len(calls))]


def statuses(answers: Sequence[TestResponse]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def check_books(database: Database) -> None:
    """Check the invariants of any history: kept usage is right, and the consumers are those that hold something."""
    place = (allocations.c.resource_provider_id, allocations.c.resource_class_id)
    with database.engine.connect() as connection:
        summed = set(connection.execute(select(*place, func.sum(allocations.c.used)).group_by(*place)))
        kept = {tuple(row[:3]) for row in connection.execute(select(provider_usages)) if row.used}
        holders = set(connection.execute(select(allocations.c.consumer_id).distinct()).scalars())
        known = set(connection.execute(select(consumers.c.uuid)).scalars())
        assert kept_stock(connection) == joined_stock(connection)
        stocked = set(connection.execute(select(inventories.c.resource_provider_id, inventories.c.resource_class_id)))
    assert kept == summed
    assert holders == known
    assert {row[:2] for row in summed} <= stocked
