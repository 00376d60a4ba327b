"""The whole cloud on a page."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import overview as store
from placement.store.console.overview import AT_LEAST, ClassStock, CloudCounts, LatestChange, LoadedTree, Scattering
from placement.store.console.stocks import ClassTotals, stocks_of_trees

__all__ = [
    "AT_LEAST",
    "ClassStock",
    "ClassTotals",
    "CloudCounts",
    "LatestChange",
    "LoadedTree",
    "Overview",
    "Scattering",
    "overview",
]

TREES, CHANGES = 5, 10

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
"""Standard classes that are measured rather than counted: all others are taken for devices."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What the first page shows; ``tree_stocks`` is by the id of the root."""

    counts: CloudCounts
    classes: list[ClassStock]
    fullest: list[LoadedTree]
    emptiest: list[LoadedTree]
    tree_stocks: Mapping[int, list[ClassTotals]]
    devices: list[Scattering]
    changes: list[LatestChange]


@reads_anywhere
def overview(tx: Transaction, *, locks: Collection[str] = ()) -> Overview:
    """Return the cloud at a glance. ``locks`` are classes that stand for no device, but for its exclusive use."""
    fullest, emptiest = store.loaded_trees(tx, limit=TREES)
    return Overview(
        counts=store.counts(tx),
        classes=store.class_stocks(tx),
        fullest=fullest,
        emptiest=emptiest,
        tree_stocks=stocks_of_trees(tx, {tree.id for tree in (*fullest, *emptiest)}),
        devices=store.scattering(tx, but=AMOUNTS | set(locks)),
        changes=store.latest_changes(tx, limit=CHANGES),
    )
