"""One way to send a request, whether to a running server or to an application in process: ``Call``."""

import contextlib
import http.client
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TIMEOUT_S = 60

Call = Callable[..., tuple[int, Any]]
"""call(method, path, version, body) -> (status, document), as user admin."""


def ask(call: Call, method: str, path: str, version: str = "1.39", body: object = None) -> Any:
    """Send a request that must succeed and return the answer's document."""
    status, document = call(method, path, version, body)
    assert 200 <= status < 300, f"{method} {path} (microversion {version}) answered {status}: {document}"
    return document


class Answer(NamedTuple):
    """A status, headers with names in lower case, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON; None if it is not JSON."""
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            return None


class Unreachable(OSError):
    """Nothing was sent: nobody accepts the connection."""


def exchange(
    url: str,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str],
    content: bytes | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Answer:
    """Send a request to a server, which may be below a prefix, and return its answer.

    Raises:
        Unreachable: it cannot be sent.
        OSError: no answer came in time.
        HTTPException: what came is no answer.
    """
    address = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(address.netloc, timeout=timeout_s)) as connection:
        try:
            connection.connect()
        except OSError as error:
            raise Unreachable(*error.args) from error
        connection.request(method, address.path + target, content, headers)
        response = connection.getresponse()
        lowered = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, lowered, response.read())


class HttpCalls:
    """Sends requests as user admin; an instance is a ``Call``."""

    def __init__(self, url: str, roles: str | None = None) -> None:
        self.url = url
        self._headers = {"x-auth-token": "admin", "accept": "application/json", **({"x-roles": roles} if roles else {})}

    def ask(self, method: str, path: str, version: str = "1.39", body: object = None) -> Answer:
        """Send one request and return the answer."""
        headers = {**self._headers, "openstack-api-version": f"placement {version}"}
        if body is None:
            return exchange(self.url, method, path, headers=headers)
        headers["content-type"] = "application/json"
        return exchange(self.url, method, path, headers=headers, content=json.dumps(body).encode())

    def __call__(self, method: str, path: str, version: str, body: object = None) -> tuple[int, Any]:
        """Send one request and return the status and the document, or None if there is none."""
        answer = self.ask(method, path, version, body)
        return answer.status, answer.document
