"""The hosts of a cloud for the console: what they have, by the index of their trees, their names, and their groups.

Amounts are those of the columns. Names and groups are kept until a provider, or an aggregate, changes.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.cloud.providers import Flags, Floats, Ints
from placement.services.cloud_cache import cloud_in
from placement.store.connection.database import Transaction
from placement.store.console import providers as store
from placement.store.console.providers import NamedHost
from placement.store.console.stocks import DISABLED
from placement.store.journal.watched import AGGREGATE, PROVIDER
from placement.store.marks import hosts_in

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
