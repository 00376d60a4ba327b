"""GET /planner/v1 and its profiles, and what applies to every resource of the planner."""

import re

import pytest
from flask import Flask

from placement.api.routes import ROUTES
from placement.api.routing import is_planner_path
from placement.settings import PlannerApiSettings, RankingSettings
from tests.api.conftest import Api, planner_of, with_settings
from tests.claims import detail_of

pytestmark = pytest.mark.any_database

EVERYTHING = """
levels: {socket: CUSTOM_SOCKET, numa: HW_NUMA_ROOT}
exclusive: {numa: CUSTOM_NUMA_LOCK, device: CUSTOM_DEVICE_LOCK}
default_profile: ai
profiles:
  plain: {}
  ai:
    fit: {weight: 2.5, resources: {CUSTOM_GPU_*: {type: MostAllocated, weight: 0.5}, VCPU: {type: LeastAllocated}}}
    sra: {resources: {PGPU: 0.1, CUSTOM_GPU_*: 2}, mode: upstream}
    proportional: {reserve: {PGPU: {VCPU: 8, MEMORY_MB: 0.5}}, exempt: own, mode: filter}
    compactness: {weight: 3}
aggregates:
  zone: {eu-1: 3c9a1f0e-5b7d-4e21-9a63-0d4f8b1c2e01}
  rack: {b12: a4c6e8f0-1b3d-4f57-9a7c-5e7f9b1d3c04}
"""


def test_the_planner_says_what_it_serves_and_whether_it_ranks(app: Flask) -> None:
    answer = with_settings(app, ranking=RankingSettings(enabled=False, near_equal=2.5)).get("/planner/v1")
    assert answer.status_code == 200
    assert answer.json["version"] == "v1"
    assert answer.json["ranking"] == {"enabled": False, "near_equal": 2.5, "default_profile": "default"}
    assert answer.json["resources"]["/planner/v1/profiles"] == ["GET"]


@pytest.mark.parametrize("planner", [EVERYTHING, ""], ids=["everything", "what is built in"])
def test_what_is_listed_is_a_planner_file_that_says_the_same(app: Flask, planner: str) -> None:
    listed = with_settings(app, planner_yaml=planner).get("/planner/v1/profiles").text
    assert planner_of(listed) == planner_of(planner)


@pytest.mark.parametrize("path", ["/planner/v1", "/planner/v1/profiles"])
def test_an_answer_is_the_same_at_every_microversion(api: Api, path: str) -> None:
    answers = [api.get(path, version=version) for version in ("1.0", "1.14", "1.39", "latest")]
    assert {(answer.status_code, answer.data) for answer in answers} == {(200, answers[0].data)}
    assert {frozenset(answer.headers.keys()) for answer in answers} == {frozenset(answers[0].headers.keys())}


FOR_READERS = {"/planner/v1/fair-share", "/planner/v1/journal"}
PLANNER = [
    (route.method, re.sub("<.*?>", "4e8e5957-649f-477b-9e5b-f1f75b21c03c", route.path), route.answers_json)
    for route in ROUTES
    if is_planner_path(route.path)
]


@pytest.mark.parametrize(("method", "path", "answers"), PLANNER, ids=[f"{route[0]} {route[1]}" for route in PLANNER])
def test_every_resource_is_for_administrators_and_services_that_take_json(
    app: Flask, method: str, path: str, answers: bool
) -> None:
    api, body = Api(app), {} if method == "GET" else {"json": {}}

    def status(roles: str) -> int:
        headers = {"x-auth-token": "user:project", "x-roles": roles}
        return api.request(method, path, headers=headers, **body).status_code

    assert app.test_client().open(path, method=method).status_code == 401
    assert status("member") == 403
    assert (status("member,reader") == 403) == (path not in FOR_READERS)
    assert 403 not in {status("admin"), status("service")}
    assert api.request("PATCH", path).status_code == 405
    assert api.request(method, path, headers={"accept": "image/png"}, **body).status_code == (406 if answers else 404)
    off = with_settings(app, planner_api=PlannerApiSettings(enabled=False)).request(method, path, **body)
    assert detail_of(off, 404) == "The resource could not be found."


def test_the_version_document_lists_nothing_of_the_planner(api: Api) -> None:
    assert "planner" not in api.get("/").text


def test_other_paths_below_planner_are_unknown(api: Api) -> None:
    for path in ("/planner", "/planner/v1/", "/planner/v1/x", "/planner/v2"):
        assert api.get(path).status_code == 404
