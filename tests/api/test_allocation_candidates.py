"""GET /allocation_candidates: limits, operator options, budget."""

import dataclasses
import uuid

import os_traits
import pytest

from placement.api.candidate_query import ranking_in_force, search_options
from placement.domain.search_plan import SearchLimits
from placement.settings import Settings
from placement.settings.values import RankingSettings
from tests.api.conftest import Api
from tests.claims import error_of
from tests.clouds import SHARES, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

STANDARD_TRAITS = os_traits.get_traits()

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
def cloud(api):
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


def candidates(api, query: str) -> list:
    response = api.get(f"/allocation_candidates?{query}")
    assert response.status_code == 200
    return response.get_json()["allocation_requests"]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("ranks", [True, False])
def test_a_limited_answer_is_the_head_of_the_unlimited_one(app, api, cloud, query, ranks):
    """However small the chunks in which trees are read."""
    if not ranks:
        without_ranking(app)
    everything = candidates(api, query)
    assert len({str(found) for found in everything}) == len(everything) > 1
    with_limits(app, first_trees=1, growth=2)
    for limit in (1, 2, 5, len(everything), len(everything) + 1):
        assert candidates(api, f"{query}&limit={limit}") == everything[:limit]


def test_summaries_are_of_the_trees_in_the_answer_alone(api, cloud):
    document = api.get("/allocation_candidates?resources=VCPU:1,DISK_GB:10&limit=1").get_json()
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
@pytest.mark.parametrize("ranks", [True, False])
def test_before_1_29_summaries_are_of_all_that_serve_in_the_trees_of_a_limited_answer(app, api, cloud, query, ranks):
    """As in the reference, which finds all candidates first: with sharing providers of trees that are not shown."""
    if not ranks:
        without_ranking(app)
    _give_the_pool_a_part_for_one_host(api, cloud)
    roots = {
        one["uuid"]: one["root_provider_uuid"] for one in api.get("/resource_providers").json["resource_providers"]
    }
    everything = api.get(f"/allocation_candidates?{query}", version="1.24").json
    for limit in range(1, len(everything["allocation_requests"]) + 2):
        answer = api.get(f"/allocation_candidates?{query}&limit={limit}", version="1.24").json
        assert answer["allocation_requests"] == everything["allocation_requests"][:limit]
        trees = {roots[used] for found in answer["allocation_requests"] for used in found["allocations"]}
        serving = {key: one for key, one in everything["provider_summaries"].items() if roots[key] in trees}
        assert answer["provider_summaries"] == serving


def _give_the_pool_a_part_for_one_host(api, cloud):
    """Let only host0 use a child of the pool, too."""
    only, part = str(uuid.uuid4()), str(uuid.uuid4())
    api.put(f"/resource_providers/{cloud.providers['host0']}/aggregates", aggregates_of(only, cloud.aggregates["A"]))
    api.post("/resource_providers", {"name": "part", "uuid": part, "parent_provider_uuid": cloud.providers["pool"]})
    has = {"resource_provider_generation": 0, "inventories": {"DISK_GB": {"total": 200}}}
    api.put(f"/resource_providers/{part}/inventories", has)
    api.put(f"/resource_providers/{part}/aggregates", aggregates_of(only, generation=1))
    shares = {"resource_provider_generation": 2, "traits": [SHARES]}
    assert api.put(f"/resource_providers/{part}/traits", shares).status_code == 200


def aggregates_of(*labels: str, generation: int = 0) -> dict:
    return {"aggregates": list(labels), "resource_provider_generation": generation}


def reconfigured(app, settings: Settings, limits: SearchLimits | None = None) -> Api:
    """Change settings of searches in a running application."""
    server, ranking = app.extensions["placement"], ranking_in_force(settings)
    changed = {
        "settings": settings,
        "search": search_options(settings, limits or server.search.limits),
        "ranking": ranking,
        "judge": server.fragmentation_judges.get(ranking.profile.name) if ranking else None,
    }
    for name, value in changed.items():
        object.__setattr__(server, name, value)
    return Api(app)


def with_options(app, **options) -> Api:
    """Change options of [placement] in a running application."""
    server = app.extensions["placement"]
    settings = dataclasses.replace(server.settings, placement=dataclasses.replace(server.settings.placement, **options))
    return reconfigured(app, settings)


def with_limits(app, **limits: int) -> Api:
    """Change the limits of searches in a running application."""
    return reconfigured(app, app.extensions["placement"].settings, SearchLimits(**limits))


def without_ranking(app) -> Api:
    """Disable the ranking of a running application."""
    server = app.extensions["placement"]
    settings = dataclasses.replace(server.settings, ranking=RankingSettings(enabled=False))
    return reconfigured(app, settings)


def test_breadth_first_serves_each_tree_once_before_any_twice(app, api, cloud):
    without_ranking(app)
    found = candidates(with_options(app, allocation_candidates_generation_strategy="breadth-first"), QUERIES[0])
    first_round = {cloud.name_of(uuid)[:5] for candidate in found[:6] for uuid in candidate["allocations"]}
    assert first_round == {f"numa{i}" for i in range(6)}


def test_the_operator_can_bound_how_many_are_generated(app, api, cloud):
    assert len(candidates(with_options(app, max_allocation_candidates=3), QUERIES[0])) == 3
    assert len(candidates(with_options(app, max_allocation_candidates=3), QUERIES[0] + "&limit=2")) == 2


def test_without_ranking_a_random_sample_is_taken_of_all(app, api, cloud):
    everything = {str(found) for found in candidates(api, QUERIES[0])}
    without_ranking(app)
    shuffled = with_options(app, randomize_allocation_candidates=True)
    samples = [[str(found) for found in candidates(shuffled, QUERIES[0] + "&limit=4")] for _ in range(20)]
    assert all(len(set(sample)) == 4 and everything.issuperset(sample) for sample in samples)
    assert len({tuple(sample) for sample in samples}) > 1


def test_a_search_that_runs_out_of_steps_says_that_it_is_incomplete(app, api, cloud):
    with_limits(app, steps_per_tree=3, steps_per_request=9)
    response = api.get(f"/allocation_candidates?{QUERIES[3]}")
    assert response.status_code == 200
    assert response.headers["x-placement-search"] == "incomplete"
    assert response.get_json()["allocation_requests"]


def test_a_search_that_runs_out_of_steps_empty_handed_is_no_empty_answer(app, api, cloud):
    """An empty answer would be taken for "no valid host"."""
    with_limits(app, steps_per_tree=1, steps_per_request=1)
    response = api.get(f"/allocation_candidates?{QUERIES[3]}")
    assert response.status_code == 503
    assert "retry-after" not in response.headers  # Otherwise it would be the same again.
    assert "search limit was reached" in response.get_json()["errors"][0]["detail"]


def test_an_answer_without_a_limit_is_bounded_and_says_that_it_is_incomplete(app, api, cloud):
    """Eight groups on eight devices: 16 million combinations, of which the first million took 1.4 gigabytes."""
    everything = candidates(api, QUERIES[0])
    slots = len(everything[0]["mappings"])
    for bound in (len(everything) * slots - 1, len(everything) * slots):
        with_limits(app, placements=bound)
        response = api.get(f"/allocation_candidates?{QUERIES[0]}")
        found = response.get_json()["allocation_requests"]
        assert found == everything[: bound // slots]
        assert ("x-placement-search" in response.headers) == (len(found) < len(everything))


@pytest.mark.parametrize("limit", ["9" * 30, "9" * 5000])
def test_a_limit_beyond_all_numbers_is_no_limit(api, cloud, limit):
    assert candidates(api, f"{QUERIES[0]}&limit={limit}") == candidates(api, QUERIES[0])


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resources=VCPU:99999999999999999999", "placement.undefined_code"),
        ("resources=CUSTOM_NOTHING:1", "placement.undefined_code"),
        ("resources=VCPU:1&required=CUSTOM_NOTHING", "placement.undefined_code"),
        ("resources=VCPU:1&root_required=CUSTOM_NOTHING", "placement.undefined_code"),
        ("resources=VCPU:1&limit=0", "placement.undefined_code"),
        ("resources=VCPU:1&in_tree=host0", "placement.undefined_code"),
        ("resources=VC%00PU:1", "placement.undefined_code"),
        ("resources=VCPU:1&required=%ff", "placement.undefined_code"),
        ("required_A=HW_NUMA_ROOT&same_subtree=_A", "placement.query.missing_value"),
        ("resources=VCPU:1&required_A=HW_NUMA_ROOT", "placement.query.bad_value"),
        ("resources=VCPU:1&root_required=HW_NUMA_ROOT&root_required=HW_NUMA_ROOT", "placement.query.duplicate_key"),
    ],
)
def test_bad_queries_are_refused(api, query, code):
    error = error_of(api.get(f"/allocation_candidates?{query}"))
    assert error["code"] == code
    assert error["request_id"]


def many(count: int) -> list[str]:
    return [f"00000000-0000-4000-8000-{i:012}" for i in range(count)]


@pytest.mark.parametrize(
    "query",
    [
        "resources_A=VCPU:1&required_A=" + ",".join(sorted(STANDARD_TRAITS)[:300]),
        "resources=VCPU:1&required=" + ",".join(sorted(STANDARD_TRAITS)[:300]),
        "resources=VCPU:1&root_required=" + ",".join(sorted(STANDARD_TRAITS)[:300]),
        "resources=VCPU:1" + "".join(f"&member_of={found}" for found in many(200)),
        "resources=VCPU:1" + "".join(f"&required=in:HW_NUMA_ROOT,{name}" for name in sorted(STANDARD_TRAITS)[:200]),
        "".join(f"resources_{i}=VCPU:{i % 8 + 1}&" for i in range(200)) + "group_policy=none",
    ],
    ids=["traits", "loose traits", "root traits", "aggregates", "any traits", "groups"],
)
def test_requests_of_absurd_size_are_answered(api, cloud, query):
    """PostgreSQL plans a hundred subqueries for minutes, SQLite limits nesting and joins."""
    assert candidates(api, query) == []


@pytest.mark.parametrize(
    "query",
    [
        "".join(f"resources_{i}=VCPU:1&" for i in range(300)) + "group_policy=none",
        "resources_A=" + ",".join(f"CUSTOM_{i}:1" for i in range(30)),
    ],
    ids=["groups", "classes"],
)
def test_requests_beyond_any_cloud_are_refused(api, query):
    assert api.get(f"/allocation_candidates?{query}").status_code == 400
