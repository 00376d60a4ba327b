"""What everybody uses of what there is, read from the allocations on demand and cached for some seconds.

Nothing is written for it: a row with the usage of a project would be one that all its claims have to change.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from placement.allocators.fair_share import Amounts, FairShares
from placement.settings.planner.values import FairShareSettings
from placement.store import fair_share as store
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads

UNKNOWN = store.UNTYPED
"""The name of consumers without a type, as in GET /usages; and of the project of consumers that have none."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read at one moment.

    Args:
        usage: project (or consumer type) -> class -> how much it uses.
        totals: class -> how much there is, of each class that counts.
        read_at: when that was, on the clock of whoever keeps it.
    """

    usage: Mapping[str, Amounts]
    totals: Amounts
    read_at: float = 0

    def members(self, settings: FairShareSettings) -> list[str]:
        """Return everybody who is a leaf: who uses something, and who is written in the tree."""
        return list(dict.fromkeys([*settings.queues.members, *self.usage]))

    def shares(
        self, settings: FairShareSettings, *, waiting: Mapping[str, Amounts] | None = None, others: tuple[str, ...] = ()
    ) -> FairShares:
        """Return the shares, with what is waited for by leaf, and with leaves for others, who use nothing yet."""
        queues = settings.queues
        usage = {queues.path_of(member): amounts for member, amounts in self.usage.items()}
        root = queues.tree([*self.usage, *others])
        return FairShares(root, self.totals, usage=usage, tasks=waiting)


class UsageCache:
    """The last reading; threads share it, and one reads for all that wait."""

    def __init__(self, settings: FairShareSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._reading: Reading | None = None

    def reading(self, database: Database) -> Reading:
        """Return what was read at most ``keep_s`` seconds ago, or is read now."""
        with self._lock:
            if self._reading is None or self.age_s(self._reading) >= self.settings.keep_s:
                started = self._clock()
                usage, totals = read_usage(database, self.settings)
                self._reading = Reading(usage, totals, started)
            return self._reading

    def age_s(self, reading: Reading) -> float:
        """Return how many seconds ago something was read."""
        return max(0.0, self._clock() - reading.read_at)


@reads
def read_usage(tx: Transaction, settings: FairShareSettings) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Return what everybody uses, and what there is, as of one moment."""
    return usage_now(tx, settings)


def usage_now(tx: Transaction, settings: FairShareSettings) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Return the same in a transaction that is there."""
    return usage_of(tx, settings), totals_now(tx, settings)


def usage_of(
    tx: Transaction,
    settings: FairShareSettings,
    *,
    types: Collection[str] | None = None,
    consumers: Collection[str] | None = None,
) -> dict[str, dict[str, int]]:
    """Return what everybody uses; only consumers of these types and with these uuids count, if any are named."""
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    names = {id_: name for name, id_ in ids.items()}
    read = store.usage_by_project if settings.leaves == "project" else store.usage_by_type
    usage: dict[str, dict[str, int]] = defaultdict(dict)
    for member, class_id, amount in read(tx, store.UsageScope(names, settings.partition, types, consumers)):
        own, name = usage[member or UNKNOWN], names[class_id]
        own[name] = own.get(name, 0) + int(amount)
    return dict(usage)


def totals_now(tx: Transaction, settings: FairShareSettings) -> dict[str, int]:
    """Return how much there is of each class that counts."""
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    totals = store.totals(tx, ids.values(), settings.partition)
    return {name: totals.get(ids.get(name, -1), 0) for name in settings.classes}
