"""The whole cloud on one page: how full trees are, how devices are spread, what changed last."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from placement.cloud.columns import CloudColumns
from placement.cloud.providers import Floats, Ints
from placement.services.cloud_cache import cloud_in
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import overview as store
from placement.store.console.overview import ClassStock, CloudCounts
from placement.store.console.providers import ConsoleProvider, latest_changes
from placement.store.console.stocks import ClassTotals, disabled_hosts, stocks_of_trees
from placement.store.search.names import named_providers

MAX_BITS = 62
"""The most classes that distinguish kinds; no cloud has more."""

AT_LEAST = (1, 2, 4, 8)
"""The sizes of requests, in devices, to look at."""


class LoadedTree(NamedTuple):
    """A tree, the load of its most loaded class (1.0: full), and how many trees of its kind have the same load."""

    id: int
    uuid: str
    name: str
    load: float
    alike: int


class TreeKind(NamedTuple):
    """The trees with the same classes: how many there are, the fullest and the emptiest."""

    classes: tuple[str, ...]
    trees: int
    fullest: Sequence[LoadedTree]
    emptiest: Sequence[LoadedTree]


class Scattering(NamedTuple):
    """How the free units of a class are spread over the trees.

    ``trees`` are the numbers of trees with at least 1, 2, 4 and 8 free, ``most`` is the maximum of any tree.
    """

    class_name: str
    free: int
    most: int
    trees: tuple[int, ...]


class ClassInTrees(NamedTuple):
    """What trees have of a class: those that have any, by index, their capacity, and their usage."""

    trees: Ints
    capacity: Ints
    used: Ints


def class_in_trees(columns: CloudColumns, class_id: int) -> ClassInTrees:
    """Return what trees have of a class. If a provider has more reserved than there is, its capacity is zero."""
    stock, sums = columns.stock(class_id), columns.sums(class_id)
    whole = np.maximum(0, np.trunc(stock.capacity))
    capacity = np.bincount(columns.providers.trees[stock.at], whole, len(columns.providers.roots)).astype(np.int64)
    trees = np.flatnonzero(sums.has)
    return ClassInTrees(trees, capacity[trees], sums.used[trees])


def kinds_of_trees(
    tx: Transaction, columns: CloudColumns, class_ids: Sequence[int], *, kinds: int, limit: int
) -> tuple[list[TreeKind], int]:
    """Return the most numerous kinds of trees, with some of the fullest and emptiest of each, and how many there are.

    Unused trees are not listed among the fullest.

    Args:
        tx: the transaction.
        columns: the cloud.
        class_ids: all classes with inventory.
        kinds: how many kinds.
        limit: how many trees of each kind.
    """
    class_ids = sorted(class_ids)[:MAX_BITS]
    bits, loads = _bits_and_loads(columns, class_ids)
    has_load = np.flatnonzero(loads >= 0)
    found, numbers = np.unique(bits[has_load], return_counts=True)
    order = np.lexsort((found, -numbers))[:kinds]
    chosen = [_fullest_and_emptiest(has_load[bits[has_load] == kind], loads, limit) for kind in found[order].tolist()]
    ids = columns.providers.roots[np.concatenate([*map(np.concatenate, chosen)])].tolist() if chosen else []
    named, names = named_providers(tx, ids), tx.names.classes.names(tx.connection, class_ids)

    def shown(kind: int, trees: Ints) -> list[LoadedTree]:
        same = loads[bits == kind]
        of_trees = zip(columns.providers.roots[trees].tolist(), loads[trees].tolist(), strict=True)
        return [
            LoadedTree(id_, named[id_].uuid, named[id_].name, load, int(np.count_nonzero(same == load)))
            for id_, load in of_trees
            if id_ in named
        ]

    return [
        TreeKind(
            tuple([names[class_id] for bit, class_id in enumerate(class_ids) if kind >> bit & 1]),
            number,
            *[shown(kind, trees) for trees in of_kind],
        )
        for kind, number, of_kind in zip(found[order].tolist(), numbers[order].tolist(), chosen, strict=True)
    ], len(found)


def _bits_and_loads(columns: CloudColumns, class_ids: Sequence[int]) -> tuple[Ints, Floats]:
    """Return which classes each tree has, as bits, and the load of its most loaded one, below 0 without capacity."""
    bits, loads = np.zeros(len(columns.providers.roots), dtype=np.int64), np.full(len(columns.providers.roots), -1.0)
    for bit, class_id in enumerate(class_ids):
        trees, capacity, used = class_in_trees(columns, class_id)
        bits[trees] |= 1 << bit
        load = np.where(capacity > 0, used / np.maximum(1, capacity), -1.0)
        loads[trees] = np.maximum(loads[trees], load)
    return bits, loads


def _fullest_and_emptiest(trees: Ints, loads: Floats, limit: int) -> tuple[Ints, Ints]:
    """Return some of the fullest of these trees, and some of the emptiest; equal ones by id."""
    fullest = trees[np.lexsort((trees, -loads[trees]))][:limit]
    return fullest[loads[fullest] > 0], trees[np.lexsort((trees, loads[trees]))][:limit]


def scattering(columns: CloudColumns, classes: Mapping[int, str], *, but: Collection[str]) -> list[Scattering]:
    """Return how free units are spread over the trees, for all classes (by id) but some."""
    scattered = []
    for class_id, name in sorted(classes.items()):
        if name not in but:
            trees, capacity, used = class_in_trees(columns, class_id)
            free = np.maximum(0, capacity - used)
            at_least = tuple([int(np.count_nonzero(free >= size)) for size in AT_LEAST])
            if len(trees):
                scattered.append(Scattering(name, int(free.sum()), int(free.max()), at_least))
    return scattered


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
    changes: list[ConsoleProvider]
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
        changes=latest_changes(tx, limit=CHANGES),
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


names_in_use = reads_anywhere(store.names_in_use)


known_as = reads_anywhere(store.known_as)
