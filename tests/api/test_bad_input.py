"""What is wrong gets Placement's error document, never a 5xx, however deep, large or malformed it is: refusals.yaml.

tests/survival/test_hostile_input.py sends whatever a client might.
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from gunicorn.http.errors import InvalidChunkSize

from placement.api.routes import ROUTES
from tests.api.conftest import Api
from tests.claims import error_of

REFUSALS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
UUID = "11111111-0000-4000-8000-000000000000"
PARTS = {"uuid": UUID, "consumer_uuid": UUID, "name": "CUSTOM_X", "resource_class": "VCPU"}
WRITES = sorted({(route.method, route.path) for route in ROUTES if route.method in {"POST", "PUT"}})
JSON = {"content-type": "application/json"}
PROVIDERS = "/resource_providers"

pytestmark = pytest.mark.any_database


def path_of(route_path: str) -> str:
    for name, value in PARTS.items():
        route_path = route_path.replace(f"<{name}>", value)
    assert "<" not in route_path
    return route_path


def check(response) -> None:
    assert response.status_code < 500, response.get_data(as_text=True)
    if response.status_code >= 400:
        (error,) = response.get_json()["errors"]
        assert error["status"] == response.status_code
        assert error["title"]
        assert error["detail"]
        assert error["request_id"] == response.headers["x-openstack-request-id"]


@pytest.mark.parametrize("row", REFUSALS, ids=[" ".join(row[:2]) for row in REFUSALS])
def test_requests_that_are_wrong_in_one_way(api: Api, row: list[Any]) -> None:
    method, path, status, code, options = *row, *(None, {})[len(row) - 3 :]
    response = api.request(method, path, **options)
    assert response.status_code == status
    if method != "HEAD":
        check(response)
        assert code in (None, response.json["errors"][0]["code"])


MANY_PARTS = {
    "/resource_providers?": "name=x&" * 2000,
    "/allocation_candidates?": "".join(f"resources_{i}=VCPU:1&" for i in range(300)) + "group_policy=none",
    "/allocation_candidates?resources_A=": ",".join(f"CUSTOM_{i}:1" for i in range(30)),
}


@pytest.mark.parametrize(("path", "query"), MANY_PARTS.items(), ids=[*MANY_PARTS])
def test_queries_of_too_many_parts_are_refused(api: Api, path: str, query: str) -> None:
    assert error_of(api.get(path + query))["code"] == "placement.undefined_code"


@pytest.mark.parametrize("opened", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [150, 1_000, 100_000])
def test_a_body_may_nest_as_deep_as_it_likes(api: Api, depth: int, opened: str) -> None:
    closed = "]" if opened == "[" else "}"
    for method, path in WRITES:
        for outer in ("", '{"pod": ', '{"requests": {"a": {"pod": '):
            text = outer + opened * depth + "1" + closed * depth + "}" * outer.count("{")
            check(api.request(method, path_of(path), data=text, headers=JSON))


@pytest.mark.parametrize("depth", [300, 1_000, 100_000])
def test_an_annotation_of_a_pod_may_nest_as_deep_as_it_likes(api: Api, depth: int) -> None:
    said = {"scheduling.koordinator.sh/device-allocate-hint": "[" * depth + "]" * depth}
    pod = {"metadata": {"annotations": said}, "spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}]}}
    response = api.post("/planner/v1/candidates", {"pod": pod})
    assert response.status_code == 400
    check(response)


class MalformedChunks:
    """The body as gunicorn hands it over when a chunk is malformed."""

    def read(self, _size: int) -> bytes:
        raise InvalidChunkSize(b"zz")


def test_a_body_in_malformed_chunks_is_refused(api: Api) -> None:
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": MalformedChunks()}
    response = api.request("POST", PROVIDERS, environ_overrides=chunked, headers=JSON)
    assert response.status_code == 400
    check(response)


def test_a_body_that_is_too_large_is_refused_unread(api: Api) -> None:
    api.app.config["MAX_CONTENT_LENGTH"] = 1000
    for headers in ({}, {"accept": "text/plain"}):
        response = api.post(PROVIDERS, {"name": "x" * 1000}, headers=headers)
        assert response.status_code == 413
        assert "larger than this server reads" in response.text


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_body_of_unknown_length_is_refused_if_it_goes_on_beyond_the_limit(api: Api, more: int) -> None:
    body = json.dumps({"name": "chunked"}).encode()
    api.app.config["MAX_CONTENT_LENGTH"] = len(body) + 100
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    stream = io.BytesIO(body + b" " * (100 + more))
    options = {"input_stream": stream, "environ_overrides": chunked, "content_type": "application/json"}
    response = api.request("POST", PROVIDERS, **options)
    assert response.status_code == (413 if more > 0 else 200), response.text
    check(response)


UUIDS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(10_001)]
MANY = {uuid: {"resources": {"VCPU": 1}} for uuid in UUIDS}
AGGREGATES, SCORES, HEADROOM = f"{PROVIDERS}/{UUID}/aggregates", "/planner/v1/scores", "/planner/v1/headroom"
REQUEST = {"allocations": {UUID: {"resources": {"VCPU": 1}}}}
A_LIST, AN_OBJECT = "A list of 10001 items is too long, the limit is 10000", "An object of 10001 keys is too large"
A_REQUEST = {"requests": {"a": "resources=VCPU:1"}}
TOO_MANY = [
    ("PUT", AGGREGATES, "1.39", {"aggregates": UUIDS, "resource_provider_generation": 1}, A_LIST),
    ("PUT", AGGREGATES, "1.1", UUIDS, A_LIST),
    ("POST", SCORES, "1.39", {"allocation_requests": [{"allocations": MANY}]}, AN_OBJECT),
    ("POST", SCORES, "1.39", {"allocation_requests": [REQUEST] * 10_001}, A_LIST),
    ("POST", "/allocations", "1.39", {uuid: {} for uuid in UUIDS}, AN_OBJECT),
    ("POST", HEADROOM, "1.39", {**A_REQUEST, "with": [{"like": UUID, "count": 1000}] * 11}, ""),
    ("POST", HEADROOM, "1.39", {**A_REQUEST, "with": [{"like": UUID, "count": 1}] * 101}, ""),
    (
        "POST",
        "/planner/v1/candidates",
        "1.39",
        {"paths": {f"numa/{n}/VCPU": n + 1 for n in range(300)}},
        "more than 250",
    ),
]


@pytest.mark.parametrize(("method", "path", "version", "body", "sentence"), TOO_MANY, ids=range(len(TOO_MANY)))
def test_what_is_too_much_is_refused_and_changes_nothing(
    api: Api, method: str, path: str, version: str, body: object, sentence: str
) -> None:
    api.post(PROVIDERS, {"name": "known", "uuid": UUID})
    assert api.put(AGGREGATES, {"aggregates": UUIDS[1:], "resource_provider_generation": 0}).status_code == 200
    response = api.request(method, path, json=body, version=version)
    assert (response.status_code, sentence in response.text) == (400, True), response.text
    assert len(api.get(AGGREGATES).get_json()["aggregates"]) == 10_000


@pytest.mark.parametrize("accept", ["*", "json", "*; q=.2", "text/html, json", "application/json\xe9", ";"])
def test_a_malformed_accept_header_is_ignored(api: Api, accept: str) -> None:
    """As by the reference: such clients get JSON, errors included."""
    assert api.get("/traits", headers={"accept": accept}).mimetype == "application/json"
    assert api.get("/nothing", headers={"accept": accept}).get_json()["errors"][0]["status"] == 404


@pytest.mark.parametrize("accept", ["text/html", "text/html,", "text/*;q=1", "application/json;q=0, text/plain"])
def test_a_client_that_does_not_accept_json_is_told_so(api: Api, accept: str) -> None:
    assert api.get("/traits", headers={"accept": accept}).status_code == 406


@pytest.mark.parametrize(("asked", "status"), [("placement x", 400), ("placement 1.x", 400), ("placement 9.99", 200)])
def test_what_is_no_microversion_is_refused_by_the_planner_too(api: Api, asked: str, status: int) -> None:
    assert api.get("/planner/v1", headers={"openstack-api-version": asked}).status_code == status
