"""The whole cloud on one page: how full trees are, how devices are spread, what changed last."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from placement.services.console.hosts import Hosts, KindOfTrees
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.console.consumers import bearers, number_of_consumers
from placement.store.console.providers import ConsoleProvider, latest_changes, unchanged_trees
from placement.store.console.stocks import ClassTotals, stocks_of_trees, sums_by_class
from placement.store.marks import traits_matching
from placement.store.search.names import named_providers

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
    """How the free units of a class are spread: the trees with at least 1, 2, 4 and 8 free, and the most of any."""

    class_name: str
    free: int
    largest: int
    trees: tuple[int, ...]


class ClassStock(NamedTuple):
    """The cloud's stock of a resource class, and how many providers have it."""

    stock: ClassTotals
    providers: int


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

    By class, how many trees have a provider with more in use than there is; how many disabled hosts have anything free;
    and how many trees neither their service nor a consumer has changed for ``UNCHANGED_DAYS``.
    """

    overcommitted: Mapping[str, int]
    disabled_with_room: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The contents of the first page; ``tree_stocks`` are those of the trees in ``kinds``, by root."""

    trees: int
    providers: int
    consumers: int
    classes: list[ClassStock]
    kinds: list[TreeKind]
    more_kinds: int
    tree_stocks: Mapping[int, list[ClassTotals]]
    devices: list[Scattering]
    changes: list[ConsoleProvider]
    attention: Attention


@reads_anywhere
def overview(tx: Transaction, *, locks: Collection[str] = (), with_changes: bool = True) -> Overview:
    """Return the cloud at a glance.

    ``locks`` are classes that stand for exclusive use rather than devices. Which providers changed last is worth
    reading where no journal tells more.
    """
    hosts = Hosts(tx)
    kinds = [_extremes(tx, hosts, kind) for kind in hosts.kinds[:KINDS]]
    return Overview(
        trees=len(hosts.roots),
        providers=len(hosts.columns.providers.ids),
        consumers=number_of_consumers(tx),
        classes=_classes(tx, hosts),
        kinds=kinds,
        more_kinds=len(hosts.kinds) - len(kinds),
        tree_stocks=stocks_of_trees(tx, {tree.id for kind in kinds for tree in (*kind.fullest, *kind.emptiest)}),
        devices=_scattering(hosts, AMOUNTS | set(locks)),
        changes=latest_changes(tx, limit=CHANGES) if with_changes else [],
        attention=_attention(tx, hosts),
    )


def _classes(tx: Transaction, hosts: Hosts) -> list[ClassStock]:
    sums, classes = sums_by_class(tx), []
    for class_id, name in hosts.classes.items():
        stock, (total, reserved) = hosts.columns.stock(class_id), sums[class_id]
        totals = ClassTotals(name, total, reserved, int(np.trunc(stock.capacity).sum()), int(stock.used.sum()))
        classes.append(ClassStock(totals, len(stock.at)))
    return classes


def _extremes(tx: Transaction, hosts: Hosts, kind: KindOfTrees) -> TreeKind:
    """Return some of the fullest trees of a kind, unused ones aside, and some of the emptiest; equal ones by id."""
    trees, loads = kind.trees[hosts.loads[kind.trees] >= 0], hosts.loads
    fullest = trees[np.lexsort((trees, -loads[trees]))][:TREES]
    chosen = fullest[loads[fullest] > 0], trees[np.lexsort((trees, loads[trees]))][:TREES]
    named = named_providers(tx, hosts.roots[np.concatenate(chosen)].tolist())
    shown = [
        [
            LoadedTree(*named[id_][:3], float(loads[tree]), int(np.count_nonzero(loads[trees] == loads[tree])))
            for tree, id_ in zip(part, hosts.roots[part].tolist(), strict=True)
            if id_ in named
        ]
        for part in chosen
    ]
    return TreeKind(kind.classes, len(trees), *shown)


def _scattering(hosts: Hosts, ignored: Collection[str]) -> list[Scattering]:
    scattered = []
    for class_id, name in hosts.classes.items():
        if name not in ignored:
            free = hosts.amounts(class_id).free
            at_least = tuple([int(np.count_nonzero(free >= size)) for size in AT_LEAST])
            scattered.append(Scattering(name, int(free.sum()), int(free.max()), at_least))
    return scattered


def _attention(tx: Transaction, hosts: Hosts) -> Attention:
    overcommitted, has_free = {}, np.zeros(len(hosts.roots), dtype=bool)
    for class_id, name in hosts.classes.items():
        stock = hosts.columns.stock(class_id)
        capacity, trees = np.trunc(stock.capacity), hosts.columns.providers.trees[stock.at]
        has_free[trees[stock.used < capacity]] = True
        if number := len(np.unique(trees[(stock.used > capacity) & (capacity > 0)])):
            overcommitted[name] = number
    since = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=UNCHANGED_DAYS)
    return Attention(overcommitted, int(np.count_nonzero(has_free & hosts.disabled)), unchanged_trees(tx, since))


MAX_NAMES = 1000


class NamesInUse(NamedTuple):
    """The names that any provider has, sorted; at most MAX_NAMES of each kind."""

    classes: list[str]
    traits: list[str]


@reads_anywhere
def names_in_use(tx: Transaction) -> NamesInUse:
    """Return the names of the classes and traits that any provider has."""
    traits = [trait.name for trait in traits_matching(tx, associated=True)]
    return NamesInUse(*[sorted(names)[:MAX_NAMES] for names in (Hosts(tx).classes.values(), traits)])


known_as = reads_anywhere(bearers)
