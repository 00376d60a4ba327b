"""The headroom of hierarchical names in small random hosts is consistent with filling them in every possible way."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest
from flask import Flask

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_clouds import LEVELS, LOCK, make_names
from tests.small_clouds import Cloud, Inventory, Node, load

PATH = "/planner/v1/headroom"
CLOUDS, REQUESTS = 4, 4

pytestmark = pytest.mark.any_database

Amounts = Counter[tuple[int, str]]
"""By provider and class."""


@dataclass(frozen=True)
class Wanted:
    """What one place of a level, or the root, has to serve."""

    level: str = ""
    amounts: Mapping[str, int] = field(default_factory=dict)
    parts: tuple["Wanted", ...] = ()

    def names(self) -> dict[str, Any]:
        """Return this as the ``tree`` of a request."""
        found: dict[str, Any] = dict(self.amounts)
        for number, part in enumerate(self.parts):
            found.setdefault(part.level, {})[str(number)] = part.names()
        return found


def random_host(chance: Random, cloud: Cloud) -> None:
    """Add a host: NUMA nodes with CPUs, PCIe switches with GPUs, some with locks."""

    def add(parent: int | None, inventories: Mapping[str, Inventory], level: str | None = None) -> int:
        id_ = len(cloud) + 1
        root = id_ if parent is None else cloud[parent].root
        cloud[id_] = Node(id_, parent, root, inventories, frozenset({LEVELS[level]} if level else ()))
        return id_

    def stock(most: int) -> Inventory:
        total = chance.randint(1, most)
        return Inventory(total, used=chance.randint(0, total) if chance.random() < 0.2 else 0)

    root = add(None, {"MEMORY_MB": stock(6)})
    for _ in range(chance.choice((1, 2))):
        numa = add(root, {"VCPU": stock(5)}, "numa")
        for _ in range(chance.choice((0, 1, 2))):
            lock = {LOCK: Inventory(3, used=chance.choice((0, 0, 1)))} if chance.random() < 0.4 else {}
            add(numa, {"PGPU": stock(3), **lock}, "pcie")


def random_wanted(chance: Random) -> Wanted:
    def switch() -> Wanted:
        return Wanted("pcie", {"PGPU": chance.choice((1, 1, 2))})

    def node() -> Wanted:
        amounts = {"VCPU": chance.randint(1, 3)} if chance.random() < 0.7 else {}
        switches = tuple([switch() for _ in range(chance.choice((0, 1, 1, 2)))])
        return Wanted("numa", amounts, switches) if amounts or switches else switch()

    outside = chance.choice(({}, {}, {"MEMORY_MB": 1}, {"VCPU": 1}))
    return Wanted("", outside, tuple([node() for _ in range(chance.choice((1, 1, 2)))]))


class Filling:
    """Places copies of hierarchical names on a host, in every way."""

    def __init__(self, cloud: Cloud, root: int, *, distinct: bool) -> None:
        self.tree = {node.id: node for node in cloud.values() if node.root == root}
        self.root, self.distinct = root, distinct

    def most(self, wanted: Wanted) -> int:
        left = {
            (node.id, name): stock.total - stock.used
            for node in self.tree.values()
            for name, stock in node.inventories.items()
        }
        ways = {frozenset(taken.items()) for taken in self.ways(wanted)}

        @cache
        def most(free: tuple[tuple[tuple[int, str], int], ...]) -> int:
            found, left = 0, dict(free)
            for way in ways:
                if all(left.get(cell, 0) >= much for cell, much in way):
                    rest = {cell: much - dict(way).get(cell, 0) for cell, much in left.items()}
                    found = max(found, 1 + most(tuple(rest.items())))
            return found

        return most(tuple(left.items()))

    def ways(self, wanted: Wanted) -> Iterator[Amounts]:
        """Yield what candidates take. Outside groups, classes that the root lacks may come from anywhere."""
        has = self.tree[self.root].inventories
        somewhere = [name for name in wanted.amounts if name not in has]
        places = [[id_ for id_, node in self.tree.items() if name in node.inventories] for name in somewhere]
        own = Counter({(self.root, name): much for name, much in wanted.amounts.items() if name not in somewhere})
        for chosen in product(*places):
            lifted = Counter({(id_, name): wanted.amounts[name] for id_, name in zip(chosen, somewhere, strict=True)})
            for taken in self._parts(wanted.parts, self.root):
                yield self._with_locks(own + lifted + taken)

    def _parts(self, parts: tuple[Wanted, ...], above: int) -> Iterator[Amounts]:
        options = [[id_ for id_ in self.tree if self._is_below(id_, above) and self._is(id_, part)] for part in parts]
        for chosen in product(*options):
            levels = [(part.level, place) for part, place in zip(parts, chosen, strict=True)]
            if self.distinct and len({*levels}) < len(levels):
                continue
            nested = [[*self._parts(part.parts, place)] for part, place in zip(parts, chosen, strict=True)]
            own = sum(
                (
                    Counter({(place, name): much for name, much in part.amounts.items()})
                    for part, place in zip(parts, chosen, strict=True)
                ),
                Amounts(),
            )
            for way in product(*nested):
                yield sum(way, own)

    def _is(self, id_: int, part: Wanted) -> bool:
        return LEVELS[part.level] in self.tree[id_].traits

    def _is_below(self, id_: int | None, above: int) -> bool:
        parent = self.tree[id_].parent if id_ is not None else None
        return parent == above or (parent is not None and self._is_below(parent, above))

    def _with_locks(self, taken: Amounts) -> Amounts:
        switches = {id_ for id_, _name in taken if LOCK in self.tree[id_].inventories}
        return taken + Counter({(id_, LOCK): 1 for id_ in switches})


def test_copies_of_hierarchical_names_are_counted(
    app: Flask, api: Api, is_long: bool, request: pytest.FixtureRequest
) -> None:
    database = app.extensions["placement"].database
    make_names(database)
    first, exact = 1000 * request.config.getoption("--seed"), 0
    clouds = CLOUDS * (100 if is_long else 1)
    for seed in range(first, first + clouds):
        chance, cloud = Random(seed), Cloud()
        random_host(chance, cloud)
        random_host(chance, cloud)
        load(database, cloud)
        for _ in range(REQUESTS):
            wanted, distinct = random_wanted(chance), chance.random() < 0.5
            roots = {node.root for node in cloud.values()}
            expected = {cloud[root].uuid: Filling(cloud, root, distinct=distinct).most(wanted) for root in roots}
            body = {"requests": {"it": {"tree": wanted.names(), "distinct": distinct}}, "per": "tree"}
            found = ask(api, "POST", PATH, body=body)["headroom"]["it"]
            assert found["fits"] <= sum(expected.values()) <= found["at_most"], (seed, body, expected, found)
            exact += found["complete"]
    assert exact >= 0.6 * clouds * REQUESTS
