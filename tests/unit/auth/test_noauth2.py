"""The strategy noauth2: what a token means, and who is refused if the operator did not choose the strategy."""

import pytest

from placement.auth.strategy import NoAuth
from placement.domain.identity import Identity
from placement.errors import Forbidden
from tests.unit.auth.wsgi import Served

CHOSEN = NoAuth()
IMPLICIT = NoAuth(local_only=True)


@pytest.mark.parametrize(
    ("token", "headers", "identity"),
    [
        ("admin", {}, Identity("admin", "admin", ("admin",))),
        ("admin:p1", {}, Identity("admin", "p1", ("admin",))),
        ("alice", {}, Identity("alice", "alice")),
        ("alice:p1", {}, Identity("alice", "p1")),
        ("administrator", {}, Identity("administrator", "administrator")),
        ("", {}, Identity("", "")),
        ("alice", {"ROLES": "admin, reader"}, Identity("alice", "alice", ("admin", "reader"))),
        ("admin", {"ROLES": ""}, Identity("admin", "admin")),
        ("alice:p1", {"PROJECT_ID": "p2"}, Identity("alice", "p2")),
        ("admin", {"SYSTEM_SCOPE": "all"}, Identity("admin", None, ("admin",), system_scope="all")),
        ("alice", {"SYSTEM_SCOPE": ""}, Identity("alice", "alice")),
        ("alice", {"DOMAIN_ID": "d1"}, Identity("alice", "alice", domain_id="d1")),
        ("alice", {"SERVICE_ROLES": "service"}, Identity("alice", "alice", service_roles=("service",))),
    ],
)
def test_the_token_and_the_headers_name_the_caller(token: str, headers: dict[str, str], identity: Identity) -> None:
    prefixes = {"SYSTEM_SCOPE": "HTTP_OPENSTACK_"}
    environ = {f"{prefixes.get(name, 'HTTP_X_')}{name}": value for name, value in headers.items()}
    assert CHOSEN.identify({"HTTP_X_AUTH_TOKEN": token, **environ}) == identity


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


PROXIES = ("FORWARDED", "X_FORWARDED_FOR", "X_FORWARDED_HOST", "X_FORWARDED_PROTO", "X_FORWARDED")
STRANGERS = [
    *[{"REMOTE_ADDR": address} for address in ("192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7", "::", "localhost.evil")],
    {},
    *[{"REMOTE_ADDR": "127.0.0.1", f"HTTP_{header}": ""} for header in PROXIES],
]


@pytest.mark.parametrize("environ", STRANGERS, ids=str)
def test_unchosen_it_refuses_other_machines_unknown_ones_and_proxies_before_it_asks_for_a_token(
    environ: dict[str, str],
) -> None:
    for token in ({}, {"HTTP_X_AUTH_TOKEN": "admin"}):
        with pytest.raises(Forbidden):
            IMPLICIT.identify({**environ, **token})
