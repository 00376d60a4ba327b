"""What is asked about a hypothetical cloud is answered as for a real cloud with the same contents."""

from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text

from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_clouds import body_of, make_names, random_cloud, random_request
from tests.planner_hosts import CANDIDATES
from tests.small_clouds import Cloud, load, uuid_of

HEADROOM = "/planner/v1/headroom"
CLOUDS, REQUESTS = 6, 3


def test_trees_that_are_gone_and_consumers_that_have_given_back(
    app: Flask, api: Api, is_long: bool, request: pytest.FixtureRequest
) -> None:
    database = app.extensions["placement"].database
    make_names(database)
    first = 1000 * request.config.getoption("--seed")
    for seed in range(first, first + CLOUDS * (100 if is_long else 1)):
        chance = Random(seed)
        cloud = random_cloud(chance)
        gone = set(chance.sample([node.id for node in cloud.values() if node.parent is None], chance.choice((0, 1))))
        free = set(chance.sample(sorted(cloud), chance.randint(1, len(cloud))))
        bodies = [body_of(random_request(chance)) for _ in range(REQUESTS)]
        load(database, cloud)
        give_to_consumers(database)
        supposed = {"without": [uuid_of(root) for root in gone], "released": [consumer_of(one) for one in free]}
        expected = answers(api, bodies, supposed)
        load(database, changed(cloud, gone, free))
        assert answers(api, bodies, {}) == expected, seed


def consumer_of(provider: int) -> str:
    """Return the consumer that holds whatever is allocated of a provider."""
    return uuid_of(1000 + provider)


def give_to_consumers(database: Database) -> None:
    """Give what is allocated of each provider to a consumer of its own."""
    query = text("UPDATE allocations SET consumer_id = :consumer WHERE resource_provider_id = :id")
    with database.writer.begin() as connection:
        for (id_,) in connection.execute(text("SELECT DISTINCT resource_provider_id FROM allocations")).all():
            connection.execute(query, {"id": id_, "consumer": consumer_of(id_)})


def changed(cloud: Cloud, gone: Collection[int], free: Collection[int]) -> Cloud:
    """Return the cloud without some trees, and with nothing allocated of some providers."""
    return {
        id_: replace(node, inventories={name: replace(one, used=0) for name, one in node.inventories.items()})
        if id_ in free
        else node
        for id_, node in cloud.items()
        if node.root not in gone
    }


def answers(api: Api, bodies: list[dict[str, Any]], supposed: dict[str, list[str]]) -> list[Any]:
    """Return the candidates of each request with their scores, and the headroom of all, in a hypothetical cloud."""
    found = [ask(api, "POST", CANDIDATES, body={**body, "per_tree": 2, **supposed}) for body in bodies]
    placed = [
        [(one["allocations"], one["mappings"], score) for one, score in zip(*seen, strict=True)]
        for answer in found
        for seen in [(answer["allocation_requests"], answer["scores"])]
    ]
    requests = {
        str(number): {name: value for name, value in body.items() if name != "limit"}
        for number, body in enumerate(bodies)
    }
    counted = ask(api, "POST", HEADROOM, body={"requests": requests, "per": "tree", "limit": 50, **supposed})
    return [placed, counted["headroom"]]
