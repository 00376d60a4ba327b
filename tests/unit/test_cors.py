"""CORS in front of an application that does not handle it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from placement.api.middleware import wrap_with_cors
from placement.errors import ConfigurationError
from placement.settings import DatabaseSettings, Settings, load
from tests.unit.auth.test_strategy import output_of

VALID = "http://valid.example.com"
OTHER = "http://other.example.com"
PREFLIGHT = {
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


@pytest.fixture
def client() -> Client:
    return Client(wrap_with_cors(refusing, settings(allowed_origin=VALID, allow_headers="openstack-api-version")))


def preflight(client: Client, origin: str) -> TestResponse:
    return client.options("/any/path", headers={"origin": origin, **PREFLIGHT})


def test_a_preflight_is_answered_before_anything_else(client: Client) -> None:
    answer = preflight(client, VALID)
    assert (answer.status_code, answer.data) == (200, b"")
    assert answer.headers["access-control-allow-origin"] == VALID
    assert answer.headers["access-control-allow-headers"] == "openstack-api-version"


def test_other_requests_are_marked_for_the_allowed_origin_alone(client: Client) -> None:
    assert client.get("/", headers={"origin": VALID}).headers["access-control-allow-origin"] == VALID
    assert "access-control-allow-origin" not in client.get("/", headers={"origin": OTHER}).headers
    assert client.get("/", headers={"origin": VALID}).headers["vary"] == "openstack-api-version,Origin"


def test_the_headers_of_openstack_clients_are_allowed_by_default() -> None:
    client = Client(wrap_with_cors(refusing, settings(allowed_origin=VALID)))
    asked = PREFLIGHT | {"access-control-request-headers": "x-auth-token,openstack-api-version"}
    answer = client.options("/", headers={"origin": VALID, **asked})
    assert answer.headers["access-control-allow-headers"] == "x-auth-token,openstack-api-version"


def test_without_an_origin_nothing_stands_in_front() -> None:
    assert wrap_with_cors(refusing, settings(allow_headers="x")) is refusing
    assert wrap_with_cors(refusing, Settings(DatabaseSettings("sqlite://"))) is refusing


MISSING = """
from placement.api.middleware import wrap_with_cors
from placement.errors import ConfigurationError
from placement.settings import load
try:
    wrap_with_cors(None, load(search=False))
except ConfigurationError as error:
    print(error)
"""


def test_a_missing_extra_stops_the_start_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "oslo_middleware.py").write_text("raise ModuleNotFoundError('No module', name='oslo_middleware')")
    said = output_of(MISSING, tmp_path, OS_PLACEMENT_DATABASE__CONNECTION="a", OS_CORS__ALLOWED_ORIGIN=VALID)
    assert "pip install 'placement-server[cors]'" in said
    assert "\n" not in said


def test_values_of_a_wrong_type_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_age"):
        wrap_with_cors(refusing, settings(allowed_origin=VALID, max_age="soon"))
