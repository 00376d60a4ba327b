"""OSprofiler and the audit middleware in a server, as its options configure them."""

import logging
from pathlib import Path
from typing import Any

import pytest

from placement.errors import ConfigurationError
from tests.conftest import Configured

MAP = Path(__file__).parents[2] / "etc" / "placement" / "api_audit_map.conf"
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}

ALICE, PROJECT = "0a0a0a0a-0000-4000-8000-000000000001", "0a0a0a0a-0000-4000-8000-000000000002"

PLAIN = {"api": {"auth_strategy": "noauth2"}, "access_log": {"enabled": "false"}}


@pytest.fixture
def traces() -> list[dict[str, Any]]:
    """Return the traces sent to OSprofiler's driver ``memory``."""
    base = pytest.importorskip("osprofiler.drivers.base")
    sent: list[dict[str, Any]] = []

    class Memory(base.Driver):  # type: ignore[misc, name-defined]
        @classmethod
        def get_name(cls) -> str:
            return "memory"

        def notify(self, info: dict[str, Any], **_context: object) -> None:
            sent.append(info)

    sent.append({"driver": Memory})  # found among the living subclasses
    return sent


def test_requests_with_a_signed_header_are_traced_with_their_statements(
    configured: Configured, traces: list[dict[str, Any]]
) -> None:
    web = pytest.importorskip("osprofiler.web")
    profiler = pytest.importorskip("osprofiler.profiler")
    options = {"enabled": "true", "hmac_keys": "KEY", "connection_string": "memory://", "trace_sqlalchemy": "true"}
    app = configured(**PLAIN, profiler=options)
    profiler.init("KEY", base_id="11111111-1111-1111-1111-111111111111")
    signed = web.get_trace_id_headers()
    profiler.clean()
    app.test_client().get("/resource_providers", headers=HEADERS)
    assert traces[1:] == []
    assert app.test_client().get("/resource_providers", headers=HEADERS | signed).status_code == 200
    names = [trace["name"] for trace in traces[1:]]
    assert (names[0], names[-1]) == ("wsgi-start", "wsgi-stop")
    assert "db-start" in names


@pytest.mark.filterwarnings("ignore:Invalid uuid")  # the endpoint's id, when no catalogue provides it
def test_each_request_leaves_events_of_who_did_what(configured: Configured, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("keystonemiddleware")
    audit = {"enabled": "true", "audit_map_file": str(MAP), "ignore_req_list": "HEAD"}
    app = configured(**PLAIN, audit=audit, audit_middleware_notifications={"use_oslo_messaging": "false"})
    caplog.set_level(logging.INFO)
    # A server of another test may have changed this logger's level.
    caplog.set_level(logging.INFO, "keystonemiddleware")
    client = app.test_client()
    client.get("/", headers=HEADERS)
    client.head("/resource_providers", headers=HEADERS)
    assert [text for text in caplog.messages if "audit.http" in text] == []
    client.get("/resource_providers", headers=HEADERS | {"x-user-id": ALICE, "x-project-id": PROJECT})
    (asked, answered) = [text for text in caplog.messages if "audit.http" in text]
    assert "audit.http.request" in asked
    assert "'outcome': 'success'" in answered
    assert ALICE in answered


def test_an_audit_map_that_cannot_be_used_stops_the_start_with_a_sentence(configured: Configured) -> None:
    with pytest.raises(ConfigurationError, match=r"\[audit\] cannot be used: .*nowhere"):
        configured(**PLAIN, audit={"enabled": "true", "audit_map_file": "/nowhere"})
