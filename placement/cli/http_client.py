"""A small client of a placement server, for the commands that speak to one."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from placement.errors import PlacementError

TIMEOUT_S = 60
MICROVERSION = "1.39"


class RequestRefused(PlacementError):
    """The server refused a request."""


class Client:
    """Requests to one server as the administrator that ``noauth2`` believes in; counts them."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        self.requests = 0

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return the document of the answer, None where there is none.

        Raises:
            RequestRefused: the answer is an error.
            OSError: there is no answer.
        """
        self.requests += 1
        connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, _encoded(body), _headers(body))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RequestRefused(f"{method} {path} answered {response.status}: {content.decode(errors='replace')}")
        return json.loads(content) if content else None


def _encoded(body: object) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def _headers(body: object) -> dict[str, str]:
    headers = {
        "X-Auth-Token": "admin",
        "OpenStack-API-Version": f"placement {MICROVERSION}",
        "Accept": "application/json",
    }
    return headers if body is None else {**headers, "Content-Type": "application/json"}
