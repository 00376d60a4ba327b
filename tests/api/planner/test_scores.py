"""POST /planner/v1/scores: what candidates are worth, by profile and part."""

import uuid
from dataclasses import replace

import pytest
from flask import Flask

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Sra
from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import detail_of
from tests.clouds import SHARES, Cloud, allocate, provider
from tests.stored_clouds import stored

AI = RankingProfile(
    "ai",
    Profile(
        fit=Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated")}),
        sra=Sra({"PGPU": 1}),
    ),
    0,
)
PLANNER = PlannerSettings(profiles={"default": RankingProfile(), "ai": AI})
PATH = "/planner/v1/scores"


@pytest.fixture
def planner(app: Flask) -> Api:
    """A client of a server with a second profile."""
    return Api(create_app(replace(app.extensions["placement"].settings, planner=PLANNER)))


@pytest.fixture
def cloud(planner: Api) -> Cloud:
    """Two servers with CPUs, one of them half full, and one with GPUs; a pool of disks for all."""

    def server(name: str, *devices, **inventories):
        return provider(name, *devices, aggregates=["A"], **inventories)

    built = stored(
        planner.app,
        server("cpu0", VCPU=32),
        server("cpu1", VCPU=32),
        server(
            "gpu0",
            provider("numa0", provider("g0", PGPU=4), VCPU=8, traits=["HW_NUMA_ROOT"]),
            provider("numa1", provider("g1", PGPU=4), VCPU=8, traits=["HW_NUMA_ROOT"]),
        ),
        provider("pool", DISK_GB=1000, traits=[SHARES], aggregates=["A"]),
    )
    allocate(planner.call, built.providers["cpu1"], {"VCPU": 16})
    allocate(planner.call, built.providers["g1"], {"PGPU": 2})
    return built


def taking(cloud: Cloud, **amounts: dict[str, int]) -> dict[str, object]:
    """Return an allocation request, by names of providers."""
    return {"allocations": {cloud.providers[name]: {"resources": taken} for name, taken in amounts.items()}}


def scores(api: Api, *requests: object, **more: object) -> list[dict]:
    answer = api.post(PATH, {"allocation_requests": list(requests), **more})
    assert answer.status_code == 200, answer.text
    return answer.json["scores"]


def test_the_parts_are_shown_on_a_scale_to_100(planner: Api, cloud: Cloud) -> None:
    job = {"VCPU": 4}
    empty, half_full, gpus = scores(
        planner,
        *(taking(cloud, **{name: job}) for name in ("cpu0", "cpu1", "numa0")),
        profile="ai",
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
def test_the_winner_does_not_depend_on_how_many_of_a_tree_are_shown(planner: Api, limit: int) -> None:
    """Two GPUs outside all NUMA nodes, on two switches, are no better than two on one switch inside one."""

    def switch(name: str, *gpus: str):
        return provider(name, *[provider(gpu, PGPU=1) for gpu in gpus], traits=["CUSTOM_HW_PCIE_SWITCH"])

    first = provider("a", provider("an", switch("a0", "ag0"), switch("a1", "ag1"), traits=["HW_NUMA_ROOT"]))
    inside = provider("bn", switch("b2", "bg2", "bg3"), traits=["HW_NUMA_ROOT"])
    second = provider("b", switch("b0", "bg0"), switch("b1", "bg1"), inside)
    built = stored(planner.app, first, second)
    group = {"resources": {"PGPU": 1}, "count": 2}
    both = {"groups": {"_GPU": group}, "limit": limit, "profile": {"compactness": {}}}
    answers = [planner.post("/planner/v1/candidates", {**both, "per_tree": number}).json for number in (1, 2, 6)]
    best = {built.providers["bg2"], built.providers["bg3"]}
    for answer in answers:
        request, score = answer["allocation_requests"][0], answer["scores"][0]
        assert ({*request["mappings"]["_GPU"]}, score["touched"]) == (best, {"numa": 1, "pcie": 1})


def test_candidates_touch_what_their_scores_say_they_do(planner: Api) -> None:
    """Including candidates in no place, and groups that take nothing from the place they are above."""
    nodes = [provider(f"n{n}", provider(f"g{n}", PGPU=1), traits=["HW_NUMA_ROOT"]) for n in range(2)]
    stored(planner.app, provider("host", *nodes, VCPU=8), provider("plain", VCPU=8))
    bodies = [
        {"groups": {"_C": {"resources": {"VCPU": 1}}}},
        {
            "groups": {"_C": {"resources": {"VCPU": 1}}, "_N": {"required": ["HW_NUMA_ROOT"]}},
            "same_subtree": [["_C", "_N"]],
            "group_policy": "none",
        },
        {"groups": {"": {"resources": {"VCPU": 1}}, "_G": {"resources": {"PGPU": 1}, "count": 2}}},
    ]
    seen = []
    for body in bodies:
        answer = planner.post("/planner/v1/candidates", {**body, "per_tree": 5}).json
        requests = [{"allocations": one["allocations"]} for one in answer["allocation_requests"]]
        assert requests
        keys = ("touched", "total", "compactness")
        shown = [{key: one[key] for key in keys} for one in answer["scores"]]
        assert shown == [{key: one[key] for key in keys} for one in scores(planner, *requests)]
        seen += [one["touched"]["numa"] for one in shown]
    assert {*seen} == {0, 2}


def test_a_shared_pool_does_not_count(planner: Api, cloud: Cloud) -> None:
    alone, with_disk = scores(
        planner,
        taking(cloud, cpu0={"VCPU": 4}),
        taking(cloud, cpu0={"VCPU": 4}, pool={"DISK_GB": 900}),
    )
    assert alone == with_disk


def test_what_no_longer_fits_scores_nothing(planner: Api, cloud: Cloud) -> None:
    """Also where the tree would have room, but not the provider."""
    request = taking(cloud, cpu1={"VCPU": 16}, pool={"DISK_GB": 1})
    assert scores(planner, request)[0]["has_room"] is True
    allocate(planner.call, cloud.providers["cpu1"], {"VCPU": 1})
    for full in scores(planner, request, taking(cloud, g1={"PGPU": 3}, numa0={"VCPU": 1}), profile="ai"):
        assert full | {"total": 0, "fit": 0, "sra": 0, "raw": {"fit": 0, "sra": 0}, "has_room": False} == full


def test_it_is_a_constant_number_of_statements(app: Flask, planner: Api, cloud: Cloud) -> None:
    one = [taking(cloud, cpu0={"VCPU": 1})]
    many = [taking(cloud, **{name: {"VCPU": n}}) for name in ("cpu0", "cpu1", "numa0") for n in range(1, 9)]
    scores(planner, *many)  # Names of standard classes and traits are looked up once.
    sent = []
    for requests in (one, many, many * 10):
        with statements(planner.app) as statements_of_one:
            scores(planner, *requests)
        sent.append(len(statements_of_one))
    assert sent[0] == sent[1] == sent[2] <= 6


NOWHERE = str(uuid.UUID(int=0))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            {"allocation_requests": [], "profiles": 1},
            "body: Additional properties are not allowed ('profiles' was unexpected)",
        ),
        (
            {"allocation_requests": [{"allocations": {NOWHERE: {"resources": {"VCPU": 0}}}}]},
            f"allocation_requests[0].allocations.{NOWHERE}.resources.VCPU: 0 is less than the minimum of 1",
        ),
        (
            {"allocation_requests": [{"allocations": {NOWHERE: {"resources": {"VCPU": 1}}}}]},
            f"allocation_requests[0].allocations.{NOWHERE}: There is no such resource provider.",
        ),
        ({"allocation_requests": [], "profile": "best"}, "profile: There is no profile 'best'; there are default, ai."),
    ],
)
def test_a_fault_is_told_with_its_path(planner: Api, body: object, sentence: str) -> None:
    assert sentence in detail_of(planner.post(PATH, body))


def test_an_unknown_class_is_told_with_its_path(planner: Api, cloud: Cloud) -> None:
    known, unknown = taking(cloud, cpu0={"VCPU": 1}), taking(cloud, cpu1={"CUSTOM_WAND": 1})
    answer = planner.post(PATH, {"allocation_requests": [known, unknown]})
    path = f"allocation_requests[1].allocations.{cloud.providers['cpu1']}.resources.CUSTOM_WAND"
    assert f"{path}: There is no such resource class." in detail_of(answer)


def test_a_request_of_two_trees_is_refused(planner: Api, cloud: Cloud) -> None:
    answer = planner.post(PATH, {"allocation_requests": [taking(cloud, cpu0={"VCPU": 1}, cpu1={"VCPU": 1})]})
    assert answer.status_code == 400
    assert "allocation_requests[0].allocations: The providers are in several trees" in answer.text
