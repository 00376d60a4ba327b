"""The headroom of planner requests in small random clouds is what filling these up in every way finds."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from flask import Flask

from placement.domain.planner_request import PlannerRequest
from tests.api.conftest import Api
from tests.claims import ask
from tests.definition_of_plans import PlanDefinition, TooMany
from tests.planner_clouds import LEVELS, LOCKS, body_of, make_names, random_hosts, random_request
from tests.small_clouds import Cloud, load, shares_of

CLOUDS, REQUESTS, HOSTS = 4, 4, 2
MOST_LOOKED_AT = 400
"""In how many ways copies may be taken, in all, before a cloud is too large."""

pytestmark = pytest.mark.any_database


Taken = tuple[tuple[tuple[int, str], int], ...]
"""By provider and class how much more is in use."""

State = tuple[Taken, frozenset[int]]
"""What is taken, and the places that are held."""


class Filling:
    """Takes copies of a request in a tree, in every way."""

    def __init__(self, request: PlannerRequest, tree: Cloud, root: int) -> None:
        self._request, self._tree, self._root = request, tree, root
        self._looked_at = 0
        self._known: dict[object, int] = {}

    def most(self, taken: Taken = (), held: frozenset[int] = frozenset()) -> int:
        """Return the largest number of copies that fit where some of it is taken, and some places are held."""
        if (taken, held) not in self._known:
            following = dict.fromkeys(self._following(Counter(dict(taken)), held))
            self._known[taken, held] = max([1 + self.most(*one) for one in following], default=0)
        return self._known[taken, held]

    def _following(
        self, taken: Counter[tuple[int, str]], held: frozenset[int]
    ) -> Iterator[tuple[Taken, frozenset[int]]]:
        definition = PlanDefinition(self._request, _with(self._tree, taken), levels=LEVELS, locks=LOCKS)
        for placed in definition.allowed(self._root):
            inside = {above for _slot, provider in placed for above in definition.plain.ancestry(provider)}
            if inside.isdisjoint(held):
                self._looked_at += 1
                if self._looked_at > MOST_LOOKED_AT:
                    raise TooMany
                after = taken + Counter({(one, name): much for one, name, much in definition.taken(placed)})
                yield tuple(sorted(after.items())), held | definition.held(placed)


def _with(tree: Cloud, taken: Counter[tuple[int, str]]) -> Cloud:
    return {
        id_: replace(
            node,
            inventories={
                name: replace(stock, used=stock.used + taken[id_, name]) for name, stock in node.inventories.items()
            },
        )
        for id_, node in tree.items()
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


def one_request(api: Api, cloud: Cloud, wanted: PlannerRequest) -> None:
    """Compare the headroom of one request, in all and tree by tree."""
    trees = {root: {node.id: node for node in cloud.values() if node.root == root} for root in _roots(cloud)}
    try:
        expected = {cloud[root].uuid: Filling(wanted, tree, root).most() for root, tree in trees.items()}
    except TooMany:
        return
    body = {name: value for name, value in body_of(wanted).items() if name != "limit"}
    found = ask(api, "POST", "/planner/v1/headroom", body={"requests": {"it": body}, "per": "tree"})["headroom"]["it"]
    assert found["fits"] <= sum(expected.values()) <= found["at_most"], (body, expected, found)
    assert found["complete"], (body, expected, found)
    of_trees = {one["uuid"]: one["fits"] for one in found["trees"]}
    assert {uuid: copies for uuid, copies in expected.items() if copies} == of_trees, (body, expected, found)


def _roots(cloud: Cloud) -> set[int]:
    return {node.root for node in cloud.values()}
