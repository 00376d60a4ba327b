"""The hosts of a cloud for the console: what they have, their names and groups; and all of them on one page.

Amounts are those of the columns, by the index of trees. Names and groups are kept until a provider, or an aggregate,
changes. The page says how full trees are, how devices are spread, and what changed last.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.cloud.providers import Flags, Floats, Ints
from placement.services.cloud_cache import cloud_in
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.console import providers as store
from placement.store.console.consumers import bearers, number_of_consumers
from placement.store.console.providers import ConsoleProvider, NamedHost, latest_changes, unchanged_trees
from placement.store.console.stocks import DISABLED, ClassTotals, stocks_of_trees, sums_by_class
from placement.store.journal.watched import AGGREGATE, PROVIDER
from placement.store.marks import hosts_in, traits_matching
from placement.store.search.names import named_providers

MAX_BITS = 62
"""The most classes that distinguish kinds; no cloud has more."""

BYTES_OF_HOST = 400
"""What a host's names take; its place in a group takes a tenth of it."""


class ClassInTrees(NamedTuple):
    """What trees have of a class: those that have any, by index, their capacity, and their usage."""

    trees: Ints
    capacity: Ints
    used: Ints

    @property
    def free(self) -> Ints:
        """What is left, never negative."""
        free: Ints = np.maximum(0, self.capacity - self.used)
        return free


class KindOfTrees(NamedTuple):
    """The trees with exactly the same classes, by index."""

    classes: tuple[str, ...]
    trees: Ints


class Hosts:
    """The trees of a snapshot's cloud."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._cloud = cloud_in(tx)
        self.columns = self._cloud.columns
        self.roots = self.columns.providers.roots
        """The id of each tree's root."""

    @cached_property
    def classes(self) -> Mapping[int, str]:
        """The names of the classes that any provider has, by ascending id."""
        ids = sorted(id_ for id_ in self.columns.class_ids if len(self.columns.stock(id_).at))
        names = self._tx.names.classes.names(self._tx.connection, ids)
        return {id_: names[id_] for id_ in ids}

    def amounts(self, class_id: int) -> ClassInTrees:
        """Return what trees have of a class. If a provider has more reserved than there is, its capacity is zero."""
        stock, sums = self.columns.stock(class_id), self.columns.sums(class_id)
        whole = np.maximum(0, np.trunc(stock.capacity))
        capacity = np.bincount(self.columns.providers.trees[stock.at], whole, len(self.roots)).astype(np.int64)
        trees = np.flatnonzero(sums.has)
        return ClassInTrees(trees, capacity[trees], sums.used[trees])

    @cached_property
    def loads(self) -> Floats:
        """The load of each tree's most loaded class (1.0: full), below 0 without any capacity."""
        loads = np.full(len(self.roots), -1.0)
        for class_id in self.classes:
            trees, capacity, used = self.amounts(class_id)
            load = np.where(capacity > 0, used / np.maximum(1, capacity), -1.0)
            loads[trees] = np.maximum(loads[trees], load)
        return loads

    @cached_property
    def kinds(self) -> Sequence[KindOfTrees]:
        """All kinds of trees that have anything, the most numerous first."""
        bits, class_ids = np.zeros(len(self.roots), dtype=np.int64), [*self.classes][:MAX_BITS]
        for bit, class_id in enumerate(class_ids):
            bits[self.columns.sums(class_id).has] |= 1 << bit
        kinds, numbers = np.unique(bits[bits > 0], return_counts=True)
        return [
            KindOfTrees(
                tuple([self.classes[class_id] for bit, class_id in enumerate(class_ids) if kind >> bit & 1]),
                np.flatnonzero(bits == kind),
            )
            for kind in kinds[np.lexsort((kinds, -numbers))].tolist()
        ]

    def with_free(self, amounts: Mapping[int, int]) -> Flags:
        """Return which trees have these amounts left in total, by class id."""
        has_all = np.ones(len(self.roots), dtype=bool)
        for class_id, amount in amounts.items():
            trees, capacity, used = self.amounts(class_id)
            has_all &= self.flags(trees[capacity - used >= amount])
        return has_all

    @cached_property
    def disabled(self) -> Flags:
        """Which trees take no new consumers: any provider has nova's trait, or is drained."""
        trait = self._tx.names.traits.ids(self._tx.connection, [DISABLED]).get(DISABLED)
        disabled = self.flags(self.trees_of(store.drained_roots(self._tx)))
        if trait is not None:
            disabled[self.columns.providers.trees[self._cloud.sets.with_trait(trait)]] = True
        return disabled

    @cached_property
    def named(self) -> Sequence[NamedHost]:
        """The roots in the natural order of their names."""
        size = BYTES_OF_HOST * len(self.roots)
        return self._cloud.kept.unless_marked(
            "hosts by name", (PROVIDER,), read=lambda: store.named_hosts(self._tx), size=size
        )

    @cached_property
    def order(self) -> Ints:
        """The indices of the trees in that order."""
        trees = self.columns.providers.tree_indices([host.id for host in self.named])
        return trees[trees >= 0]

    def in_groups(self, aggregates: Collection[str]) -> Mapping[str, Sequence[int]]:
        """Map aggregates to the roots of the trees that have a provider in them."""
        name, size = ("hosts in", frozenset(aggregates)), BYTES_OF_HOST // 10 * len(self.roots)
        kinds = PROVIDER, AGGREGATE
        return self._cloud.kept.unless_marked(name, kinds, read=lambda: hosts_in(self._tx, aggregates), size=size)

    def flags(self, trees: Ints) -> Flags:
        """Return which trees these are, given their indices."""
        flags = np.zeros(len(self.roots), dtype=bool)
        flags[trees] = True
        return flags

    def trees_of(self, roots: Collection[int]) -> Ints:
        """Return the indices of trees by the ids of their roots, without those that are not here."""
        trees = self.columns.providers.tree_indices(sorted(roots))
        return trees[trees >= 0]

    def root_ids(self, flags: Flags) -> set[int]:
        """Return the ids of the roots of trees."""
        return set(self.roots[flags].tolist())


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
