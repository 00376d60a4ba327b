"""The whole cloud on one page."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import overview as store
from placement.store.console.loads import LoadedTree, TreeKind, kinds_of_trees
from placement.store.console.overview import AT_LEAST, ClassStock, CloudCounts, LatestChange, Scattering
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
    "TreeKind",
    "overview",
]

TREES, KINDS, CHANGES = 3, 4, 10

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
    """

    counts: CloudCounts
    classes: list[ClassStock]
    kinds: list[TreeKind]
    more_kinds: int
    tree_stocks: Mapping[int, list[ClassTotals]]
    devices: list[Scattering]
    changes: list[LatestChange]


@reads_anywhere
def overview(tx: Transaction, *, locks: Collection[str] = ()) -> Overview:
    """Return the cloud at a glance. ``locks`` are classes that stand for exclusive use rather than devices."""
    classes = store.class_stocks(tx)
    kinds = kinds_of_trees(tx, [stock.class_id for stock in classes], limit=TREES)
    shown = kinds[:KINDS]
    return Overview(
        counts=store.counts(tx),
        classes=classes,
        kinds=shown,
        more_kinds=len(kinds) - len(shown),
        tree_stocks=stocks_of_trees(tx, {tree.id for kind in shown for tree in (*kind.fullest, *kind.emptiest)}),
        devices=store.scattering(tx, but=AMOUNTS | set(locks)),
        changes=store.latest_changes(tx, limit=CHANGES),
    )
