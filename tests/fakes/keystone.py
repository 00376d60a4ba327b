"""A small keystone, served over real HTTP: version discovery, tokens for a service user, validation of tokens.

It knows the tokens that a test issues, and can be made to answer with errors or to be unreachable.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

from flask import Flask, request
from keystoneauth1.fixture import DiscoveryList, V3Token
from keystoneauth1.fixture.discovery import V3Discovery
from werkzeug.serving import make_server

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

    def document(self) -> V3Token:
        """Return the answer of a validation."""
        token = V3Token(
            expires=self.expires,
            issued=datetime.now(UTC) - self.age,
            **dict.fromkeys(("user_id", "user_name"), self.user),
            **dict.fromkeys(("user_domain_id", "user_domain_name"), "default"),
        )
        for role in self.roles:
            token.add_role(role)
        if self.project:
            token.set_project_scope(self.project, self.project, "default", "Default")
        if self.domain:
            token.set_domain_scope(self.domain, self.domain)
        if self.is_system:
            token.set_system_scope()
        return token


@dataclass
class Keystone:
    """A running fake; use it as a context manager.

    ``status`` replaces the normal answer of validation; ``validated`` are the tokens that were validated.
    """

    tokens: dict[str, Issued] = field(default_factory=dict)
    status: int | None = None
    validated: list[str] = field(default_factory=list)

    def __enter__(self) -> "Keystone":
        self._server = make_server("127.0.0.1", 0, self._application(), threaded=True)
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
        return f"http://127.0.0.1:{self._server.port}"

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

    def _application(self) -> Flask:
        app = Flask("keystone")
        app.add_url_rule("/", view_func=lambda: (DiscoveryList(href=self.url, v2=False), 300), endpoint="versions")
        app.add_url_rule("/v3/", view_func=lambda: {"version": V3Discovery(f"{self.url}/v3")}, endpoint="version")
        app.add_url_rule("/v3/auth/tokens", view_func=self._issue, methods=["POST"])
        app.add_url_rule("/v3/auth/tokens", view_func=self._validate, methods=["GET"])
        return app

    def _issue(self) -> tuple[Any, ...]:
        """Issue a token to the service user."""
        user = request.get_json()["auth"]["identity"]["password"]["user"]
        if (user["name"], user["password"]) != (SERVICE_USER, SERVICE_PASSWORD):
            return _refusal(401, "wrong password")
        own = Issued(SERVICE_USER, roles=["service"], project="service").document()
        own.add_service("identity").add_standard_endpoints(**dict.fromkeys(("public", "internal", "admin"), self.url))
        return own, 201, {"X-Subject-Token": SERVICE_TOKEN}

    def _validate(self) -> tuple[Any, ...]:
        subject = request.headers["X-Subject-Token"]
        self.validated.append(subject)
        if self.status is not None:
            return _refusal(self.status, "told to fail")
        if request.headers["X-Auth-Token"] != SERVICE_TOKEN:
            return _refusal(401, "who are you?")
        issued = self.tokens.get(subject)
        if issued is None or (issued.expires < datetime.now(UTC) and "allow_expired" not in request.args):
            return _refusal(404, "no such token")
        return issued.document(), 200


def _refusal(status: int, message: str) -> tuple[Any, ...]:
    return {"error": {"code": status, "message": message}}, status
