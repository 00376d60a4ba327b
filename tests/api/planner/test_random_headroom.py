"""The headroom of planner requests in small random clouds equals the result of filling these in every possible way."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, product
from random import Random
from typing import Any

import pytest
from flask import Flask

from placement.domain.planner_request import PlannerRequest
from tests.api.conftest import Api
from tests.claims import ask
from tests.definition_of_plans import PlanDefinition, TooMany
from tests.planner_clouds import (
    LEVELS,
    LOCK,
    LOCKS,
    Builder,
    body_of,
    make_names,
    random_cloud,
    random_hosts,
    random_request,
)
from tests.small_clouds import Cloud, Inventory, load, shares_of

CLOUDS, REQUESTS, HOSTS = 4, 4, 2
POOLED_CLOUDS = 5
MAX_WAYS = 400
"""The number of ways to place copies, in all, above which a cloud is too large."""

pytestmark = pytest.mark.any_database

Seeds = Callable[..., range]
Amounts = Counter[tuple[int, str]]
"""By provider and class."""

State = tuple[tuple[tuple[tuple[int, str], int], ...], frozenset[int]]
"""The additional usage, and the places that are held."""


@pytest.fixture
def api(app: Flask) -> Api:
    """A client of a server that has the names of random clouds."""
    make_names(app.extensions["placement"].database)
    return Api(app)


def most_copies(following: Callable[[Amounts, frozenset[int]], Iterator[tuple[Amounts, frozenset[int]]]]) -> int:
    """Return the largest number of copies, given what each further copy leads to."""
    known: dict[State, int] = {}

    def most(taken: Amounts, held: frozenset[int]) -> int:
        state = tuple(sorted(taken.items())), held
        if state not in known:
            known[state] = max([1 + most(*further) for further in following(taken, held)], default=0)
        return known[state]

    return most(Amounts(), frozenset())


def copies_in(request: PlannerRequest, cloud: Cloud, roots: Collection[int]) -> int:
    """Return how many copies of a request fit into some trees.

    Raises:
        TooMany: there are too many ways.
    """
    ways = 0

    def following(taken: Amounts, held: frozenset[int]) -> Iterator[tuple[Amounts, frozenset[int]]]:
        nonlocal ways
        definition = PlanDefinition(request, with_usage(cloud, taken), levels=LEVELS, locks=LOCKS)
        for placed in chain.from_iterable(map(definition.allowed, sorted(roots))):
            inside = {above for _slot, provider in placed for above in definition.plain.ancestry(provider)}
            if inside.isdisjoint(held):
                ways += 1
                if ways > MAX_WAYS:
                    raise TooMany
                more = Counter({(id_, name): amount for id_, name, amount in definition.taken(placed)})
                yield taken + more, held | definition.held(placed)

    return most_copies(following)


def with_usage(cloud: Cloud, taken: Amounts) -> Cloud:
    def used(id_: int, stocks: Mapping[str, Inventory]) -> dict[str, Inventory]:
        return {name: replace(stock, used=stock.used + taken[id_, name]) for name, stock in stocks.items()}

    return {id_: replace(node, inventories=used(id_, node.inventories)) for id_, node in cloud.items()}


def roots_of(cloud: Cloud) -> set[int]:
    return {node.root for node in cloud.values()}


def headroom_of(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    requests = {"it": {name: value for name, value in body.items() if name != "limit"}}
    body = {"requests": requests, "per": "tree"}
    return ask(api, "POST", "/planner/v1/headroom", body=body)["headroom"]["it"]


def test_copies_of_planner_requests_are_counted(api: Api, seeds: Seeds) -> None:
    for seed in seeds(CLOUDS, times=100):
        chance = Random(seed)
        cloud = random_hosts(chance, HOSTS)
        if not shares_of(cloud):
            load(api.database, cloud)
            for _ in range(REQUESTS):
                compare_by_tree(api, cloud, random_request(chance))


def compare_by_tree(api: Api, cloud: Cloud, wanted: PlannerRequest) -> None:
    trees = {root: {node.id: node for node in cloud.values() if node.root == root} for root in roots_of(cloud)}
    try:
        expected = {cloud[root].uuid: copies_in(wanted, tree, [root]) for root, tree in trees.items()}
    except TooMany:
        return
    body = body_of(wanted)
    counted = headroom_of(api, body)
    assert counted["fits"] <= sum(expected.values()) <= counted["at_most"], (body, expected, counted)
    assert counted["complete"], (body, expected, counted)
    of_trees = {tree["uuid"]: tree["fits"] for tree in counted["trees"]}
    assert {uuid: copies for uuid, copies in expected.items() if copies} == of_trees, (body, expected, counted)


def test_copies_that_draw_from_pools_have_bounds(api: Api, seeds: Seeds) -> None:
    """The bounds contain the result of filling the whole cloud."""
    compared, enough = 0, len(seeds(POOLED_CLOUDS, times=100))
    for number, seed in enumerate(seeds(10 * POOLED_CLOUDS, times=100)):
        if number >= enough and compared:
            break
        chance = Random(seed)
        cloud = random_cloud(chance)
        if shares_of(cloud):
            load(api.database, cloud)
            for wanted in [random_request(chance) for _ in range(REQUESTS)]:
                try:
                    expected = copies_in(wanted, cloud, roots_of(cloud))
                except TooMany:
                    continue
                counted = headroom_of(api, body_of(wanted))
                assert counted["fits"] <= expected <= counted["at_most"], (seed, body_of(wanted), expected, counted)
                compared += 1
    assert compared


@dataclass(frozen=True)
class Wanted:
    """What one place of a level, or the root, has to serve."""

    level: str = ""
    amounts: Mapping[str, int] = field(default_factory=dict)
    parts: tuple["Wanted", ...] = ()

    def names(self) -> dict[str, Any]:
        """Return this as the ``tree`` of a request."""
        names: dict[str, Any] = dict(self.amounts)
        for number, part in enumerate(self.parts):
            names.setdefault(part.level, {})[str(number)] = part.names()
        return names


def numa_host(builder: Builder) -> None:
    """Add a host: NUMA nodes with CPUs, PCIe switches with GPUs, some with locks."""
    chance = builder.chance

    def stock(most: int) -> Inventory:
        total = chance.randint(1, most)
        return Inventory(total, used=chance.randint(0, total) if chance.random() < 0.2 else 0)

    root = builder.add(None, {"MEMORY_MB": stock(6)}, frozenset(), plain=True)
    for _ in range(chance.choice((1, 2))):
        numa = builder.add(root, {"VCPU": stock(5)}, frozenset({LEVELS["numa"]}), plain=True)
        for _ in range(chance.choice((0, 1, 2))):
            lock = {LOCK: Inventory(3, used=chance.choice((0, 0, 1)))} if chance.random() < 0.4 else {}
            builder.add(numa, {"PGPU": stock(3), **lock}, frozenset({LEVELS["pcie"]}), plain=True)


def random_wanted(chance: Random) -> Wanted:
    def switch() -> Wanted:
        return Wanted("pcie", {"PGPU": chance.choice((1, 1, 2))})

    def node() -> Wanted:
        amounts = {"VCPU": chance.randint(1, 3)} if chance.random() < 0.7 else {}
        switches = tuple([switch() for _ in range(chance.choice((0, 1, 1, 2)))])
        return Wanted("numa", amounts, switches) if amounts or switches else switch()

    outside = chance.choice(({}, {}, {"MEMORY_MB": 1}, {"VCPU": 1}))
    return Wanted("", outside, tuple([node() for _ in range(chance.choice((1, 1, 2)))]))


class NestedWays:
    """What copies of hierarchical names may take of one host."""

    def __init__(self, cloud: Cloud, root: int, *, distinct: bool) -> None:
        self.tree = {node.id: node for node in cloud.values() if node.root == root}
        self.root, self.distinct = root, distinct

    def most(self, wanted: Wanted) -> int:
        left = {
            (id_, name): of.total - of.used for id_, node in self.tree.items() for name, of in node.inventories.items()
        }
        ways = [Counter(dict(way)) for way in {frozenset(taken.items()) for taken in self.ways(wanted)}]

        def following(taken: Amounts, held: frozenset[int]) -> Iterator[tuple[Amounts, frozenset[int]]]:
            for way in ways:
                if all((taken + way)[cell] <= left.get(cell, 0) for cell in way):
                    yield taken + way, held

        return most_copies(following)

    def ways(self, wanted: Wanted) -> Iterator[Amounts]:
        """Yield what candidates take. Outside groups, classes that the root lacks may come from anywhere."""
        has = self.tree[self.root].inventories
        somewhere = [name for name in wanted.amounts if name not in has]
        places = [[id_ for id_, node in self.tree.items() if name in node.inventories] for name in somewhere]
        own = Counter({(self.root, name): much for name, much in wanted.amounts.items() if name not in somewhere})
        for chosen in product(*places):
            lifted = Counter({(id_, name): wanted.amounts[name] for id_, name in zip(chosen, somewhere, strict=True)})
            for taken in self._parts(wanted.parts, self.root):
                switches = {id_ for id_, _ in own + lifted + taken if LOCK in self.tree[id_].inventories}
                yield own + lifted + taken + Counter({(id_, LOCK): 1 for id_ in switches})

    def _parts(self, parts: tuple[Wanted, ...], above: int) -> Iterator[Amounts]:
        options = [[id_ for id_ in self.tree if self._is_below(id_, above) and self._is(id_, part)] for part in parts]
        for chosen in product(*options):
            placed = [*zip(parts, chosen, strict=True)]
            if self.distinct and len({(part.level, place) for part, place in placed}) < len(placed):
                continue
            own = Amounts()
            for part, place in placed:
                own += Counter({(place, name): much for name, much in part.amounts.items()})
            for way in product(*[[*self._parts(part.parts, place)] for part, place in placed]):
                yield sum(way, own)

    def _is(self, id_: int, part: Wanted) -> bool:
        return LEVELS[part.level] in self.tree[id_].traits

    def _is_below(self, id_: int | None, above: int) -> bool:
        parent = self.tree[id_].parent if id_ is not None else None
        return parent == above or (parent is not None and self._is_below(parent, above))


def test_copies_of_hierarchical_names_are_counted(api: Api, seeds: Seeds) -> None:
    exact = []
    for seed in seeds(CLOUDS, times=100):
        chance = Random(seed)
        builder = Builder(chance)
        numa_host(builder)
        numa_host(builder)
        cloud = builder.cloud
        load(api.database, cloud)
        for _ in range(REQUESTS):
            wanted, distinct = random_wanted(chance), chance.random() < 0.5
            expected = sum([NestedWays(cloud, root, distinct=distinct).most(wanted) for root in roots_of(cloud)])
            counted = headroom_of(api, {"tree": wanted.names(), "distinct": distinct})
            assert counted["fits"] <= expected <= counted["at_most"], (seed, wanted, distinct, expected, counted)
            exact.append(counted["complete"])
    assert sum(exact) >= 0.6 * len(exact)
