"""The strategy noauth2: what a token means, and who is refused if the operator did not choose the strategy."""

import pytest

from placement.auth.strategy import NoAuth
from placement.domain.identity import Identity
from placement.errors import Forbidden
from tests.unit.auth.wsgi import Served

CHOSEN = NoAuth()
IMPLICIT = NoAuth(local_only=True)


@pytest.mark.parametrize(
    ("headers", "identity"),
    [
        ({"HTTP_X_AUTH_TOKEN": "admin"}, Identity("admin", "admin", ("admin",))),
        ({"HTTP_X_AUTH_TOKEN": "admin:p1"}, Identity("admin", "p1", ("admin",))),
        ({"HTTP_X_AUTH_TOKEN": "alice"}, Identity("alice", "alice")),
        ({"HTTP_X_AUTH_TOKEN": "alice:p1"}, Identity("alice", "p1")),
        ({"HTTP_X_AUTH_TOKEN": "administrator"}, Identity("administrator", "administrator")),
        ({"HTTP_X_AUTH_TOKEN": ""}, Identity("", "")),
        (
            {"HTTP_X_AUTH_TOKEN": "alice", "HTTP_X_ROLES": "admin, reader"},
            Identity("alice", "alice", ("admin", "reader")),
        ),
        ({"HTTP_X_AUTH_TOKEN": "admin", "HTTP_X_ROLES": ""}, Identity("admin", "admin")),
        ({"HTTP_X_AUTH_TOKEN": "alice:p1", "HTTP_X_PROJECT_ID": "p2"}, Identity("alice", "p2")),
        (
            {"HTTP_X_AUTH_TOKEN": "admin", "HTTP_OPENSTACK_SYSTEM_SCOPE": "all"},
            Identity("admin", None, ("admin",), system_scope="all"),
        ),
        ({"HTTP_X_AUTH_TOKEN": "alice", "HTTP_OPENSTACK_SYSTEM_SCOPE": ""}, Identity("alice", "alice")),
        ({"HTTP_X_AUTH_TOKEN": "alice", "HTTP_X_DOMAIN_ID": "d1"}, Identity("alice", "alice", domain_id="d1")),
        (
            {"HTTP_X_AUTH_TOKEN": "alice", "HTTP_X_SERVICE_ROLES": "service"},
            Identity("alice", "alice", service_roles=("service",)),
        ),
    ],
)
def test_the_token_and_the_headers_name_the_caller(headers: dict[str, str], identity: Identity) -> None:
    assert CHOSEN.identify(dict(headers)) == identity


def test_no_token_is_no_caller() -> None:
    assert CHOSEN.identify({"HTTP_X_USER_ID": "admin", "HTTP_X_ROLES": "admin"}) is None


def test_the_application_is_served_as_it_is() -> None:
    served = Served(CHOSEN)
    assert served.call(HTTP_X_AUTH_TOKEN="admin", REMOTE_ADDR="203.0.113.9", HTTP_X_FORWARDED_FOR="1.2.3.4") == 200
    assert served.call() == 401


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", ""])
def test_unchosen_it_serves_this_machine(address: str) -> None:
    """A server on a Unix socket gets an empty address for its callers."""
    assert IMPLICIT.identify({"REMOTE_ADDR": address, "HTTP_X_AUTH_TOKEN": "admin"}) is not None


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7", "::", "0.0.0.0", "localhost.evil"])
def test_unchosen_it_refuses_other_machines(address: str) -> None:
    with pytest.raises(Forbidden):
        IMPLICIT.identify({"REMOTE_ADDR": address, "HTTP_X_AUTH_TOKEN": "admin"})


def test_unchosen_it_refuses_where_the_server_tells_no_address() -> None:
    with pytest.raises(Forbidden):
        IMPLICIT.identify({"HTTP_X_AUTH_TOKEN": "admin"})


@pytest.mark.parametrize(
    "header",
    ["HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED"],
)
def test_unchosen_it_refuses_what_a_proxy_passes_on(header: str) -> None:
    with pytest.raises(Forbidden):
        IMPLICIT.identify({"REMOTE_ADDR": "127.0.0.1", header: "", "HTTP_X_AUTH_TOKEN": "admin"})


def test_unchosen_it_refuses_before_it_asks_for_a_token() -> None:
    with pytest.raises(Forbidden):
        IMPLICIT.identify({"REMOTE_ADDR": "192.0.2.7"})
