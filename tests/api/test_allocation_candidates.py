"""GET /allocation_candidates: the order, limits, operator options, and the budget."""

import sys
import uuid
from collections import Counter

import os_traits
import pytest
from flask import Flask

from placement.settings import RankingSettings
from tests.api.conftest import Api, serving, with_limits, with_settings
from tests.claims import change, error_of, set_inventories
from tests.clouds import SHARES, Cloud, allocate, provider
from tests.http_calls import ask
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

STANDARD_TRAITS = sorted(os_traits.get_traits())
RANDOM = {"randomize_allocation_candidates": True}
UNRANKED = {"ranking": RankingSettings(enabled=False)}
ranked_or_not = pytest.mark.parametrize("groups", [{}, UNRANKED], ids=["ranked", "unranked"])

QUERIES = [
    "resources=VCPU:1",
    "resources=VCPU:1,DISK_GB:10",
    "resources=VCPU:1&resources_N=SRIOV_NET_VF:1",
    "resources_A=SRIOV_NET_VF:1&resources_B=SRIOV_NET_VF:1&group_policy=isolate",
    "resources_A=SRIOV_NET_VF:1&resources_B=SRIOV_NET_VF:1&group_policy=none",
    "resources_C=VCPU:1&resources_N=SRIOV_NET_VF:1&group_policy=none&same_subtree=_C,_N",
    "resources=DISK_GB:10",
]


@pytest.fixture
def cloud(api: Api) -> Cloud:
    """Six hosts with two NUMA nodes that have a NIC each, three of them with their own disk, and a storage pool."""
    hosts = [
        provider(
            f"host{i}",
            *(provider(f"numa{i}{n}", provider(f"nic{i}{n}", SRIOV_NET_VF=4), VCPU=8) for n in (0, 1)),
            aggregates=["A"],
            **({"DISK_GB": 100} if i % 2 else {"MEMORY_MB": 10}),
        )
        for i in range(6)
    ]
    return stored(api.app, *hosts, provider("pool", DISK_GB=1000, traits=[SHARES], aggregates=["A"]))


def candidates(api: Api, query: str, version: str = "1.39") -> list:
    return ask(api, "GET", f"/allocation_candidates?{query}", version)["allocation_requests"]


def hosts_of(api: Api, cloud: Cloud, query: str) -> list[str]:
    """Return the name of the first provider of each candidate."""
    return [min(cloud.name_of(uuid) for uuid in request["allocations"]) for request in candidates(api, query)]


@pytest.mark.parametrize("query", QUERIES)
@ranked_or_not
def test_a_limited_answer_is_the_head_of_the_unlimited_one(app: Flask, cloud: Cloud, query: str, groups: dict) -> None:
    """However small the chunks in which trees are read."""
    api = with_settings(app, **groups)
    everything = candidates(api, query)
    assert len({str(found) for found in everything}) == len(everything) > 1
    with_limits(api, first_trees=1, growth=2)
    for limit in (1, 2, 5, len(everything), len(everything) + 1):
        assert candidates(api, f"{query}&limit={limit}") == everything[:limit]


def test_summaries_are_of_the_trees_in_the_answer_alone(api: Api, cloud: Cloud) -> None:
    document = ask(api, "GET", "/allocation_candidates?resources=VCPU:1,DISK_GB:10&limit=1")
    (found,) = document["allocation_requests"]
    summaries = document["provider_summaries"]
    used = {summaries[uuid]["root_provider_uuid"] for uuid in found["allocations"]}
    assert {summary["root_provider_uuid"] for summary in summaries.values()} == used


OLD_QUERIES = [
    "resources=VCPU:1",
    "resources=SRIOV_NET_VF:1",
    "resources=VCPU:1,DISK_GB:10",
    "resources=SRIOV_NET_VF:4,DISK_GB:50",
    "resources=SRIOV_NET_VF:1,VCPU:1",
    "resources=DISK_GB:10",
    "resources=DISK_GB:200",
]


@pytest.mark.parametrize("query", OLD_QUERIES)
@ranked_or_not
def test_before_1_29_summaries_are_of_all_that_serve_in_the_trees_of_a_limited_answer(
    app: Flask, cloud: Cloud, query: str, groups: dict
) -> None:
    """As in the reference, which finds all candidates first: with sharing providers of trees that are not shown."""
    api = with_settings(app, **groups)
    give_the_pool_a_part_for_one_host(api, cloud)
    path = f"/allocation_candidates?{query}"
    roots = {
        row["uuid"]: row["root_provider_uuid"] for row in api.get("/resource_providers").json["resource_providers"]
    }
    everything = ask(api, "GET", path, "1.24")
    for limit in range(1, len(everything["allocation_requests"]) + 2):
        answer = ask(api, "GET", f"{path}&limit={limit}", "1.24")
        assert answer["allocation_requests"] == everything["allocation_requests"][:limit]
        trees = {roots[used] for found in answer["allocation_requests"] for used in found["allocations"]}
        serving = {key: of for key, of in everything["provider_summaries"].items() if roots[key] in trees}
        assert answer["provider_summaries"] == serving


def give_the_pool_a_part_for_one_host(api: Api, cloud: Cloud) -> None:
    """Let only host0 use a child of the pool, too."""
    only, part = str(uuid.uuid4()), str(uuid.uuid4())
    change(api, cloud.providers["host0"], "aggregates", [only, cloud.aggregates["A"]])
    api.post("/resource_providers", {"name": "part", "uuid": part, "parent_provider_uuid": cloud.providers["pool"]})
    set_inventories(api, part, DISK_GB=200)
    change(api, part, "aggregates", [only])
    change(api, part, "traits", [SHARES])


def test_breadth_first_serves_each_tree_once_before_any_twice(app: Flask, cloud: Cloud) -> None:
    api = with_settings(app, options={"allocation_candidates_generation_strategy": "breadth-first"}, **UNRANKED)
    assert {host[:5] for host in hosts_of(api, cloud, QUERIES[0])[:6]} == {f"numa{i}" for i in range(6)}


def test_the_operator_can_bound_how_many_are_generated(app: Flask, cloud: Cloud) -> None:
    bounded = with_settings(app, options={"max_allocation_candidates": 3})
    assert [len(candidates(bounded, QUERIES[0] + limit)) for limit in ("", "&limit=2")] == [3, 2]


def test_without_ranking_a_random_sample_is_taken_of_all(app: Flask, api: Api, cloud: Cloud) -> None:
    everything = {str(found) for found in candidates(api, QUERIES[0])}
    shuffled = with_settings(app, options=RANDOM, **UNRANKED)
    samples = [[str(found) for found in candidates(shuffled, QUERIES[0] + "&limit=4")] for _ in range(20)]
    assert all(len(set(sample)) == 4 and everything.issuperset(sample) for sample in samples)
    assert len({tuple(sample) for sample in samples}) > 1


def test_a_search_that_runs_out_of_steps_says_so_and_is_no_empty_answer(api: Api, cloud: Cloud) -> None:
    """An empty answer would be taken for "no valid host"."""
    with_limits(api, steps_per_tree=3, steps_per_request=9)
    response = api.get(f"/allocation_candidates?{QUERIES[3]}")
    assert (response.status_code, response.headers["x-placement-search"]) == (200, "incomplete")
    assert response.get_json()["allocation_requests"]
    with_limits(api, steps_per_tree=1, steps_per_request=1)
    response = api.get(f"/allocation_candidates?{QUERIES[3]}")
    assert "search limit was reached" in error_of(response, 503)["detail"]
    assert "retry-after" not in response.headers  # Otherwise it would be the same again.


def test_an_answer_without_a_limit_is_bounded_and_says_that_it_is_incomplete(api: Api, cloud: Cloud) -> None:
    """Eight groups on eight devices: 16 million combinations, of which the first million took 1.4 gigabytes."""
    everything = candidates(api, QUERIES[0])
    slots = len(everything[0]["mappings"])
    for bound in (len(everything) * slots - 1, len(everything) * slots):
        with_limits(api, placements=bound)
        response = api.get(f"/allocation_candidates?{QUERIES[0]}")
        found = response.get_json()["allocation_requests"]
        assert found == everything[: bound // slots]
        assert ("x-placement-search" in response.headers) == (len(found) < len(everything))


@pytest.mark.parametrize("limit", ["9" * 30, "9" * 5000])
def test_a_limit_beyond_all_numbers_is_no_limit(api: Api, cloud: Cloud, limit: str) -> None:
    assert candidates(api, f"{QUERIES[0]}&limit={limit}") == candidates(api, QUERIES[0])


@pytest.fixture
def hosts(api: Api) -> Cloud:
    """Four hosts, from heavily used to empty; two have GPUs, one of which is in use."""
    names = ("busy", "half", "gpus-used", "gpus")
    devices = {"gpus-used": {"PGPU": 4}, "gpus": {"PGPU": 4}}
    cloud = stored(api.app, *[provider(name, VCPU=8, MEMORY_MB=100, **devices.get(name, {})) for name in names])
    for name, used in (("busy", {"VCPU": 6}), ("half", {"VCPU": 4}), ("gpus-used", {"PGPU": 2, "VCPU": 1})):
        allocate(api, cloud.providers[name], used)
    return cloud


def test_by_default_emptier_hosts_come_first_those_with_devices_last_and_devices_are_packed(
    app: Flask, api: Api, hosts: Cloud
) -> None:
    assert hosts_of(api, hosts, "resources=VCPU:1") == ["half", "busy", "gpus", "gpus-used"]
    assert hosts_of(api, hosts, "resources=VCPU:1,PGPU:1") == ["gpus-used", "gpus"]
    off = with_settings(app, **UNRANKED)
    assert hosts_of(off, hosts, "resources=VCPU:1") == ["busy", "half", "gpus-used", "gpus"]


def test_chance_moves_only_hosts_that_are_nearly_equal(app: Flask, hosts: Cloud) -> None:
    """The two with GPUs differ by 12.5 points, half and busy by 25 from those before them."""
    options = {"options": RANDOM, "planner_yaml": "profiles: {default: {fit: {}}}"}
    ranked, steady = [with_settings(app, ranking=RankingSettings(near_equal=points), **options) for points in (24, 1)]
    seen = {tuple(hosts_of(ranked, hosts, "resources=VCPU:1")) for _ in range(100)}
    assert seen == {("gpus", "gpus-used", "half", "busy"), ("gpus-used", "gpus", "half", "busy")}
    assert hosts_of(steady, hosts, "resources=VCPU:1") == ["gpus", "gpus-used", "half", "busy"]


PAIR = "resources_A=PGPU:1&resources_B=PGPU:1&resources_N=SRIOV_NET_VF:1&group_policy=isolate"


def test_one_numa_node_comes_before_two_the_fuller_node_first_and_a_limit_shows_many_hosts(
    app: Flask, api: Api
) -> None:
    """No node of the first host has two GPUs and a NIC, the fuller one of the second has."""

    def node(name: str, gpus: int, nics: int):
        below = [provider(f"{name}-gpu{i}", PGPU=1) for i in range(gpus)]
        below += [provider(f"{name}-nic{i}", SRIOV_NET_VF=1) for i in range(nics)]
        return provider(name, *below, traits=["HW_NUMA_ROOT"])

    first, second = (node("a0", 2, 0), node("a1", 1, 1)), (node("b0", 3, 1), node("b1", 2, 1))
    cloud = stored(app, provider("a", *first, VCPU=8), provider("b", *second, VCPU=8))
    every = [sorted(cloud.name_of(uuid) for uuid in request["allocations"]) for request in candidates(api, PAIR)]
    assert every[0] == ["b1-gpu0", "b1-gpu1", "b1-nic0"]
    assert every[1][-1] == "a1-nic0"
    of_b = [names for names in every if names[0].startswith("b")]
    nodes = [len({name[:2] for name in names}) for names in of_b]
    assert nodes == sorted(nodes)
    assert {names[0][:2] for names in of_b[2:8]} == {"b0"}
    assert {host[0] for host in hosts_of(api, cloud, "resources=PGPU:1&limit=2")} == {"a", "b"}
    deep = with_settings(app, options={"allocation_candidates_generation_strategy": "depth-first"})
    assert {host[0] for host in hosts_of(deep, cloud, "resources=PGPU:1&limit=2")} == {"a"}
    unranked = with_settings(app, **UNRANKED)
    for query in ("resources=VCPU:1", "resources=PGPU:1", PAIR):
        assert sorted(map(str, candidates(unranked, query))) == sorted(map(str, candidates(api, query)))


ABSURD = {
    "traits": "resources_A=VCPU:1&required_A=" + ",".join(STANDARD_TRAITS[:300]),
    "loose traits": "resources=VCPU:1&required=" + ",".join(STANDARD_TRAITS[:300]),
    "root traits": "resources=VCPU:1&root_required=" + ",".join(STANDARD_TRAITS[:300]),
    "aggregates": "resources=VCPU:1" + "".join(f"&member_of={uuid.UUID(int=number)}" for number in range(200)),
    "any traits": "resources=VCPU:1" + "".join(f"&required=in:HW_NUMA_ROOT,{name}" for name in STANDARD_TRAITS[:200]),
    "groups": "".join(f"resources_{i}=VCPU:{i % 8 + 1}&" for i in range(200)) + "group_policy=none",
}


@pytest.mark.parametrize("query", ABSURD.values(), ids=ABSURD)
def test_requests_of_absurd_size_are_answered(api: Api, cloud: Cloud, query: str) -> None:
    """PostgreSQL plans a hundred subqueries for minutes, SQLite limits nesting and joins."""
    assert candidates(api, query) == []
    assert ask(api, "GET", f"/planner/v1/explain?{query}")["cause"]


def test_no_more_is_ranked_than_an_answer_has_room_for(sqlite_url: str) -> None:
    """Each of many groups may be served by the host or by a pool: with 24 groups, that took 43 s."""
    groups, room, calls = 8, 40, Counter[str]()
    query = "group_policy=none&" + "&".join(f"resources{number}=DISK_GB:1" for number in range(groups))
    with serving(sqlite_url) as api:
        pool = provider("pool", DISK_GB=1000, traits=[SHARES], aggregates=["A"])
        stored(api.app, pool, *[provider(f"host{n}", DISK_GB=1000, aggregates=["A"]) for n in range(12)])
        with_limits(api, placements=groups * room)
        api.get("/allocation_candidates?resources=DISK_GB:1")  # what only the first request needs
        sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
        try:
            answer = api.get(f"/allocation_candidates?{query}")
        finally:
            sys.setprofile(None)
    assert (len(answer.json["allocation_requests"]), answer.headers["x-placement-search"]) == (room, "incomplete")
    assert calls["call"] < 20_000
