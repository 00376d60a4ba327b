"""How full trees are, of which kind, and how devices are spread over them: read off the cloud's columns."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement.cloud.columns import CloudColumns
from placement.cloud.providers import Floats, Ints
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.provider_names import named_providers

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
