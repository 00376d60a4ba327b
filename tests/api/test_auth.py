"""Authentication and policy of the whole application, strategy by strategy."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from werkzeug.test import Client, TestResponse

from placement.app import create_app
from placement.settings import load
from tests.conftest import Configured
from tests.fakes.keystone import Issued, Keystone

Start = Callable[..., Client]


@pytest.fixture
def start(configured: Configured) -> Start:
    """Start an application with these sections of a placement.conf."""
    return lambda **sections: Client(configured(**sections))


NOAUTH2 = {"auth_strategy": "noauth2"}


def get(client: Client, path: str, **headers: str) -> TestResponse:
    """Send a GET; the names of headers are written with underscores."""
    return client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def error_of(response: TestResponse) -> dict[str, Any]:
    """Return the only error of an answer in the API's own format."""
    assert response.content_type == "application/json"
    (error,) = response.json["errors"]
    assert error["status"] == response.status_code
    assert error["request_id"] == response.headers["x-openstack-request-id"]
    return error


def test_without_a_token_the_answer_is_401_in_the_shape_of_every_error(start: Start) -> None:
    """The reference answers without an ``errors`` list, which crashes the openstack command."""
    response = get(start(api=NOAUTH2), "/traits", openstack_api_version="placement 1.39")
    assert response.status_code == 401
    assert error_of(response)["title"] == "Unauthorized"


def test_the_token_comes_before_version_path_and_method(start: Start) -> None:
    client = start(api=NOAUTH2)
    assert get(client, "/traits", openstack_api_version="placement 9.9").status_code == 401
    assert get(client, "/no/such/path").status_code == 401
    assert client.open("/traits", method="PATCH").status_code == 401


@pytest.mark.parametrize("path", ["/", "", "/healthcheck", "/readycheck"])
@pytest.mark.parametrize("strategy", ["noauth2", "http_basic", "keystone"])
def test_discovery_and_health_need_no_identity(start: Start, tmp_path: Path, strategy: str, path: str) -> None:
    (tmp_path / "htpasswd").touch()
    client = start(api={"auth_strategy": strategy}, http_basic={"user_file": str(tmp_path / "htpasswd")})
    assert client.get(path).status_code == 200
    mounted = client.get(path, base_url="http://localhost/placement", environ_overrides={"PATH_INFO": path})
    assert mounted.status_code == 200


def test_a_role_decides_and_the_refusal_names_the_rule(start: Start) -> None:
    client = start(api=NOAUTH2)
    assert get(client, "/resource_providers", x_auth_token="admin").status_code == 200
    assert get(client, "/resource_providers", x_auth_token="alice", x_roles="service").status_code == 200
    refused = get(client, "/resource_providers", x_auth_token="alice", x_roles="member,reader")
    assert refused.status_code == 403
    assert "placement:resource_providers:list" in error_of(refused)["detail"]


@pytest.fixture
def implicit(tmp_path: Path) -> Iterator[Client]:
    """An application without any configuration, as ``placement serve`` starts it."""
    database = {"connection": f"sqlite:///{tmp_path}/placement.sqlite", "sync_on_startup": True}
    settings = load((), {}, search=False)
    app = create_app(replace(settings, database=replace(settings.database, **database)))
    yield Client(app)
    app.extensions["placement"].database.dispose()


def test_unconfigured_it_serves_this_machine_and_refuses_others(implicit: Client) -> None:
    def asked_from(address: str, **headers: str) -> TestResponse:
        sent = {"x-auth-token": "admin", **headers}
        return implicit.get("/resource_providers", headers=sent, environ_overrides={"REMOTE_ADDR": address})

    assert asked_from("127.0.0.1").status_code == 200
    assert asked_from("").status_code == 200
    assert asked_from("192.0.2.1").status_code == 403
    assert asked_from("127.0.0.1", Forwarded="for=192.0.2.1").status_code == 403
    assert "auth_strategy" in error_of(asked_from("192.0.2.1"))["detail"]


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def test_http_basic_lets_users_in_with_the_roles_that_are_configured(start: Start, tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text(f"nova:{hashed}\nguest:{hashed}\n")
    section = {"user_file": str(tmp_path / "htpasswd"), "user_roles": "nova:admin"}
    client = start(api={"auth_strategy": "http_basic"}, http_basic=section)
    path = "/resource_providers"
    assert get(client, path, authorization=basic("nova", "secret")).status_code == 200
    assert get(client, path, authorization=basic("guest", "secret"), x_roles="admin").status_code == 403
    refused = get(client, path, authorization=basic("nova", "wrong"))
    assert error_of(refused)["status"] == 401
    assert refused.headers.getlist("www-authenticate") == ['Basic realm="placement", charset="UTF-8"']
    assert get(client, path, x_auth_token="admin").status_code == 401


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with Keystone() as running:
        running.tokens["good"] = Issued("nova", roles=["service"], project="service")
        running.tokens["plain"] = Issued("alice", roles=["member"], project="p1")
        yield running


def test_keystone_tokens_are_validated_and_carry_roles(start: Start, keystone: Keystone) -> None:
    client = start(keystone_authtoken=dict(keystone.configuration()))
    path = "/resource_providers"
    assert get(client, path, x_auth_token="good").status_code == 200
    assert get(client, path, x_auth_token="plain", x_roles="admin").status_code == 403
    refused = get(client, path, x_auth_token="forged", x_user_id="nova", x_roles="admin")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Keystone uri="{keystone.url}"'
    assert get(client, path, x_user_id="nova", x_roles="admin", x_identity_status="Confirmed").status_code == 401


def test_a_keystone_that_is_gone_is_503_in_the_shape_of_every_error(start: Start, keystone: Keystone) -> None:
    client = start(keystone_authtoken=dict(keystone.configuration()))
    keystone.stop()
    response = get(client, "/resource_providers", x_auth_token="good")
    assert response.status_code == 503
    assert "token" in error_of(response)["detail"]
    assert client.get("/").status_code == 200


def test_cors_answers_a_preflight_before_authentication(start: Start) -> None:
    origin = "http://valid.example.com"
    client = start(api=NOAUTH2, cors={"allowed_origin": origin, "allow_headers": "openstack-api-version"})
    asked = {
        "origin": origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "openstack-api-version",
    }
    answer = client.options("/resource_providers", headers=asked)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)
    refused = client.get("/resource_providers", headers={"origin": origin})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == origin
    assert error_of(refused)["title"] == "Unauthorized"


def test_without_cors_a_preflight_is_a_method_like_any_other(start: Start) -> None:
    client = start(api=NOAUTH2)
    answer = client.options("/", headers={"origin": "http://valid.example.com", "access-control-request-method": "GET"})
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers
