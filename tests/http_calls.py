"""Single requests to a running server; an answer is (status, document)."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit


class HttpCalls:
    """Sends requests as user admin; an instance has the signature of clouds.Call."""

    def __init__(self, base_url: str) -> None:
        self._address = urlsplit(base_url).netloc

    def __call__(self, method: str, path: str, version: str, body: object = None) -> tuple[int, Any]:
        """Send one request and return the status and the document, or None if there is none."""
        headers = {
            "x-auth-token": "admin",
            "accept": "application/json",
            "openstack-api-version": f"placement {version}",
        }
        content = None
        if body is not None:
            content = json.dumps(body)
            headers["content-type"] = "application/json"
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        return response.status, json.loads(raw) if raw else None
