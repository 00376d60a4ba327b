"""Profiles in requests, and profiles that filter candidates."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Profile, Proportional
from placement.app import create_app
from placement.settings import PlannerSettings
from placement.settings.loading import load
from tests.api.conftest import Api
from tests.claims import ask, detail_of, make_provider, new_uuid
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, provider

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


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ({"fit": {"resources": {"VCPU": {"type": "Most"}}}}, "expected MostAllocated or LeastAllocated, found 'Most'"),
        ({"fit": {"weight": -1}}, "fit.weight: expected a number from 0 up, found '-1'"),
        ({"fit": {"weight": 1e308}}, "fit.weight: expected a number from 0 up, to 1000000000000000 at most"),
        ({"fragmentation": {}}, "expected one of the keys fit, sra, proportional, compactness"),
        ("none", "There is no profile 'none'"),
        (7, "7 is neither the name of a profile nor a profile"),
    ],
)
def test_a_profile_in_the_request_is_checked_like_the_file(api: Api, profile: object, sentence: str) -> None:
    assert sentence in detail_of(api.post(CANDIDATES, {**ONE_CPU, "profile": profile}))


def test_who_may_plan_may_not_always_bring_a_profile(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text('"placement:planner:inline_profile": "!"\n')
    lines = ["[placement_database]", f"connection = {sqlite_url}", "[api]", "auth_strategy = noauth2"]
    (tmp_path / "placement.conf").write_text("\n".join(lines))
    api = Api(create_app(load([str(tmp_path / "placement.conf")], {}, search=False)))
    make_provider(api, VCPU=2)
    assert api.post(CANDIDATES, {**ONE_CPU, "profile": FIT}).status_code == 403
    assert api.post(CANDIDATES, {**ONE_CPU, "profile": "default"}).status_code == 200


@pytest.fixture
def reserving(app: Flask) -> Api:
    """A server whose profile excludes trees that would have too few CPUs left for their GPUs."""
    strategy = Profile(proportional=Proportional({"PGPU": {"VCPU": 8}}, mode="filter"))
    planner = replace(PlannerSettings(), profiles={"default": RankingProfile(strategy=strategy)})
    return Api(create_app(replace(app.extensions["placement"].settings, planner=planner)))


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
        provider(reserving, f"nic{number}", root, {"SRIOV_NET_VF": {"total": 4}}, [])
    for count in (1, 2):
        group = {"resources": {"SRIOV_NET_VF": 1}, "count": count, "in_tree": root}
        body = {"groups": {"_A": group, "": {"resources": {"VCPU": 1}}}}
        assert ask(reserving, "POST", CANDIDATES, body=body)["allocation_requests"] == []
        assert reserving.post(CLAIMS, {**body, "consumer": consumer()}).status_code == 409
        group["in_tree"] = new_uuid()
        assert ask(reserving, "POST", CANDIDATES, body=body)["allocation_requests"] == []
