"""Invalid headers on creating requests: nothing is created and then answered with a 500."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import Api, serving
from tests.claims import make_provider, new_uuid

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
    with serving(sqlite_url, proxy_headers_parsing=request.param) as served:
        yield served


PLANNED = {"groups": {"": {"resources": {"VCPU": 1}}}}
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
STOCK = {"resource_provider_generation": 0, "resource_class": "VCPU", "total": 4}
# What creates something: method, path and body, and where it is shown. {uuid} is new each time.
CREATING: dict[str, tuple[str, str, Any, str]] = {
    "provider": (
        "POST", "/resource_providers", {"name": "{uuid}", "uuid": "{uuid}"}, "/resource_providers/{uuid}"
    ),
    "resource class": ("POST", "/resource_classes", {"name": "CUSTOM_{name}"}, "/resource_classes/CUSTOM_{name}"),
    "class by name": ("PUT", "/resource_classes/CUSTOM_{name}", None, "/resource_classes/CUSTOM_{name}"),
    "trait": ("PUT", "/traits/CUSTOM_{name}", None, "/traits/CUSTOM_{name}"),
    "inventory": (
        "POST", "/resource_providers/{empty}/inventories", STOCK, "/resource_providers/{empty}/inventories/VCPU"
    ),
    "planned claim": (
        "POST", "/planner/v1/claims", {**PLANNED, "consumer": {"uuid": "{uuid}", **OWNER}}, "/allocations/{uuid}"
    ),
}  # fmt: skip


@pytest.mark.any_database
@pytest.mark.parametrize("kind", CREATING)
def test_what_is_refused_was_not_made(api: Api, kind: str, pytestconfig: pytest.Config):
    choice = random.Random(pytestconfig.getoption("--seed"))
    make_provider(api, VCPU=1000)
    for _ in range(300 if pytestconfig.getoption("--deep") else 25):
        headers = {name: choice.choice(VALUES) for name in choice.sample(HEADERS, choice.randint(1, 4))}
        uuid = new_uuid()
        text = json.dumps(CREATING[kind]).replace("{uuid}", uuid).replace("{name}", uuid.upper().replace("-", "_"))
        method, path, body, shown = json.loads(
            text.replace("{empty}", make_provider(api)) if "{empty}" in text else text
        )
        answer = api.request(method, path, **({} if body is None else {"json": body}), headers=headers)
        assert answer.status_code in (200, 201, 400, 406), headers
        seen = api.get(shown)
        is_made = seen.status_code < 300 and (seen.get_json(silent=True) or {}).get("allocations") != {}
        assert is_made == (answer.status_code < 300), headers


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


def test_the_location_is_the_one_that_the_client_can_follow(api: Api, request: pytest.FixtureRequest):
    """Behind a proxy, that is the address that clients see; forwarded headers are trusted only if configured."""
    body = {"name": "compute1", "uuid": new_uuid()}
    forwarded = {
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "cloud.example.com",
        "X-Forwarded-Prefix": "/placement",
        "X-Forwarded-For": "192.0.2.7",
    }
    answer = api.post("/resource_providers", body, headers=forwarded)
    is_behind_a_proxy = request.node.callspec.params["api"]
    seen = "https://cloud.example.com/placement" if is_behind_a_proxy else "http://localhost"
    assert (answer.status_code, answer.headers["location"]) == (200, f"{seen}/resource_providers/{body['uuid']}")


def test_a_host_may_have_an_underscore(api: Api):
    """As names of containers may, which nginx sends for an upstream."""
    body = {"name": "compute1", "uuid": new_uuid()}
    answer = api.post("/resource_providers", body, headers={"Host": "placement_api:8778"})
    assert answer.headers["location"] == f"http://placement_api:8778/resource_providers/{body['uuid']}"
