"""POST /planner/v1/candidates and claims in small random clouds, compared with brute force."""

from random import Random
from typing import Any

import pytest
from flask import Flask

from tests.api.conftest import Api
from tests.claims import ask, new_uuid
from tests.definition_of_plans import Plan, PlanDefinition, TooMany
from tests.planner_clouds import (
    LEVELS,
    LOCKS,
    body_of,
    make_names,
    random_cloud,
    random_request,
)
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer
from tests.small_clouds import Cloud, load

CLOUDS, REQUESTS = 25, 4


def test_what_is_found_is_what_trying_everything_finds(
    app: Flask, api: Api, is_long: bool, request: pytest.FixtureRequest
) -> None:
    database = app.extensions["placement"].database
    make_names(database)
    first = 1000 * request.config.getoption("--seed")
    for seed in range(first, first + CLOUDS * (40 if is_long else 1)):
        chance = Random(seed)
        cloud = random_cloud(chance)
        load(database, cloud)
        for _ in range(REQUESTS):
            one_request(api, chance, cloud)


def one_request(api: Api, chance: Random, cloud: Cloud) -> None:
    """Get candidates, allocate one of them, and claim."""
    wanted = random_request(chance)
    definition = PlanDefinition(wanted, cloud, levels=LEVELS, locks=LOCKS)
    try:
        best = [definition.best(node.id) for node in cloud.values() if node.parent is None]
    except TooMany:
        return
    body = body_of(wanted)
    answer = ask(api, "POST", CANDIDATES, body=body)
    assert answer["complete"]
    found = [seen(candidate, cloud) for candidate in answer["allocation_requests"]]
    assert len(found) == len(set(found)), body
    assert set(found) <= {plan for of_tree in best for plan in of_tree}, body
    assert all(not of_tree or not of_tree.keys().isdisjoint(found) for of_tree in best), body
    if found and chance.random() < 0.3:
        put(api, chance.choice(answer["allocation_requests"]))
    if chance.random() < 0.3:
        del body["limit"]
        claim(api, body, found)


def seen(candidate: dict[str, Any], cloud: Cloud) -> Plan:
    """Return a candidate of an answer in the form of the definition."""
    ids = {node.uuid: node.id for node in cloud.values()}
    amounts = [
        (ids[uuid], name, amount)
        for uuid, taken in candidate["allocations"].items()
        for name, amount in taken["resources"].items()
    ]
    mappings = [(suffix, ids[uuid]) for suffix, uuids in candidate["mappings"].items() for uuid in uuids]
    return frozenset(amounts), frozenset(mappings)


def put(api: Api, candidate: dict[str, Any]) -> None:
    owner = {key: value for key, value in consumer().items() if key != "uuid"}
    path = f"/allocations/{new_uuid()}"
    ask(api, "PUT", path, body={**candidate, **owner})
    ask(api, "DELETE", path)


def claim(api: Api, body: dict[str, Any], found: list[Plan]) -> None:
    """Claim, which must succeed exactly if there were candidates."""
    holder = consumer()
    answer = api.post(CLAIMS, {**body, "consumer": holder})
    assert answer.status_code == (201 if found else 409), body
    if found:
        ask(api, "DELETE", f"/allocations/{holder['uuid']}")
