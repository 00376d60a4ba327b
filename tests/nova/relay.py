"""A relay between nova and a placement server: it notes what Placement ranks first, and can make the planner fail."""

import contextlib
import http.client
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

SCORES = "/planner/v1/scores"
CANDIDATES = "/allocation_candidates"
CLAIM = "/allocations/"

Fault = Callable[[], tuple[int, bytes]]
"""Answers instead of the server, with a status and a body."""


class Decision(NamedTuple):
    """One weighing of nova's.

    Args:
        headers: those of the request for scores.
        weighed: the hosts (uuids of their root providers) that passed nova's filters.
        ranked: all hosts, as GET /allocation_candidates orders them at this moment.
    """

    headers: Mapping[str, str]
    weighed: list[str]
    ranked: list[str]

    @property
    def best(self) -> str:
        """The host that Placement ranks first among those that passed the filters."""
        return next(host for host in self.ranked if host in self.weighed)


class Relay:
    """Passes requests on with the service role alone, which is what nova's user has.

    Attributes:
        fault: answers requests for scores instead of the server.
        decisions: nova's weighings so far.
        ranked: the hosts as the last answer to nova's query for candidates ordered them.
        claimed: the hosts of nova's claims so far.
    """

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._query = CANDIDATES
        self.fault: Fault | None = None
        self.decisions: list[Decision] = []
        self.ranked: list[str] = []
        self.claimed: list[str] = []

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """Return the status and the body of the answer to one of nova's requests."""
        if path == SCORES and self.fault:
            return self.fault()
        if path == SCORES:
            self._note_decision(headers, json.loads(body))
        status, content = self._passed_on(method, path, headers, body)
        if path.startswith(CANDIDATES) and status == 200:
            self._query, self.ranked = path, _hosts(json.loads(content))
        if method == "PUT" and path.startswith(CLAIM) and status == 204:
            self.claimed += [host for host in self.ranked if host in json.loads(body)["allocations"]]
        return status, content

    def _note_decision(self, headers: Mapping[str, str], document: dict[str, Any]) -> None:
        again = {"OpenStack-API-Version": "placement 1.36", "X-Auth-Token": "admin", "Accept": "application/json"}
        ranked = _hosts(json.loads(self._passed_on("GET", self._query, again, b"")[1]))
        asked = {provider for request in document["allocation_requests"] for provider in request["allocations"]}
        self.decisions.append(Decision(headers, [host for host in ranked if host in asked], ranked))

    def _passed_on(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        with contextlib.closing(http.client.HTTPConnection(self._target, timeout=60)) as connection:
            connection.request(method, path, body or None, {**headers, "X-Roles": "service"})
            answer = connection.getresponse()
            return answer.status, answer.read()


def _hosts(document: dict[str, Any]) -> list[str]:
    """Return the roots of the providers of candidates, best first."""
    roots = {uuid: summary["root_provider_uuid"] for uuid, summary in document["provider_summaries"].items()}
    return list(dict.fromkeys(roots[next(iter(request["allocations"]))] for request in document["allocation_requests"]))


@contextlib.contextmanager
def running_relay(target: str) -> Iterator[tuple[Relay, str]]:
    """Start a relay to a server; yield it and its URL."""
    relay = Relay(target)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

        def _relay(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = relay.answer(self.command, self.path, dict(self.headers.items()), body)
            with contextlib.suppress(ConnectionError):  # nova no longer waits
                self._send(status, content)

        def _send(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _relay  # noqa: N815

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield relay, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
