"""``placement serve``: by default on a file in the user's home, otherwise as configured, never unprotected."""

import contextlib
import http.client
import json
import re
import signal
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import make_url

from tests import servers
from tests.cli.commands import Command
from tests.http_calls import HttpCalls

BEGINNING = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": "placement 1.20",
    "Content-Type": "application/json",
    "Content-Length": "20",
    "Expect": "100-continue",
}
PROVIDER = {"name": "compute1", "uuid": "3bd2ea2c-8b1f-4a4c-9d2f-0a3d8f0e8a11"}


def test_without_configuration_it_serves_a_lasting_file_that_it_makes_itself(placement: Command):
    with placement.running("serve", "--port", "0", "--workers", "1") as first:
        assert HttpCalls(first.url())("POST", "/resource_providers", "1.20", PROVIDER)[0] == 200
        assert first.ends(signal.SIGTERM) == 0
    with placement.running("serve", "--port", "0", "--workers", "2") as second:
        _, document = HttpCalls(second.url())("GET", "/resource_providers", "1.20")
        assert second.ends(signal.SIGINT) == 0
    assert [provider["name"] for provider in document["resource_providers"]] == ["compute1"]
    assert (placement.home / ".local/share/placement/placement.sqlite").exists()


def test_noauth2_serves_there_when_the_caller_insists(placement: Command):
    with placement.running("serve", "--host", "0.0.0.0", "--port", "0", "--insecure-noauth") as server:
        port = server.says("http://0.0.0.0:").partition("0.0.0.0:")[2].split()[0]
        assert HttpCalls(f"http://127.0.0.1:{port}")("GET", "/resource_providers", "1.0")[0] == 200


def test_a_configuration_is_served_and_its_password_is_not_shown(placement: Command, postgresql_url: str):
    with_password = make_url(postgresql_url).set(password="s3cret").render_as_string(hide_password=False)
    path = _configuration(placement, {"placement_database": {"connection": with_password}})
    options = ("--port", "0", "--workers", "3", "--threads", "5", "--config-file", str(path))
    with placement.running("serve", *options) as server:
        url = server.url()
        said = server.says("processes")
        assert re.search("3 x 5 threads, at most 18 of the [0-9]+ connections that the database allows", said)
        assert HttpCalls(url)("GET", "/resource_providers", "1.0") == (200, {"resource_providers": []})
        assert server.ends(signal.SIGTERM) == 0
    assert "noauth2" in "".join(server.said)
    assert "s3cret" not in "".join(server.said)


def test_while_it_waits_for_the_database_the_log_says_why(placement: Command):
    options = {"connection": "sqlite:////nowhere/placement.sqlite", "max_retries": "1", "retry_interval": "0"}
    path = _configuration(placement, {"placement_database": options})
    done = placement.process("serve", "--port", "0", "--config-file", str(path))
    assert "The database cannot be reached: unable to open database file. Trying again in 0 seconds." in done.stderr


def test_a_request_under_way_is_answered_before_the_server_ends(placement: Command):
    with placement.running("serve", "--port", "0", "--workers", "1") as server:
        with contextlib.closing(http.client.HTTPConnection(urlsplit(server.url()).netloc, timeout=30)) as connection:
            connection.putrequest("POST", "/resource_providers")
            for name, value in BEGINNING.items():
                connection.putheader(name, value)
            connection.endheaders()
            # The server has started handling the request when it asks for the rest of it.
            assert connection.sock.recv(100).startswith(b"HTTP/1.1 100")
            server.process.send_signal(signal.SIGTERM)
            connection.send(b'{"name": "compute1"}')
            with connection.getresponse() as answer:
                assert answer.status == 200
        assert server.process.wait(30) == 0


def test_more_connections_than_the_database_allows_are_warned_of(placement: Command, postgresql_url: str):
    path = _configuration(placement, {"placement_database": {"connection": postgresql_url}})
    options = ("--port", "0", "--workers", "1", "--threads", "1000", "--config-file", str(path))
    with placement.running("serve", *options) as server:
        server.says("1 x 1000 threads, at most 1001 of the ")
        assert server.ends(signal.SIGTERM) == 0
    assert "use fewer workers or threads, or raise its max_connections" in "".join(server.said)


def test_sighup_reads_the_configuration_again_and_loses_no_connection(placement: Command):
    path = _configuration(placement, _on_file(placement))
    policy = placement.home / "policy.yaml"
    with placement.running("serve", "--port", "0", "--workers", "1", "--config-file", str(path)) as server:
        call = HttpCalls(server.url())
        assert call("GET", "/planner/v1", "1.0")[0] == 200
        assert call("GET", "/resource_providers", "1.0")[0] == 200
        policy.write_text('"placement:resource_providers:list": "!"\n')
        settings = {"planner": {"enabled": "false"}, "oslo_policy": {"policy_file": str(policy)}}
        _configuration(placement, _on_file(placement) | settings)
        server.process.send_signal(signal.SIGHUP)
        server.says("The configuration was read again")
        servers.until(lambda: call("GET", "/planner/v1", "1.0")[0] == 404)
        assert call("GET", "/resource_providers", "1.0")[0] == 403
        path.write_text("[placement_database]\nconnection = oracle://\n")
        server.process.send_signal(signal.SIGHUP)
        server.says("is not valid; the previous one stays in force")
        assert call("GET", "/resource_providers", "1.0")[0] == 403
        assert server.ends(signal.SIGTERM) == 0


def test_what_a_proxy_says_is_not_believed_unless_configured(placement: Command):
    """By default, gunicorn trusts callers on this machine."""
    path = _configuration(placement, _on_file(placement))
    with placement.running("serve", "--port", "0", "--workers", "1", "--config-file", str(path)) as server:
        url = server.url()
        said = {"X-Forwarded-Proto": "https", "X-Forwarded-Ssl": "on", "X-Forwarded-Prefix": "/placement"}
        headers = {"X-Auth-Token": "admin", "Content-Type": "application/json", **said}
        request = urllib.request.Request(f"{url}/resource_providers", json.dumps(PROVIDER).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            assert answer.headers["location"] == f"{url}/resource_providers/{PROVIDER['uuid']}"


def test_it_serves_below_the_prefix_that_script_name_says(placement: Command):
    path = _configuration(placement, _on_file(placement))
    placement.environment["SCRIPT_NAME"] = "/placement"
    with placement.running("serve", "--port", "0", "--workers", "1", "--config-file", str(path)) as server:
        call = HttpCalls(server.url())
        assert call("GET", "/placement", "1.0")[1] == call("GET", "/placement/", "1.0")[1]
        status, made = call("POST", "/placement/resource_providers", "1.20", PROVIDER)
        assert status == 200
        assert made["links"][0]["href"] == f"/placement/resource_providers/{PROVIDER['uuid']}"
        assert server.ends(signal.SIGTERM) == 0


def test_metrics_of_all_workers_are_on_a_port_of_their_own(placement: Command):
    metrics = {"enabled": "true", "listen": "127.0.0.1:0"}
    path = _configuration(placement, _on_file(placement) | {"metrics": metrics})
    with placement.running("serve", "--port", "0", "--workers", "2", "--config-file", str(path)) as server:
        url = server.url()
        own = server.says("metrics ").split()[1]
        for _ in range(20):
            assert HttpCalls(url)("GET", "/traits", "1.6")[0] == 200
        # A worker counts a request only after the client has its answer.
        counted = 'placement_request_seconds_count{method="GET",route="/traits",status="200"}'
        servers.until(lambda: f"{counted} 20.0" in _lines_at(own))
        assert server.ends(signal.SIGTERM) == 0
    assert list(placement.temporary.iterdir()) == []


def _on_file(placement: Command) -> dict[str, dict[str, str]]:
    """Return the section for a database file in the home directory."""
    return {"placement_database": {"connection": f"sqlite:///{placement.home}/p.sqlite", "sync_on_startup": "true"}}


def _lines_at(url: str) -> list[str]:
    with urllib.request.urlopen(url) as answer:
        text: str = answer.read().decode()
    return text.splitlines()


def _configuration(placement: Command, sections: dict[str, dict[str, str]]) -> Path:
    """Write a configuration with noauth2 and return its path."""
    return servers.write_configuration(placement.home, servers.default_sections("sqlite://") | sections)
