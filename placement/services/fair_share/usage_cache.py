"""Everybody's usage and the totals, read from the allocations on demand and cached for a few seconds.

No usage by project is stored: every claim of the project would have to update the same row.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from placement.allocators.fair_share import Amounts, FairShares
from placement.domain.names import UNTYPED
from placement.settings.planner.values import FairShareSettings
from placement.store import fair_share as store
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads

UNKNOWN = UNTYPED
"""Stands for a missing consumer type, as in GET /usages, and for the project of consumers without one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Usage and totals at one moment.

    Args:
        usage: project (or consumer type) -> class -> usage.
        totals: class -> total, for the classes that count.
        read_at: the time of reading, on the cache's clock.
    """

    usage: Mapping[str, Amounts]
    totals: Amounts
    read_at: float = 0

    def members(self, settings: FairShareSettings) -> list[str]:
        """Return all leaves: those configured in the tree, and those with usage."""
        return list(dict.fromkeys([*settings.queues.members, *self.usage]))

    def shares(
        self, settings: FairShareSettings, *, waiting: Mapping[str, Amounts] | None = None, others: tuple[str, ...] = ()
    ) -> FairShares:
        """Return the shares, with what is waited for by leaf, and with leaves for others that use nothing yet."""
        queues = settings.queues
        usage = {queues.path_of(member): amounts for member, amounts in self.usage.items()}
        root = queues.tree([*self.usage, *others])
        return FairShares(root, self.totals, usage=usage, tasks=waiting)


class UsageCache:
    """The latest reading, shared by threads: one of them reads for all that wait."""

    def __init__(self, settings: FairShareSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._reading: Reading | None = None

    def reading(self, database: Database) -> Reading:
        """Return a reading that is at most ``keep_s`` seconds old."""
        with self._lock:
            if self._reading is None or self.age_s(self._reading) >= self.settings.keep_s:
                started = self._clock()
                usage, totals = read_usage(database, self.settings)
                self._reading = Reading(usage, totals, started)
            return self._reading

    def age_s(self, reading: Reading) -> float:
        """Return the age of a reading in seconds."""
        return max(0.0, self._clock() - reading.read_at)


@reads
def read_usage(tx: Transaction, settings: FairShareSettings) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Return everybody's usage and the totals in one snapshot."""
    return usage_of(tx, settings), totals_now(tx, settings)


def usage_of(
    tx: Transaction,
    settings: FairShareSettings,
    *,
    types: Collection[str] | None = None,
    consumers: Collection[str] | None = None,
) -> dict[str, dict[str, int]]:
    """Return everybody's usage, optionally only that of consumers of these types and with these uuids."""
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    names = {id_: name for name, id_ in ids.items()}
    read = store.usage_by_project if settings.leaves == "project" else store.usage_by_type
    usage: dict[str, dict[str, int]] = defaultdict(dict)
    for member, class_id, amount in read(tx, store.UsageScope(names, settings.partition, types, consumers)):
        own, name = usage[member or UNKNOWN], names[class_id]
        own[name] = own.get(name, 0) + int(amount)
    return dict(usage)


def totals_now(tx: Transaction, settings: FairShareSettings) -> dict[str, int]:
    """Return the total of each class that counts."""
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    totals = store.totals(tx, ids.values(), settings.partition)
    return {name: totals.get(ids.get(name, -1), 0) for name in settings.classes}
