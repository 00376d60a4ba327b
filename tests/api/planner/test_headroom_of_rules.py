"""The headroom of planner requests in small random clouds equals the result of filling these in every possible way."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain
from random import Random
from typing import Any

import pytest
from flask import Flask

from placement.domain.planner_request import PlannerRequest
from tests.api.conftest import Api
from tests.claims import ask
from tests.definition_of_plans import PlanDefinition, TooMany
from tests.planner_clouds import LEVELS, LOCKS, body_of, make_names, random_cloud, random_hosts, random_request
from tests.small_clouds import Cloud, load, shares_of

PATH = "/planner/v1/headroom"

CLOUDS, REQUESTS, HOSTS = 4, 4, 2
POOLED_CLOUDS = 5
MAX_LOOKED_AT = 400
"""The number of ways to place copies, in all, above which a cloud is too large."""

pytestmark = pytest.mark.any_database


Taken = tuple[tuple[tuple[int, str], int], ...]
"""The additional usage by provider and class."""

State = tuple[Taken, frozenset[int]]
"""The additional usage, and the places that are held."""


class Filling:
    """Places copies of a request in some trees of a cloud, in every way."""

    def __init__(self, request: PlannerRequest, cloud: Cloud, roots: Collection[int]) -> None:
        self._request, self._cloud, self._roots = request, cloud, sorted(roots)
        self._looked_at = 0
        self._known: dict[object, int] = {}

    def most(self, taken: Taken = (), held: frozenset[int] = frozenset()) -> int:
        """Return the largest number of copies that fit with the given additional usage and held places."""
        if (taken, held) not in self._known:
            following = dict.fromkeys(self._following(Counter(dict(taken)), held))
            self._known[taken, held] = max([1 + self.most(*one) for one in following], default=0)
        return self._known[taken, held]

    def _following(
        self, taken: Counter[tuple[int, str]], held: frozenset[int]
    ) -> Iterator[tuple[Taken, frozenset[int]]]:
        definition = PlanDefinition(self._request, _with(self._cloud, taken), levels=LEVELS, locks=LOCKS)
        for placed in chain.from_iterable(map(definition.allowed, self._roots)):
            inside = {above for _slot, provider in placed for above in definition.plain.ancestry(provider)}
            if inside.isdisjoint(held):
                self._looked_at += 1
                if self._looked_at > MAX_LOOKED_AT:
                    raise TooMany
                after = taken + Counter({(one, name): much for one, name, much in definition.taken(placed)})
                yield tuple(sorted(after.items())), held | definition.held(placed)


def _with(cloud: Cloud, taken: Counter[tuple[int, str]]) -> Cloud:
    return {
        id_: replace(
            node,
            inventories={
                name: replace(stock, used=stock.used + taken[id_, name]) for name, stock in node.inventories.items()
            },
        )
        for id_, node in cloud.items()
    }


def test_copies_of_planner_requests_are_counted(
    app: Flask, api: Api, is_long: bool, request: pytest.FixtureRequest
) -> None:
    database = app.extensions["placement"].database
    make_names(database)
    first = 1000 * request.config.getoption("--seed")
    for seed in range(first, first + CLOUDS * (100 if is_long else 1)):
        chance = Random(seed)
        cloud = random_hosts(chance, HOSTS)
        if not shares_of(cloud):
            load(database, cloud)
            for _ in range(REQUESTS):
                one_request(api, cloud, random_request(chance))


def test_copies_that_draw_from_pools_have_bounds(
    app: Flask, api: Api, is_long: bool, request: pytest.FixtureRequest
) -> None:
    """The bounds contain the result of filling the whole cloud."""
    database = app.extensions["placement"].database
    make_names(database)
    first, compared = 1000 * request.config.getoption("--seed"), 0
    enough = POOLED_CLOUDS * (100 if is_long else 1)
    for seed in range(first, first + 10 * enough):
        if seed >= first + enough and compared:
            break
        chance = Random(seed)
        cloud = random_cloud(chance)
        if shares_of(cloud):
            load(database, cloud)
            for _ in range(REQUESTS):
                wanted = random_request(chance)
                try:
                    expected = Filling(wanted, cloud, _roots(cloud)).most()
                except TooMany:
                    continue
                found = headroom_of(api, wanted)
                assert found["fits"] <= expected <= found["at_most"], (seed, body_of(wanted), expected, found)
                compared += 1
    assert compared


def headroom_of(api: Api, wanted: PlannerRequest) -> dict[str, Any]:
    """Return the headroom of a request, tree by tree."""
    body = {name: value for name, value in body_of(wanted).items() if name != "limit"}
    return ask(api, "POST", PATH, body={"requests": {"it": body}, "per": "tree"})["headroom"]["it"]


def one_request(api: Api, cloud: Cloud, wanted: PlannerRequest) -> None:
    """Compare the headroom of one request, in total and tree by tree."""
    trees = {root: {node.id: node for node in cloud.values() if node.root == root} for root in _roots(cloud)}
    try:
        expected = {cloud[root].uuid: Filling(wanted, tree, [root]).most() for root, tree in trees.items()}
    except TooMany:
        return
    body, found = body_of(wanted), headroom_of(api, wanted)
    assert found["fits"] <= sum(expected.values()) <= found["at_most"], (body, expected, found)
    assert found["complete"], (body, expected, found)
    of_trees = {one["uuid"]: one["fits"] for one in found["trees"]}
    assert {uuid: copies for uuid, copies in expected.items() if copies} == of_trees, (body, expected, found)


def _roots(cloud: Cloud) -> set[int]:
    return {node.root for node in cloud.values()}
