"""CORS in front of an application that does not handle it."""

from collections.abc import Iterable
from typing import Any

from werkzeug.test import Client

from placement.api.middleware import wrap_with_cors
from placement.settings import DatabaseSettings, Settings, load

VALID = "http://valid.example.com"
OTHER = "http://other.example.com"
PREFLIGHT = {
    "origin": VALID,
    "access-control-request-method": "GET",
    "access-control-request-headers": "openstack-api-version",
}


def refusing(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Refuse every request."""
    start_response("401 Unauthorized", [("content-type", "application/json"), ("vary", "openstack-api-version")])
    return [b"{}"]


def settings(**options: str) -> Settings:
    variables = {f"OS_CORS__{name.upper()}": value for name, value in options.items()}
    return load((), {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://", **variables}, search=False)


def test_the_headers_of_openstack_clients_are_allowed_by_default() -> None:
    """tests/api/test_auth.py has a preflight as configured."""
    answer = Client(wrap_with_cors(refusing, settings(allowed_origin=VALID))).options("/any/path", headers=PREFLIGHT)
    assert (answer.status_code, answer.data) == (200, b"")
    assert answer.headers["access-control-allow-headers"] == "openstack-api-version"


def test_other_requests_are_marked_for_the_allowed_origin_alone() -> None:
    client = Client(wrap_with_cors(refusing, settings(allowed_origin=VALID)))
    answer = client.get("/", headers={"origin": VALID})
    assert answer.headers["access-control-allow-origin"] == VALID
    assert answer.headers["vary"] == "openstack-api-version,Origin"
    assert "access-control-allow-origin" not in client.get("/", headers={"origin": OTHER}).headers


def test_without_an_origin_nothing_stands_in_front() -> None:
    assert wrap_with_cors(refusing, settings(allow_headers="x")) is refusing
    assert wrap_with_cors(refusing, Settings(DatabaseSettings("sqlite://"))) is refusing
