"""Whatever is sent gets a proper answer or Placement's error document, never a 5xx, and a refusal changes nothing."""

import io
import json

import pytest
from gunicorn.http.errors import InvalidChunkSize
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.api.routes import ROUTES
from tests.clouds import provider
from tests.examples import examples
from tests.stored_clouds import stored

UUID = "11111111-0000-4000-8000-000000000000"
PARTS = {"uuid": UUID, "consumer_uuid": UUID, "name": "CUSTOM_X", "resource_class": "VCPU"}
WRITES = sorted({(route.method, route.path) for route in ROUTES if route.method in {"POST", "PUT"}})
READS = sorted({route.path for route in ROUTES if route.method == "GET"})

NASTY = [
    None,
    True,
    -1,
    0,
    1.5,
    2**31,
    2**63,
    10**20,
    1e400,
    "",
    "\0",
    "a" * 1000,
    "\N{PILE OF POO}",
    "' OR 1=1 --",
    [],
    [[]],
    {},
    {"": {}},
    {"\0": 1},
]
VALID = {
    "uuid": UUID,
    "name": "x",
    "parent_provider_uuid": UUID,
    "resource_provider_generation": 0,
    "resource_class": "VCPU",
    "total": 8,
    "reserved": 0,
    "allocation_ratio": 1.0,
    "aggregates": [UUID],
    "traits": ["HW_NUMA_ROOT"],
    "inventories": {"VCPU": {"total": 8}},
    "allocations": {UUID: {"resources": {"VCPU": 1}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
    "mappings": {"": [UUID]},
    UUID: {"allocations": {}},
}

QUERY_KEYS = ["name", "uuid", "member_of", "in_tree", "resources", "required", "limit", "resources_A", "same_subtree"]
QUERY_KEYS += ["group_policy", "root_required", "project_id", "user_id", "consumer_type", "associated", "bogus"]

leaves = st.sampled_from(NASTY) | st.text(max_size=5) | st.integers() | st.floats()
junk = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(VALID)) | st.text(max_size=3), inner)
    ),
    max_leaves=6,
)
nearly_valid = st.dictionaries(st.sampled_from(list(VALID)), st.none(), min_size=1).flatmap(
    lambda keys: st.fixed_dictionaries({key: st.just(VALID[key]) | junk for key in keys})
)
versions = st.integers(0, 39).map(lambda minor: f"1.{minor}")
unhurried = settings(suppress_health_check=list(HealthCheck))

pytestmark = pytest.mark.any_database


def path_of(route_path: str) -> str:
    for name, value in PARTS.items():
        route_path = route_path.replace(f"<{name}>", value)
    assert "<" not in route_path
    return route_path


def state(api) -> list:
    """Return everything that a client can see of the cloud."""
    shown = [f"/resource_providers/{UUID}{part}" for part in ("", "/inventories", "/traits", "/aggregates", "/usages")]
    return [api.get(path).get_json() for path in (*shown, "/resource_providers", "/traits", "/resource_classes")]


def check(response) -> None:
    assert response.status_code < 500, response.get_data(as_text=True)
    if response.status_code >= 400:
        (error,) = response.get_json()["errors"]
        assert error["status"] == response.status_code
        assert error["title"]
        assert error["detail"]
        assert error["request_id"] == response.headers["x-openstack-request-id"]


@pytest.fixture
def cloud(api):
    api.post("/resource_providers", {"name": "known", "uuid": UUID})
    return stored(api.app, provider("host", provider("numa", VCPU=8), DISK_GB=10))


def test_bodies_of_any_sort_are_answered(api, cloud):
    @examples(19, unhurried)
    @given(st.sampled_from(WRITES), junk | nearly_valid, versions)
    def send(route, body, version):
        method, path = route
        before = state(api)
        text = json.dumps(body)
        response = api.request(
            method, path_of(path), version=version, data=text, headers={"content-type": "application/json"}
        )
        check(response)
        if response.status_code >= 400:
            assert state(api) == before

    send()


def test_bytes_of_any_sort_are_answered(api, cloud):
    @examples(19, unhurried)
    @given(st.sampled_from(WRITES), st.binary(max_size=30), versions)
    def send(route, data, version):
        headers = {"content-type": "application/json"}
        check(api.request(route[0], path_of(route[1]), version=version, data=data, headers=headers))

    send()


def test_query_strings_of_any_sort_are_answered(api, cloud):
    keys = st.sampled_from(QUERY_KEYS)
    values = st.text(max_size=8) | st.sampled_from(
        ["VCPU:1", "VCPU:" + "9" * 30, "in:", "!", "!in:" + UUID, UUID, "_A", "%00", "true", "none", "in:HW_NUMA_ROOT"]
    )

    @examples(40, unhurried)
    @given(st.sampled_from(READS), st.lists(st.tuples(keys, values), max_size=4), versions)
    def send(path, query, version):
        check(api.get(path_of(path), version=version, query_string=query))

    send()


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("GET", "/resource_providers/", {}, 404),
        ("GET", "/resource_providers//inventories", {}, 404),
        ("GET", f"/resource_providers/{UUID}%00", {}, 404),
        ("GET", "/traits/%ff", {}, 404),
        ("PATCH", "/resource_providers", {}, 405),
        ("HEAD", "/resource_providers", {}, 405),
        ("OPTIONS", "/", {}, 405),
        ("BREW", "/", {}, 405),
        ("POST", "/resource_providers", {"data": "{}", "headers": {"content-type": "text/plain"}}, 415),
        ("POST", "/resource_providers", {"data": "{", "headers": {"content-type": "application/json"}}, 400),
        ("POST", "/resource_providers", {"data": b"\xff", "headers": {"content-type": "application/json"}}, 400),
        ("GET", "/resource_providers?name=%ff", {}, 400),
        ("GET", "/resource_providers?" + "&".join(["name=x"] * 2000), {}, 400),
        ("GET", "/resource_providers?bogus=1", {}, 400),
    ],
)
def test_requests_that_are_wrong_in_one_way(api, cloud, method, path, options, status):
    response = api.request(method, path, **options)
    assert response.status_code == status
    if method != "HEAD":
        check(response)


def test_a_body_that_is_too_large_is_refused_unread(app, api, cloud):
    app.config["MAX_CONTENT_LENGTH"] = 1000
    body = {"name": "x" * 1000}
    for headers in ({}, {"accept": "text/plain"}):
        response = api.request("POST", "/resource_providers", json=body, headers=headers)
        assert response.status_code == 413
        assert "larger than this server reads" in response.text


@pytest.mark.parametrize("opened", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [150, 1_000, 100_000])
def test_a_body_may_nest_as_deep_as_it_likes(api, depth: int, opened: str):
    closed = "]" if opened == "[" else "}"
    for method, path in WRITES:
        for outer in ("", '{"pod": ', '{"requests": {"a": {"pod": '):
            text = outer + opened * depth + "1" + closed * depth + "}" * outer.count("{")
            check(api.request(method, path_of(path), data=text, headers={"content-type": "application/json"}))


def test_an_annotation_of_a_pod_may_nest_as_deep_as_it_likes(api):
    for depth in (300, 1_000, 100_000):
        said = {"scheduling.koordinator.sh/device-allocate-hint": "[" * depth + "]" * depth}
        pod = {"metadata": {"annotations": said}, "spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}]}}
        response = api.post("/planner/v1/candidates", {"pod": pod})
        assert response.status_code == 400
        check(response)


class MalformedChunks:
    """The body as gunicorn hands it over when a chunk is malformed."""

    def read(self, _size: int) -> bytes:
        raise InvalidChunkSize(b"zz")


def test_a_body_in_malformed_chunks_is_refused(api):
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": MalformedChunks()}
    response = api.request(
        "POST", "/resource_providers", environ_overrides=chunked, headers={"content-type": "application/json"}
    )
    assert response.status_code == 400
    check(response)


def test_a_list_beyond_its_limit_is_refused_and_changes_nothing(api, cloud):
    uuids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(10_001)]
    path = f"/resource_providers/{UUID}/aggregates"
    assert api.put(path, {"aggregates": uuids[1:], "resource_provider_generation": 0}).status_code == 200
    for version, body in (("1.39", {"aggregates": uuids, "resource_provider_generation": 1}), ("1.1", uuids)):
        response = api.put(path, body, version=version)
        assert response.status_code == 400
        assert "A list of 10001 items is too long, the limit is 10000" in response.text
    assert len(api.get(path).get_json()["aggregates"]) == 10_000


def test_an_object_beyond_its_limit_is_refused(api, cloud):
    uuids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(10_001)]
    taken = {key: {"resources": {"VCPU": 1}} for key in uuids}
    for path, body in (
        ("/planner/v1/scores", {"allocation_requests": [{"allocations": taken}]}),
        ("/allocations", {key: {} for key in uuids}),
    ):
        response = api.post(path, body)
        assert response.status_code == 400
        assert "An object of 10001 keys is too large, the limit is 10000" in response.text


def test_as_many_scores_are_asked_for_as_a_list_may_have(api, cloud):
    request = {"allocations": {UUID: {"resources": {"VCPU": 1}}}}
    response = api.post("/planner/v1/scores", {"allocation_requests": [request] * 10_001})
    assert response.status_code == 400
    assert "A list of 10001 items is too long" in response.text


def test_hypothetical_trees_are_limited_in_all(api, cloud):
    for more in ([{"like": UUID, "count": 1000}] * 11, [{"like": UUID, "count": 1}] * 101):
        response = api.post("/planner/v1/headroom", {"requests": {"a": "resources=VCPU:1"}, "with": more})
        assert response.status_code == 400
        check(response)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_body_of_unknown_length_is_refused_if_it_goes_on_beyond_the_limit(app, api, cloud, more: int):
    body = json.dumps({"name": "chunked"}).encode()
    app.config["MAX_CONTENT_LENGTH"] = len(body) + 100
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    stream = io.BytesIO(body + b" " * (100 + more))
    options = {"input_stream": stream, "environ_overrides": chunked, "content_type": "application/json"}
    response = api.request("POST", "/resource_providers", **options)
    assert response.status_code == (413 if more > 0 else 200), response.text
    check(response)


@pytest.mark.parametrize("accept", ["*", "json", "*; q=.2", "text/html, json", "application/json\xe9", ";"])
def test_a_malformed_accept_header_is_ignored(api, accept: str):
    """As by the reference: such clients get JSON, errors included."""
    assert api.get("/traits", headers={"accept": accept}).mimetype == "application/json"
    assert api.get("/nothing", headers={"accept": accept}).get_json()["errors"][0]["status"] == 404


@pytest.mark.parametrize("accept", ["text/html", "text/html,", "text/*;q=1", "application/json;q=0, text/plain"])
def test_a_client_that_does_not_accept_json_is_told_so(api, accept: str):
    assert api.get("/traits", headers={"accept": accept}).status_code == 406
