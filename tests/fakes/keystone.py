"""A small keystone, served over real HTTP: version discovery, tokens for a service user, validation of tokens.

It knows the tokens that a test issues, and can be made to answer with errors or to be unreachable.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

SERVICE_USER = "placement"
SERVICE_PASSWORD = "service-secret"
SERVICE_TOKEN = "token-of-the-server-itself"


@dataclass(frozen=True)
class Issued:
    """A token that keystone knows."""

    user: str
    roles: Sequence[str] = ()
    project: str | None = None
    domain: str | None = None
    is_system: bool = False
    age: timedelta = timedelta(0)

    @property
    def expires(self) -> datetime:
        """The time of expiry, an hour after issue."""
        return datetime.now(UTC) - self.age + timedelta(hours=1)

    def document(self) -> dict[str, Any]:
        """Return the answer of a validation."""
        default_domain = {"id": "default", "name": "Default"}
        token: dict[str, Any] = {
            "methods": ["password"],
            "user": {"id": self.user, "name": self.user, "domain": default_domain},
            "roles": [{"id": f"id-{role}", "name": role} for role in self.roles],
            "expires_at": _stamp(self.expires),
            "issued_at": _stamp(datetime.now(UTC) - self.age),
            "audit_ids": ["audit"],
        }
        if self.project:
            token["project"] = {"id": self.project, "name": self.project, "domain": default_domain}
        if self.domain:
            token["domain"] = {"id": self.domain, "name": self.domain}
        if self.is_system:
            token["system"] = {"all": True}
        return {"token": token}


@dataclass
class Keystone:
    """A running fake; use it as a context manager.

    ``status`` replaces the normal answer of validation; ``validated`` are the tokens that were validated.
    """

    tokens: dict[str, Issued] = field(default_factory=dict)
    status: int | None = None
    validated: list[str] = field(default_factory=list)

    def __enter__(self) -> "Keystone":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop: connections are refused from now on."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    @property
    def url(self) -> str:
        """The URL for auth_url."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def configuration(self) -> Mapping[str, str]:
        """Return ``[keystone_authtoken]`` for a server that uses this keystone."""
        return {
            "www_authenticate_uri": self.url,
            "auth_url": self.url,
            "auth_type": "password",
            "username": SERVICE_USER,
            "password": SERVICE_PASSWORD,
            "user_domain_id": "default",
            "project_name": "service",
            "project_domain_id": "default",
            "service_token_roles": "service",
            "service_token_roles_required": "True",
            "http_request_max_retries": "0",
        }


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _handler_of(keystone: Keystone) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        fake = keystone

    return Handler


class _Handler(BaseHTTPRequestHandler):
    fake: Keystone

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature is the library's
        """Log nothing, to keep the test's output clean."""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/v3/auth/tokens":
            self._validate("allow_expired" in parse_qs(address.query))
        else:
            self._discover(address.path)

    def do_POST(self) -> None:
        """Issue a token to the service user."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        user = asked["auth"]["identity"]["password"]["user"]
        if (user["name"], user["password"]) != (SERVICE_USER, SERVICE_PASSWORD):
            self._answer(401, {"error": {"code": 401, "message": "wrong password", "title": "Unauthorized"}})
            return
        own = Issued(SERVICE_USER, roles=["service"], project="service").document()
        own["token"]["catalog"] = [self._identity_service()]
        self._answer(201, own, {"X-Subject-Token": SERVICE_TOKEN})

    def _identity_service(self) -> dict[str, Any]:
        endpoints = [
            {"id": interface, "interface": interface, "region": "one", "region_id": "one", "url": self.fake.url}
            for interface in ("public", "internal", "admin")
        ]
        return {"id": "identity", "type": "identity", "name": "keystone", "endpoints": endpoints}

    def _discover(self, path: str) -> None:
        version = {
            "id": "v3.14",
            "status": "stable",
            "links": [{"rel": "self", "href": f"{self.fake.url}/v3/"}],
            "media-types": [],
        }
        if path.startswith("/v3"):
            self._answer(200, {"version": version})
        else:
            self._answer(300, {"versions": {"values": [version]}})

    def _validate(self, allow_expired: bool) -> None:
        subject = self.headers["X-Subject-Token"]
        self.fake.validated.append(subject)
        if self.fake.status is not None:
            self._answer(self.fake.status, {"error": {"code": self.fake.status, "message": "told to fail"}})
            return
        if self.headers["X-Auth-Token"] != SERVICE_TOKEN:
            self._answer(401, {"error": {"code": 401, "message": "who are you?"}})
            return
        issued = self.fake.tokens.get(subject)
        if issued is None or (issued.expires < datetime.now(UTC) and not allow_expired):
            self._answer(404, {"error": {"code": 404, "message": "no such token"}})
            return
        self._answer(200, issued.document())

    def _answer(self, status: int, document: object, headers: Mapping[str, str] = {}) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
