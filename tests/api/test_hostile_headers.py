"""Invalid headers on creating requests: nothing is created and then answered with a 500."""

import json
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.conftest import Api, serving
from tests.claims import make_provider, new_uuid

TABLE = yaml.safe_load(Path(__file__).with_name("hostile_headers.yaml").read_text(encoding="utf-8"))
HEADERS = [*chain.from_iterable(TABLE["headers"])]
VALUES = [*chain.from_iterable(TABLE["values"]), "a" * 5000]
CREATING: dict[str, tuple[str, str, Any, str]] = TABLE["creating"]


@pytest.fixture(params=[True, False], ids=["behind a proxy", "alone"])
def api(sqlite_url: str, request: pytest.FixtureRequest) -> Iterator[Api]:
    with serving(sqlite_url, proxy_headers_parsing=request.param) as served:
        yield served


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
