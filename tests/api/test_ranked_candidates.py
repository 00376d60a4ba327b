"""GET /allocation_candidates, best first: the order, the effect of limits, and what randomness may change."""

import dataclasses

import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.settings.planner import PlannerSettings
from placement.settings.values import RankingSettings
from tests.api.conftest import Api
from tests.api.test_allocation_candidates import reconfigured, with_limits, with_options
from tests.clouds import SHARES, Cloud, allocate, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

NUMA = ["HW_NUMA_ROOT"]
GPUS_PACKED = Profile(fit=Fit({"PGPU": Preference("MostAllocated")}))
GPUS_SPARED = Profile(sra=Sra({"PGPU": 1}))


def ranked_by(app, profile: RankingProfile, **options) -> Api:
    """Change the ranking of a running application."""
    server = app.extensions["placement"]
    planner = PlannerSettings(profiles={"mine": profile}, default_profile="mine")
    settings = dataclasses.replace(server.settings, planner=planner, ranking=RankingSettings(**options))
    return reconfigured(app, settings)


def strategy(chosen: Profile) -> RankingProfile:
    return RankingProfile("mine", chosen, 0)


def found(api: Api, cloud: Cloud, query: str) -> list[list[str]]:
    """Return the names of the providers of each candidate, sorted."""
    response = api.get(f"/allocation_candidates?{query}")
    assert response.status_code == 200, response.get_json()
    requests = response.get_json()["allocation_requests"]
    return [sorted(cloud.name_of(uuid) for uuid in request["allocations"]) for request in requests]


def first_of_each(api: Api, cloud: Cloud, query: str) -> list[str]:
    return [names[0] for names in found(api, cloud, query)]


@pytest.fixture
def hosts(api) -> Cloud:
    """Four hosts, from heavily used to empty; two have GPUs, one of which is in use."""
    cloud = stored(
        api.app,
        provider("busy", VCPU=8, MEMORY_MB=100),
        provider("half", VCPU=8, MEMORY_MB=100),
        provider("gpus-used", VCPU=8, MEMORY_MB=100, PGPU=4),
        provider("gpus", VCPU=8, MEMORY_MB=100, PGPU=4),
    )
    for name, used in (("busy", {"VCPU": 6}), ("half", {"VCPU": 4}), ("gpus-used", {"PGPU": 2, "VCPU": 1})):
        allocate(api.call, cloud.providers[name], used)
    return cloud


def test_the_emptier_host_comes_first_and_those_with_devices_last(api, hosts):
    assert first_of_each(api, hosts, "resources=VCPU:1") == ["half", "busy", "gpus", "gpus-used"]


def test_devices_are_packed(api, hosts):
    assert first_of_each(api, hosts, "resources=VCPU:1,PGPU:1") == ["gpus-used", "gpus"]


def test_a_profile_can_pack_gpus(app, api, hosts):
    assert first_of_each(api, hosts, "resources=PGPU:1") == ["gpus-used", "gpus"]
    assert first_of_each(ranked_by(app, strategy(GPUS_PACKED)), hosts, "resources=PGPU:1") == ["gpus-used", "gpus"]
    spread = strategy(Profile(fit=Fit({"PGPU": Preference("LeastAllocated")})))
    assert first_of_each(ranked_by(app, spread), hosts, "resources=PGPU:1") == ["gpus", "gpus-used"]


def test_hosts_with_scarce_resources_are_kept_for_those_who_ask(app, api, hosts):
    ranked = ranked_by(app, strategy(GPUS_SPARED))
    assert first_of_each(ranked, hosts, "resources=VCPU:1") == ["busy", "half", "gpus-used", "gpus"]
    family = ranked_by(app, strategy(Profile(sra=Sra({"PGP*": 1}))))
    assert first_of_each(family, hosts, "resources=VCPU:1") == ["busy", "half", "gpus-used", "gpus"]


@pytest.mark.parametrize(("mode", "left"), [("last", 4), ("filter", 3)])
def test_hosts_that_break_the_proportion_come_last_or_not_at_all(app, api, hosts, mode, left):
    """With four idle GPUs, 7 VCPUs would be left: too few for two each."""
    fit = Fit({"VCPU": Preference("MostAllocated")})
    ranked = ranked_by(app, strategy(Profile(fit=fit, proportional=Proportional({"PGPU": {"VCPU": 2}}, mode=mode))))
    assert first_of_each(ranked, hosts, "resources=VCPU:1") == ["busy", "half", "gpus-used", "gpus"][:left]


@pytest.fixture
def numa(api) -> Cloud:
    """Two hosts with two NUMA nodes; no node of the first has two GPUs and a NIC, the fuller one of the second has."""

    def node(name: str, gpus: int, nics: int):
        below = [provider(f"{name}-gpu{i}", PGPU=1) for i in range(gpus)]
        below += [provider(f"{name}-nic{i}", SRIOV_NET_VF=1) for i in range(nics)]
        return provider(name, *below, traits=NUMA)

    return stored(
        api.app,
        provider("a", node("a0", 2, 0), node("a1", 1, 1), VCPU=8),
        provider("b", node("b0", 3, 1), node("b1", 2, 1), VCPU=8),
    )


PAIR = "resources_A=PGPU:1&resources_B=PGPU:1&resources_N=SRIOV_NET_VF:1&group_policy=isolate"


def test_one_numa_node_comes_before_two_and_the_fuller_node_first(api, numa):
    everything = found(api, numa, PAIR)
    assert everything[0] == ["b1-gpu0", "b1-gpu1", "b1-nic0"]
    assert everything[1][-1] == "a1-nic0"
    of_b = [names for names in everything if names[0].startswith("b")]
    nodes = [len({name[:2] for name in names}) for names in of_b]
    assert nodes == sorted(nodes)
    assert {names[0][:2] for names in of_b[2:8]} == {"b0"}


def test_without_weight_for_compactness_trees_come_by_their_roots(app, api, numa):
    ranked = ranked_by(app, RankingProfile("mine", Profile(fit=Fit()), 0))
    assert found(ranked, numa, PAIR)[0][0].startswith("a")


@pytest.mark.parametrize("query", ["resources=VCPU:1", "resources=VCPU:1,DISK_GB:1", PAIR])
def test_a_limited_answer_is_the_head_of_the_whole_one(app, api, numa, query):
    stored(api.app, provider("pool", DISK_GB=10, traits=[SHARES]))
    whole = api.get(f"/allocation_candidates?{query}").get_json()["allocation_requests"]
    with_limits(app, first_trees=1)
    for limit in range(1, len(whole) + 1):
        some = api.get(f"/allocation_candidates?{query}&limit={limit}").get_json()["allocation_requests"]
        assert some == whole[:limit]


def test_a_limit_shows_many_hosts(app, api, numa):
    assert {names[0][0] for names in found(api, numa, "resources=PGPU:1&limit=2")} == {"a", "b"}
    deep = with_options(app, allocation_candidates_generation_strategy="depth-first")
    assert {names[0][0] for names in found(deep, numa, "resources=PGPU:1&limit=2")} == {"a"}


def test_chance_moves_only_hosts_that_are_nearly_equal(app, api, hosts):
    """The two with GPUs differ by 12.5 points, half and busy by 25 from those before them."""
    with_options(app, randomize_allocation_candidates=True)
    ranked = ranked_by(app, strategy(Profile(fit=Fit())), near_equal=24.0)
    seen = {tuple(first_of_each(ranked, hosts, "resources=VCPU:1")) for _ in range(100)}
    assert seen == {("gpus", "gpus-used", "half", "busy"), ("gpus-used", "gpus", "half", "busy")}
    steady = ranked_by(app, strategy(Profile(fit=Fit())), near_equal=1.0)
    assert first_of_each(steady, hosts, "resources=VCPU:1") == ["gpus", "gpus-used", "half", "busy"]


def test_without_ranking_candidates_come_by_id(app, api, hosts):
    off = ranked_by(app, RankingProfile(), enabled=False)
    assert first_of_each(off, hosts, "resources=VCPU:1") == ["busy", "half", "gpus-used", "gpus"]


def test_the_set_of_candidates_is_the_same_with_and_without_ranking(app, api, hosts, numa):
    def answers():
        return [sorted(found(api, merged, query)) for query in ("resources=VCPU:1", "resources=PGPU:1", PAIR)]

    merged = Cloud({**hosts.providers, **numa.providers}, {})
    ranked = answers()
    ranked_by(app, RankingProfile(), enabled=False)
    assert answers() == ranked


def test_many_groups_go_to_the_most_compact_of_hosts_with_different_leftovers(api):
    """With a limit, most hosts are not searched. Without one, all of them are."""

    def host(number: int):
        nodes = [(7 * number + node) % 5 for node in range(4)]
        below = [provider(f"h{number}-{node}", SRIOV_NET_VF=1 + vfs, traits=NUMA) for node, vfs in enumerate(nodes)]
        return provider(f"h{number}", *below)

    cloud = stored(api.app, *[host(number) for number in range(12)])
    groups = "&".join([f"resources_{number}=SRIOV_NET_VF:1" for number in range(8)])
    with_limits(api.app, placements=10**6, steps_per_tree=10**6)
    for more in ("", "&same_subtree=_0,_1"):
        query = f"{groups}&group_policy=none{more}"
        everything = found(api, cloud, query)
        of_each = list({names[0].partition("-")[0]: names for names in reversed(everything)}.values())[::-1]
        assert len(of_each) > 6
        for limit in (1, 3, len(of_each)):
            assert found(api, cloud, f"{query}&limit={limit}") == everything[:limit]
