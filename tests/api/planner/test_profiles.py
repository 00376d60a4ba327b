"""POST /planner/v1/scores, profiles in requests, and profiles that filter candidates."""

import logging
from pathlib import Path

import pytest
from flask import Flask

from tests import planner_hosts
from tests.api.conftest import Api, with_settings
from tests.claims import ask, detail_of, make_provider, new_uuid
from tests.clouds import SHARES, Cloud, allocate, provider
from tests.conftest import Configured
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer
from tests.stored_clouds import stored

PLANNER_YAML = """
profiles:
  default: {fit: {}, compactness: {}}
  ai:
    fit: {resources: {PGPU: {type: MostAllocated, weight: 2}, VCPU: {type: LeastAllocated}}}
    sra: {resources: {PGPU: 1}}
"""
PATH = "/planner/v1/scores"


@pytest.fixture
def cloud(api: Api) -> Cloud:
    """Two servers with CPUs, one of them half full, and one with GPUs; a pool of disks for all."""

    def server(name: str, *devices, **inventories):
        return provider(name, *devices, aggregates=["A"], **inventories)

    built = stored(
        api.app,
        server("cpu0", VCPU=32),
        server("cpu1", VCPU=32),
        server(
            "gpu0",
            provider("numa0", provider("g0", PGPU=4), VCPU=8, traits=["HW_NUMA_ROOT"]),
            provider("numa1", provider("g1", PGPU=4), VCPU=8, traits=["HW_NUMA_ROOT"]),
        ),
        provider("pool", DISK_GB=1000, traits=[SHARES], aggregates=["A"]),
    )
    allocate(api, built.providers["cpu1"], {"VCPU": 16})
    allocate(api, built.providers["g1"], {"PGPU": 2})
    return built


def taking(cloud: Cloud, **amounts: dict[str, int]) -> dict[str, object]:
    """Return an allocation request, by names of providers."""
    return {"allocations": {cloud.providers[name]: {"resources": taken} for name, taken in amounts.items()}}


def scores(api: Api, *requests: object, **more: object) -> list[dict]:
    answer = api.post(PATH, {"allocation_requests": list(requests), **more})
    assert answer.status_code == 200, answer.text
    return answer.json["scores"]


def test_the_parts_are_shown_on_a_scale_to_100(api: Api, cloud: Cloud) -> None:
    job = {"VCPU": 4}
    empty, half_full, gpus = scores(
        api, *(taking(cloud, **{name: job}) for name in ("cpu0", "cpu1", "numa0")), profile="ai"
    )
    # The vectors RS-21, divided by the maximum of 2000.
    assert empty == {
        "total": 93.75,
        "fit": 87.5,
        "sra": 100.0,
        "compactness": None,
        "fragmentation": None,
        "raw": {"fit": 875.0, "sra": 1000.0},
        "touched": {"numa": 0, "pcie": 0},
        "keeps_proportion": None,
        "has_room": True,
    }
    assert (half_full["fit"], half_full["sra"], half_full["total"]) == (37.5, 100, 68.75)
    assert (gpus["fit"], gpus["sra"], gpus["total"]) == (75, 0, 37.5)


@pytest.mark.parametrize("limit", [1, 10])
def test_the_winner_does_not_depend_on_how_many_of_a_tree_are_shown(api: Api, limit: int) -> None:
    """Two GPUs outside all NUMA nodes, on two switches, are no better than two on one switch inside one."""

    def switch(name: str, *gpus: str):
        return provider(name, *[provider(gpu, PGPU=1) for gpu in gpus], traits=["CUSTOM_HW_PCIE_SWITCH"])

    first = provider("a", provider("an", switch("a0", "ag0"), switch("a1", "ag1"), traits=["HW_NUMA_ROOT"]))
    inside = provider("bn", switch("b2", "bg2", "bg3"), traits=["HW_NUMA_ROOT"])
    second = provider("b", switch("b0", "bg0"), switch("b1", "bg1"), inside)
    built = stored(api.app, first, second)
    group = {"resources": {"PGPU": 1}, "count": 2}
    both = {"groups": {"_GPU": group}, "limit": limit, "profile": {"compactness": {}}}
    answers = [api.post("/planner/v1/candidates", {**both, "per_tree": number}).json for number in (1, 2, 6)]
    best = {built.providers["bg2"], built.providers["bg3"]}
    for answer in answers:
        request, score = answer["allocation_requests"][0], answer["scores"][0]
        assert ({*request["mappings"]["_GPU"]}, score["touched"]) == (best, {"numa": 1, "pcie": 1})


def test_what_no_longer_fits_scores_nothing(api: Api, cloud: Cloud) -> None:
    """Also where the tree would have room, but not the provider."""
    request = taking(cloud, cpu1={"VCPU": 16}, pool={"DISK_GB": 1})
    assert scores(api, request)[0]["has_room"] is True
    allocate(api, cloud.providers["cpu1"], {"VCPU": 1})
    for full in scores(api, request, taking(cloud, g1={"PGPU": 3}, numa0={"VCPU": 1}), profile="ai"):
        assert full | {"total": 0, "fit": 0, "sra": 0, "raw": {"fit": 0, "sra": 0}, "has_room": False} == full


FIT = {"fit": {"resources": {"VCPU": {"type": "MostAllocated", "weight": 1}}}}
ONE_CPU = {"groups": {"": {"resources": {"VCPU": 1}}}}


def test_a_profile_in_the_request_orders_its_candidates(api: Api) -> None:
    small, large = make_provider(api, VCPU=2), make_provider(api, VCPU=8)
    for profile, first in ((FIT, small), ({"fit": {"resources": {"VCPU": {"type": "LeastAllocated"}}}}, large)):
        answer = ask(api, "POST", CANDIDATES, body={**ONE_CPU, "profile": profile})
        assert next(iter(answer["allocation_requests"][0]["allocations"])) == first
    requests = [{"allocations": {small: {"resources": {"VCPU": 1}}}}]
    scored = ask(api, "POST", "/planner/v1/scores", body={"allocation_requests": requests, "profile": FIT})
    assert scored["scores"][0]["total"] == 50
    assert ask(api, "POST", CLAIMS, body={**ONE_CPU, "profile": FIT, "consumer": consumer()})["allocations"].keys() == {
        small
    }


def test_who_may_plan_may_not_always_bring_a_profile(configured: Configured, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text('"placement:planner:inline_profile": "!"\n')
    api = Api(configured(api={"auth_strategy": "noauth2"}))
    make_provider(api, VCPU=2)
    assert api.post(CANDIDATES, {**ONE_CPU, "profile": FIT}).status_code == 403
    assert api.post(CANDIDATES, {**ONE_CPU, "profile": "default"}).status_code == 200


@pytest.fixture
def reserving(app: Flask) -> Api:
    """A server whose profile excludes trees that would have too few CPUs left for their GPUs."""
    profile = "{proportional: {reserve: {PGPU: {VCPU: 8}}, mode: filter}, compactness: {}}"
    return with_settings(app, planner_yaml=f"profiles: {{default: {profile}}}")


def test_what_a_profile_leaves_out_is_named(reserving: Api, caplog: pytest.LogCaptureFixture) -> None:
    """The answer used to be empty, with trees_with_candidates 1."""
    make_provider(reserving, VCPU=16, PGPU=2)
    with caplog.at_level(logging.INFO):
        assert ask(reserving, "GET", "/allocation_candidates?resources=VCPU:1")["allocation_requests"] == []
    said = "what the profile keeps idle beside scarce resources (proportional, mode: filter)"
    assert any(said in record.message for record in caplog.records)
    plain = ask(reserving, "GET", "/planner/v1/explain?resources=VCPU:1")
    assert (plain["cause"]["condition"], plain["trees_with_candidates"]) == ("proportional", 0)
    assert [(one["condition"], one["trees"]) for one in plain["near_misses"]] == [("proportional", 1)]
    planned = ask(reserving, "POST", CANDIDATES, body={**ONE_CPU, "explain": True})
    assert planned["explanation"]["cause"]["condition"] == "proportional"
    assert said in detail_of(reserving.post(CLAIMS, {**ONE_CPU, "consumer": consumer()}), 409)


def test_other_causes_stay_what_they_are(reserving: Api) -> None:
    make_provider(reserving, VCPU=16, PGPU=2)
    assert ask(reserving, "GET", "/planner/v1/explain?resources=VCPU:17")["cause"]["condition"] == "capacity"
    make_provider(reserving, VCPU=16)
    found = ask(reserving, "GET", "/planner/v1/explain?resources=VCPU:1")
    assert found["cause"] is None


def test_a_tree_that_is_asked_for_is_left_out_all_the_same(reserving: Api) -> None:
    """Only that tree is read, without comparing it with any other."""
    root = make_provider(reserving, VCPU=16, PGPU=2)
    assert ask(reserving, "GET", f"/allocation_candidates?resources=VCPU:1&in_tree={root}")["allocation_requests"] == []
    for number in range(2):
        planner_hosts.provider(reserving, f"nic{number}", root, {"SRIOV_NET_VF": {"total": 4}}, [])
    for count in (1, 2):
        group = {"resources": {"SRIOV_NET_VF": 1}, "count": count, "in_tree": root}
        body = {"groups": {"_A": group, "": {"resources": {"VCPU": 1}}}}
        assert ask(reserving, "POST", CANDIDATES, body=body)["allocation_requests"] == []
        assert reserving.post(CLAIMS, {**body, "consumer": consumer()}).status_code == 409
        group["in_tree"] = new_uuid()
        assert ask(reserving, "POST", CANDIDATES, body=body)["allocation_requests"] == []
