"""The keystone strategy against a keystone that answers over HTTP."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from placement.auth import strategy_from
from placement.domain.identity import Identity
from placement.errors import ConfigurationError, Unavailable
from placement.settings import Settings, load
from tests.fakes.keystone import Issued, Keystone
from tests.unit.auth.wsgi import Served

ALICE = Issued("alice", roles=["admin", "member"], project="p1")
NOVA = Issued("nova", roles=["service"], project="service")
EXPIRED = Issued("alice", roles=["admin"], project="p1", age=timedelta(hours=2))


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with Keystone() as running:
        yield running


def settings_for(keystone: Keystone, tmp_path: Path, **changes: str) -> Settings:
    values = {**keystone.configuration(), **changes}
    lines = ["[placement_database]", "connection = sqlite://", "[keystone_authtoken]"]
    path = tmp_path / "placement.conf"
    path.write_text("\n".join([*lines, *(f"{name} = {value}" for name, value in values.items())]))
    return load([str(path)], {}, search=False)


@pytest.fixture
def served(keystone: Keystone, tmp_path: Path) -> Served:
    return Served(strategy_from(settings_for(keystone, tmp_path)))


OF_ALICE = Identity("alice", "p1", ("admin", "member"), user_domain_id="default", project_domain_id="default")
OF_ROOT = Identity("root", None, ("admin",), user_domain_id="default")
RELAYED = {"service_roles": ("service",), "service_user_id": "nova", "service_project_id": "service"}
RELAYED |= {"service_user_domain_id": "default", "service_project_domain_id": "default"}


@pytest.mark.parametrize(
    ("token", "service", "identity"),
    [
        ("good", None, OF_ALICE),
        ("domain", None, replace(OF_ROOT, domain_id="d1")),
        # An expired token is good when a service relays it.
        ("old", "nova", replace(OF_ALICE, roles=("admin",), **RELAYED)),
        # The middleware sets one header for both tokens, so the service's scope would hide the caller's.
        ("system", "nova", replace(OF_ROOT, system_scope="all", **RELAYED)),
    ],
)
def test_a_token_tells_user_scope_and_roles_and_who_relays_it(
    keystone: Keystone, served: Served, token: str, service: str | None, identity: Identity
) -> None:
    assert served.call(**tokens(keystone, token, service)) == 200
    assert served.identity == identity


def tokens(keystone: Keystone, token: str, service: str | None) -> dict[str, str]:
    """Issue the tokens of these tests, and return the headers with those of a caller and of a service."""
    keystone.tokens |= {"good": ALICE, "old": EXPIRED, "nova": NOVA}
    keystone.tokens |= {"impostor": Issued("eve", roles=["member"], project="p3")}
    keystone.tokens |= {"system": Issued("root", roles=["admin"], is_system=True)}
    keystone.tokens |= {"domain": Issued("root", roles=["admin"], domain="d1")}
    return {"HTTP_X_AUTH_TOKEN": token, **({"HTTP_X_SERVICE_TOKEN": service} if service else {})}


@pytest.mark.parametrize(("token", "service"), [("unknown", None), ("old", None), ("good", "impostor")])
def test_unknown_and_expired_tokens_and_services_without_the_role_are_401(
    keystone: Keystone, served: Served, token: str, service: str | None
) -> None:
    assert served.call(**tokens(keystone, token, service)) == 401


def test_without_a_token_the_middleware_answers_401_in_its_own_shape(served: Served) -> None:
    assert served.call() == 401
    assert b'"error"' in served.body
    assert served.headers["www-authenticate"].startswith("Keystone uri=")


@pytest.mark.parametrize("path", ["", "/", "/healthcheck", "/readycheck"])
def test_open_paths_need_no_token(served: Served, path: str) -> None:
    served.call(path)
    assert served.body == b"from the application"


@pytest.mark.parametrize("path", ["", "/", "/traits"])
def test_headers_that_claim_an_identity_prove_nothing(served: Served, path: str) -> None:
    served.call(
        path, HTTP_X_USER_ID="root", HTTP_X_ROLES="admin", HTTP_X_PROJECT_ID="p1", HTTP_X_IDENTITY_STATUS="Confirmed"
    )
    assert served.identity is None


def test_headers_that_claim_more_than_the_token_are_dropped(keystone: Keystone, served: Served) -> None:
    keystone.tokens["plain"] = Issued("bob", roles=["reader"], project="p2")
    claims = {"HTTP_X_ROLES": "admin", "HTTP_X_PROJECT_ID": "p1", "HTTP_X_SERVICE_ROLES": "service"}
    served.call(HTTP_X_AUTH_TOKEN="plain", HTTP_OPENSTACK_SYSTEM_SCOPE="all", **claims)
    assert served.identity is not None
    assert (served.identity.roles, served.identity.project_id) == (("reader",), "p2")
    assert (served.identity.service_roles, served.identity.system_scope) == ((), None)


def test_a_keystone_that_fails_or_is_gone_is_a_refusal_of_ours_not_a_crash(keystone: Keystone, served: Served) -> None:
    keystone.tokens["good"] = ALICE
    keystone.status = 500
    assert served.call(HTTP_X_AUTH_TOKEN="good") == 503
    keystone.status = None
    assert served.call(HTTP_X_AUTH_TOKEN="good") == 200
    keystone.stop()
    assert served.call(HTTP_X_AUTH_TOKEN="another") == 503
    assert isinstance(served.refusal, Unavailable)
    assert served.identity is None


def test_a_wrong_service_password_is_a_refusal(keystone: Keystone, tmp_path: Path) -> None:
    served = Served(strategy_from(settings_for(keystone, tmp_path, password="wrong")))
    assert served.call(HTTP_X_AUTH_TOKEN="good") == 503


def test_nobody_is_let_in_when_the_decision_is_delayed(keystone: Keystone, tmp_path: Path) -> None:
    """With delay_auth_decision the middleware passes every request on and only marks it."""
    served = Served(strategy_from(settings_for(keystone, tmp_path, delay_auth_decision="True")))
    assert served.call(HTTP_X_AUTH_TOKEN="unknown") == 401
    assert served.call() == 401
    assert served.body == b"from the application"


def test_without_an_auth_plugin_no_token_is_401_and_any_token_503() -> None:
    served = Served(strategy_from(load((), {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite://"}, search=False)))
    assert served.call() == 401
    assert served.call(HTTP_X_AUTH_TOKEN="good") == 503


def test_an_unknown_plugin_stops_the_start_with_a_sentence(keystone: Keystone, tmp_path: Path) -> None:
    settings = settings_for(keystone, tmp_path, auth_type="no-such-plugin")
    with pytest.raises(ConfigurationError, match="keystone_authtoken"):
        Served(strategy_from(settings))
