"""Planner requests in trees that are served by sharing providers."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import ask, new_uuid
from tests.planner_hosts import CANDIDATES, planned, provider, uuid_of

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
