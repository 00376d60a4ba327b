"""What is asked about a hypothetical cloud is answered as for a real cloud with the same contents."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from sqlalchemy import text

from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.api.planner.test_headroom import gpu_host
from tests.claims import ask
from tests.clouds import allocate
from tests.planner_clouds import body_of, make_names, random_cloud, random_request
from tests.planner_hosts import CANDIDATES
from tests.small_clouds import Cloud, load, uuid_of
from tests.stored_clouds import stored

HEADROOM = "/planner/v1/headroom"
CLOUDS, REQUESTS = 6, 3


def test_trees_that_are_gone_and_consumers_that_have_given_back(api: Api, seeds: Callable[..., range]) -> None:
    database = api.database
    make_names(database)
    for seed in seeds(CLOUDS, times=100):
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


PAIR = {"groups": {"": {"resources": {"VCPU": 2}}, "_G": {"resources": {"PGPU": 1}, "count": 2}}}


@pytest.fixture
def providers(api: Api) -> Mapping[str, str]:
    """Two hosts: one is full, the other has a single GPU left."""
    made = stored(api.app, gpu_host("full"), gpu_host("busy")).providers
    for name in ("full-gpu00", "full-gpu01", "full-gpu10", "full-gpu11", "busy-gpu00", "busy-gpu01", "busy-gpu10"):
        allocate(api, made[name], {"PGPU": 1})
    return made


def candidates(api: Api, **more: object):
    return api.post(CANDIDATES, {**PAIR, **more}).json


def test_hypothetical_trees_are_candidates_as_often_as_there_are_some(api: Api, providers: Mapping[str, str]) -> None:
    assert candidates(api)["allocation_requests"] == []
    full = providers["full"]
    found = candidates(api, **{"with": [{"like": full, "count": 3}]})
    assert [one["like"] for one in found["scores"]] == [full] * 3
    assert len(found["allocation_requests"]) == 3
    gpus = {providers[f"full-gpu{node}{gpu}"] for node in range(2) for gpu in range(2)}
    assert all(gpus.issuperset(one["mappings"]["_G"]) for one in found["allocation_requests"])
    assert gpus <= found["provider_summaries"].keys()
    assert candidates(api)["allocation_requests"] == []


def test_a_tree_that_is_gone_may_be_there_again_and_empty(api: Api, providers: Mapping[str, str]) -> None:
    busy = providers["busy"]
    found = candidates(api, without=[busy], released=[], limit=1, **{"with": [{"like": busy, "count": 16}]})
    assert [one["like"] for one in found["scores"]] == [busy]
