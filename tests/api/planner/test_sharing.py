"""Planner requests in trees that are served by sharing providers."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import ask, new_uuid
from tests.planner_hosts import CANDIDATES, consumer, hold, planned, provider, register, uuid_of

SHARES = "MISC_SHARES_VIA_AGGREGATE"
TWO_GPUS = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}}


def join(api: Api, *names: str) -> None:
    """Put providers into a new aggregate."""
    aggregate = new_uuid()
    for name in names:
        path = f"/resource_providers/{uuid_of(name)}"
        generation = ask(api, "GET", path)["generation"]
        body = {"aggregates": [aggregate], "resource_provider_generation": generation}
        ask(api, "PUT", f"{path}/aggregates", body=body)


@pytest.fixture
def pool(api: Api) -> Api:
    """Two hosts with a GPU each, and a pool with one behind a switch that the first host shares."""
    root = provider(api, "pool", None, {}, [])
    node = provider(api, "pool-numa", root, {}, ["HW_NUMA_ROOT"])
    lock = {"CUSTOM_PCIE_LOCK": {"total": 4}}
    ask(api, "PUT", "/resource_classes/CUSTOM_PCIE_LOCK")
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    switch = provider(api, "pool-pcie", node, lock, ["CUSTOM_HW_PCIE_SWITCH"])
    provider(api, "pool-gpu", switch, {"PGPU": {"total": 2}}, [SHARES])
    for name in ("host", "other"):
        provider(api, name, None, {"PGPU": {"total": 2}, "MEMORY_MB": {"total": 4}}, [])
    join(api, "host", "pool-gpu")
    return api


def test_devices_that_another_tree_shares_are_counted_with_its_own(pool: Api) -> None:
    assert planned(pool, TWO_GPUS) == [{"_GPU": ["host", "pool-gpu"]}]


@pytest.mark.parametrize(
    "left_out", [lambda tree: {"avoid": {"trees": [tree]}}, lambda tree: {"without": [tree]}], ids=["avoided", "gone"]
)
def test_a_tree_that_is_left_out_shares_nothing(pool: Api, left_out: Callable[[str], dict[str, Any]]) -> None:
    assert planned(pool, {**TWO_GPUS, **left_out(uuid_of("pool"))}) == []


def test_what_is_taken_around_a_shared_device_is_not_charged_to_the_host(pool: Api) -> None:
    """The lock of the pool's switch is none of the host, which has no such class and would get 0 for it."""
    profile = {"sra": {"resources": {"DISK_GB": 1}, "mode": "upstream"}}
    answer = ask(pool, "POST", CANDIDATES, body={**TWO_GPUS, "profile": profile})
    (candidate,) = answer["allocation_requests"]
    assert {*candidate["allocations"]} == {uuid_of("host"), uuid_of("pool-gpu"), uuid_of("pool-pcie")}
    assert [score["sra"] for score in answer["scores"]] == [100]


def test_the_places_of_what_is_shared_are_those_of_its_own_tree(pool: Api) -> None:
    groups = {"_GPU": {"resources": {"PGPU": 2}}, "_M": {"resources": {"MEMORY_MB": 1}, "in_tree": uuid_of("host")}}
    body = {"groups": groups, "within": [{"groups": ["_GPU"], "level": "numa"}]}
    (candidate,) = ask(pool, "POST", CANDIDATES, body=body)["allocation_requests"]
    assert candidate["allocations"][uuid_of("pool-pcie")] == {"resources": {"CUSTOM_PCIE_LOCK": 1}}
    assert planned(pool, body) == [{"_GPU": ["pool-gpu"], "_M": ["host"]}]


def test_what_is_shared_keeps_to_the_locks_around_it(pool: Api) -> None:
    body = {
        "allocations": {uuid_of("pool-pcie"): {"resources": {"CUSTOM_PCIE_LOCK": 4}}},
        **{key: value for key, value in consumer().items() if key != "uuid"},
    }
    ask(pool, "PUT", f"/allocations/{new_uuid()}", body=body)
    assert planned(pool, TWO_GPUS) == []


def test_what_is_shared_is_alone_only_where_nobody_is(pool: Api) -> None:
    memory = {"resources": {"MEMORY_MB": 1}, "in_tree": uuid_of("host")}
    body = {
        "groups": {"_GPU": {"resources": {"PGPU": 1}}, "_M": memory},
        "exclusive": [{"groups": ["_GPU"], "level": "numa"}],
    }
    assert planned(pool, body) == [{"_GPU": ["pool-gpu"], "_M": ["host"]}]
    take(pool, "pool-gpu")
    assert planned(pool, body) == []


def take(api: Api, name: str) -> None:
    """Allocate a GPU for another consumer."""
    owner = {key: value for key, value in consumer().items() if key != "uuid"}
    body = {"allocations": {uuid_of(name): {"resources": {"PGPU": 1}}}, **owner}
    ask(api, "PUT", f"/allocations/{new_uuid()}", body=body)


def test_all_devices_are_those_of_the_tree_itself(pool: Api) -> None:
    """A shared device does not replace one that is in use."""
    body = {"groups": {"_GPU": {"resources": {"PGPU": 2}, "count": "all", "in_tree": uuid_of("host")}}}
    assert planned(pool, body) == [{"_GPU": ["host"]}]
    body = {"groups": {"_GPU": {"resources": {"PGPU": 2}, "count": "all"}, "_M": {"resources": {"MEMORY_MB": 1}}}}
    assert {"_GPU": ["host"], "_M": ["host"]} in planned(pool, body)
    take(pool, "host")
    assert planned(pool, body) == [{"_GPU": ["other"], "_M": ["other"]}]


def test_all_devices_of_a_pool_are_found_in_its_own_tree(api: Api) -> None:
    """A tree that comes first and has nothing itself, but shares the pool, does not stand for the pool's tree."""
    provider(api, "empty", None, {}, [])
    provider(api, "pool", None, {"PGPU": {"total": 3}}, [SHARES])
    join(api, "empty", "pool")
    assert planned(api, {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": "all"}}}) == [{"_GPU": ["pool"]}]


def test_what_takes_of_a_pool_alone_comes_once(api: Api) -> None:
    """It is the same candidate for each tree that the pool shares with."""
    provider(api, "pool", None, {"DISK_GB": {"total": 100}}, [SHARES])
    for name in ("a", "b", "c"):
        provider(api, name, None, {"VCPU": {"total": 4}}, [])
    join(api, "pool", "a", "b", "c")
    assert planned(api, {"groups": {"": {"resources": {"DISK_GB": 1}}}}) == [{"": ["pool"]}]
    assert len(planned(api, {"groups": {"": {"resources": {"DISK_GB": 1, "VCPU": 1}}}, "limit": 2})) == 2


def test_the_score_is_that_of_the_tree_without_what_is_shared(pool: Api) -> None:
    answer = ask(pool, "POST", CANDIDATES, body=TWO_GPUS)
    candidate = {"allocations": answer["allocation_requests"][0]["allocations"]}
    # The lock is of a tree that shares, but is not shared itself: scores are not told of several trees.
    del candidate["allocations"][uuid_of("pool-pcie")]
    scored = ask(pool, "POST", "/planner/v1/scores", body={"allocation_requests": [candidate]})
    ours, theirs = answer["scores"][0], scored["scores"][0]
    parts = ("total", "fit", "compactness")
    assert [ours[part] for part in parts] == [theirs[part] for part in parts]


def test_a_host_takes_memory_of_a_pool_and_gpus_of_its_own(api: Api) -> None:
    register(api)
    provider(api, "pool", None, {"DISK_GB": {"total": 100}}, [SHARES])
    join(api, "pool", "host")
    body = {"groups": {**TWO_GPUS["groups"], "": {"resources": {"DISK_GB": 1}}}}
    hold(api, "gpu0", PGPU=1)
    (candidate,) = planned(api, body)
    assert candidate == {"": ["pool"], "_GPU": ["host-gpu2", "host-gpu3"]}
