"""The whole cloud on one page, and the names by which its parts are searched for."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from placement.cloud.columns import CloudColumns
from placement.services.cloud_cache import cloud_in
from placement.services.console.tree_loads import (
    Scattering,
    TreeKind,
    kinds_of_trees,
    scattering,
)
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import overview as store
from placement.store.console.overview import Bearers, ClassStock, CloudCounts, LatestChange, NamesInUse
from placement.store.console.stocks import ClassTotals, disabled_hosts, stocks_of_trees

TREES, KINDS, CHANGES = 3, 4, 10
UNCHANGED_DAYS = 30

AMOUNTS = frozenset(
    {
        "VCPU",
        "PCPU",
        "MEMORY_MB",
        "DISK_GB",
        "NUMA_CORE",
        "NUMA_THREAD",
        "NUMA_MEMORY_MB",
        "IPV4_ADDRESS",
        "NET_BW_EGR_KILOBIT_PER_SEC",
        "NET_BW_IGR_KILOBIT_PER_SEC",
        "NET_PACKET_RATE_KILOPACKET_PER_SEC",
        "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC",
        "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC",
        "MEM_ENCRYPTION_CONTEXT",
    }
)
"""Standard classes that are measured rather than counted; all others are assumed to be devices."""


@dataclass(frozen=True, slots=True)
class Attention:
    """What an operator should look at.

    Args:
        overcommitted: class -> the number of trees with a provider that has more in use than its capacity. Drained
            providers, which have none, do not count.
        disabled_with_room: how many disabled hosts have anything free.
        unchanged: how many trees nobody has changed for ``UNCHANGED_DAYS``, neither their service nor a consumer.
    """

    overcommitted: Mapping[str, int]
    disabled_with_room: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The contents of the first page.

    Args:
        counts: the numbers of trees, providers and consumers.
        classes: the stock of each class.
        kinds: the most numerous kinds of trees, with their fullest and emptiest.
        more_kinds: how many other kinds there are.
        tree_stocks: the stocks of these trees, by root id.
        devices: how devices are spread over the trees.
        changes: the providers that changed last.
        attention: what should be looked at.
    """

    counts: CloudCounts
    classes: list[ClassStock]
    kinds: list[TreeKind]
    more_kinds: int
    tree_stocks: Mapping[int, list[ClassTotals]]
    devices: list[Scattering]
    changes: list[LatestChange]
    attention: Attention


@reads_anywhere
def overview(tx: Transaction, *, locks: Collection[str] = ()) -> Overview:
    """Return the cloud at a glance.

    Args:
        tx: the transaction.
        locks: classes that stand for exclusive use rather than devices.
    """
    classes, columns = store.class_stocks(tx), cloud_in(tx).columns
    names = {stock.class_id: stock.stock.class_name for stock in classes}
    kinds, number = kinds_of_trees(tx, columns, [*names], kinds=KINDS, limit=TREES)
    return Overview(
        counts=store.counts(tx),
        classes=classes,
        kinds=kinds,
        more_kinds=number - len(kinds),
        tree_stocks=stocks_of_trees(tx, {tree.id for kind in kinds for tree in (*kind.fullest, *kind.emptiest)}),
        devices=scattering(columns, names, but=AMOUNTS | set(locks)),
        changes=store.latest_changes(tx, limit=CHANGES),
        attention=_attention(tx, columns, names),
    )


def _attention(tx: Transaction, columns: CloudColumns, classes: Mapping[int, str]) -> Attention:
    overcommitted, has_free = {}, np.zeros(len(columns.providers.roots), dtype=bool)
    for class_id, name in sorted(classes.items()):
        stock = columns.stock(class_id)
        capacity, trees = np.trunc(stock.capacity), columns.providers.trees[stock.at]
        has_free[trees[stock.used < capacity]] = True
        if number := len(np.unique(trees[(stock.used > capacity) & (capacity > 0)])):
            overcommitted[name] = number
    disabled = columns.providers.tree_indices(sorted(disabled_hosts(tx)))
    with_room = int(np.count_nonzero(has_free[disabled[disabled >= 0]]))
    since = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=UNCHANGED_DAYS)
    return Attention(overcommitted, with_room, store.unchanged_trees(tx, since))


@reads_anywhere
def names_in_use(tx: Transaction) -> NamesInUse:
    """Return the resource classes and traits that any provider has."""
    return store.names_in_use(tx)


@reads_anywhere
def known_as(tx: Transaction, identifier: str) -> Bearers:
    """Return the provider, the consumer and the project that have an identifier, if any."""
    return store.known_as(tx, identifier)
