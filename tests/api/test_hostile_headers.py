"""Invalid headers on creating requests: nothing is created and then answered with a 500."""

import dataclasses
import random
from collections.abc import Iterator

import pytest

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from tests.api.conftest import Api
from tests.claims import entry, held, make_provider, new_uuid

HEADERS = (
    "Host", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Proto", "X-Forwarded-For",
    "Forwarded", "X-Script-Name", "Accept", "Accept-Encoding", "Accept-Language", "X-Openstack-Request-Id", "Origin",
    "User-Agent", "Referer", "If-None-Match", "Cookie",
)  # fmt: skip
VALUES = (
    "", " ", ",", "x", "/", "//", "//evil.example.com", "placement", "/placement", "/plac\xe9ment", "/%", "/%zz",
    "/a b",
    "host:", "host:0", "host:99999", "host:-1", "host:port", "host:80:80", "http://host", "[::1", "[::1]:x", "::1",
    "[::1]:8778", "under_score:8778", "a..b", "\xe9", "\xff\xfe", "\x7f", "%00", "'\"<>", '"quoted"', '"a,b', "a, b:c",
    "https", "javascript", "http:", "gzip;q=x", "text/html", "text/html;q=0.5, */*;q=z", "for=1;host=x:y;proto=z",
    "req-1",
    "a" * 5000,
)  # fmt: skip


@pytest.fixture(params=[True, False], ids=["behind a proxy", "alone"])
def api(sqlite_url: str, request: pytest.FixtureRequest) -> Iterator[Api]:
    settings = Settings(database=DatabaseSettings(connection=sqlite_url), auth_strategy="noauth2")
    app = create_app(dataclasses.replace(settings, proxy_headers_parsing=request.param))
    yield Api(app)
    app.extensions["placement"].database.dispose()


Made = tuple[int, bool]
"""The status of an answer, and whether the object exists."""


def is_there(api: Api, path: str) -> bool:
    return api.get(path).status_code < 300


def provider(api: Api, number: int, headers: dict[str, str]) -> Made:
    uuid = new_uuid()
    answer = api.post("/resource_providers", {"name": uuid, "uuid": uuid}, headers=headers)
    return answer.status_code, is_there(api, f"/resource_providers/{uuid}")


def resource_class(api: Api, number: int, headers: dict[str, str]) -> Made:
    answer = api.post("/resource_classes", {"name": f"CUSTOM_C{number}"}, headers=headers)
    return answer.status_code, is_there(api, f"/resource_classes/CUSTOM_C{number}")


def class_by_name(api: Api, number: int, headers: dict[str, str]) -> Made:
    path = f"/resource_classes/CUSTOM_D{number}"
    return api.put(path, headers=headers).status_code, is_there(api, path)


def trait(api: Api, number: int, headers: dict[str, str]) -> Made:
    path = f"/traits/CUSTOM_T{number}"
    return api.put(path, headers=headers).status_code, is_there(api, path)


def inventory(api: Api, number: int, headers: dict[str, str]) -> Made:
    path = f"/resource_providers/{make_provider(api)}/inventories"
    body = {"resource_provider_generation": 0, "resource_class": "VCPU", "total": 4}
    return api.post(path, body, headers=headers).status_code, is_there(api, f"{path}/VCPU")


def planned_claim(api: Api, number: int, headers: dict[str, str]) -> Made:
    name, consumer = f"CUSTOM_PLANNED{number}", new_uuid()
    assert api.put(f"/resource_classes/{name}").status_code == 201
    make_provider(api, **{name: 1})
    body = {"groups": {"": {"resources": {name: 1}}}, "consumer": consumer_of(consumer)}
    return api.post("/planner/v1/claims", body, headers=headers).status_code, bool(held(api, consumer))


def consumer_of(uuid: str) -> dict[str, object]:
    asked = entry({})
    return {"uuid": uuid, **{name: asked[name] for name in ("project_id", "user_id", "consumer_type")}}


CREATING = (provider, resource_class, class_by_name, trait, inventory, planned_claim)


@pytest.mark.any_database
@pytest.mark.parametrize("create", CREATING)
def test_what_is_refused_was_not_made(api: Api, create, pytestconfig: pytest.Config):
    choice = random.Random(pytestconfig.getoption("--seed"))
    for number in range(300 if pytestconfig.getoption("--deep") else 25):
        headers = {name: choice.choice(VALUES) for name in choice.sample(HEADERS, choice.randint(1, 4))}
        status, is_made = create(api, number, headers)
        assert status in (200, 201, 400, 406), headers
        assert is_made == (status < 300), headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "host:port"),
        ("X-Forwarded-Host", "host:port"),
        ("X-Forwarded-Host", "host:99999"),
        ("X-Forwarded-Port", "x"),
        ("X-Forwarded-Prefix", "placement"),
        ("X-Forwarded-Prefix", "//elsewhere.example.com"),
        ("X-Forwarded-Proto", "javascript"),
    ],
)
def test_what_cannot_stand_in_a_url_is_ignored_or_refused(api: Api, name: str, value: str):
    body = {"name": "compute1", "uuid": new_uuid()}
    answer = api.post("/resource_providers", body, headers={name: value})
    if name == "Host":
        assert answer.status_code == 400
    else:
        assert answer.headers["location"] == f"http://localhost/resource_providers/{body['uuid']}"


def test_a_host_may_have_an_underscore(api: Api):
    """As names of containers may, which nginx sends for an upstream."""
    body = {"name": "compute1", "uuid": new_uuid()}
    answer = api.post("/resource_providers", body, headers={"Host": "placement_api:8778"})
    assert answer.headers["location"] == f"http://placement_api:8778/resource_providers/{body['uuid']}"
