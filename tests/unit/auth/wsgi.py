"""A trivial WSGI application that reports what a strategy finds out, and a way to send it requests."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from placement.auth import AuthStrategy
from placement.domain.identity import Identity
from placement.errors import PlacementError


@dataclass
class Served:
    """An application behind a strategy; it remembers the last caller (or refusal) it saw."""

    strategy: AuthStrategy
    identity: Identity | None = None
    refusal: PlacementError | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __post_init__(self) -> None:
        self._wrapped = self.strategy.wrap(self._answer)

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        assert None not in environ.values()
        try:
            self.identity = self.strategy.identify(environ)
        except PlacementError as error:
            self.refusal = error
        status = "503 Refused" if self.refusal else "200 OK" if self.identity else "401 Unauthorized"
        start_response(status, [("Content-Type", "text/plain")])
        return [b"from the application"]

    def call(self, path: str = "/traits", **variables: str) -> int:
        """Send one request with these WSGI variables and return the status."""
        self.identity = self.refusal = None
        seen: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            seen[:] = [int(status[:3]), dict(headers)]

        self.body = b"".join(self._wrapped(_environ(path, variables), start_response))
        self.headers = {name.lower(): value for name, value in seen[1].items()}
        return seen[0]


def _environ(path: str, variables: dict[str, str]) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "SCRIPT_NAME": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "REMOTE_ADDR": "127.0.0.1",
        **variables,
    }
