"""What every way of starting a server must pass: a walk through the API, concurrent claims, and a quiet log."""

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from tests.claims import entry, new_uuid
from tests.concurrency.together import together

CLIENTS = 24
CAPACITY = 10
LONG = "member_of=in:" + ",".join(str(uuid4()) for _ in range(300))
"""A query of 11,000 characters, such as nova sends for a large group of aggregates."""


class Calls:
    """Requests to a server that may be below a prefix."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any, Any]:
        """Send one request and return status, headers and document."""
        headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.38", "user-agent": "tests"}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["content-type"] = "application/json"
        request = urllib.request.Request(self.url + path, content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, json.loads(answer.read() or "null")
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers, json.loads(refused.read() or "null")


def walk_through(url: str) -> None:
    """Read and change various things, and make concurrent claims."""
    call = Calls(url)
    status, _, document = call("GET", "/")
    assert (status, document["versions"][0]["max_version"]) == (200, "1.39")
    uuid = _provider(call)
    assert call("GET", f"/allocation_candidates?resources=VCPU:1&{LONG}")[2]["provider_summaries"] == {}
    assert list(call("GET", "/allocation_candidates?resources=VCPU:1")[2]["provider_summaries"]) == [uuid]
    assert call("PUT", "/traits/CUSTOM_%C3%84")[0] == 400
    status, _, refusal = call("GET", f"/resource_providers/{new_uuid()}")
    assert (status, refusal["errors"][0]["status"]) == (404, 404)
    _claims_are_exact(call, uuid)


def _provider(call: Calls) -> str:
    """Create a provider with some VCPUs, using links that must lead back through any proxy."""
    uuid = new_uuid()
    status, headers, made = call("POST", "/resource_providers", {"name": uuid, "uuid": uuid})
    assert status == 200
    assert headers["location"] == f"{call.url}/resource_providers/{uuid}"
    assert made["links"][0] == {"rel": "self", "href": f"{urlsplit(call.url).path}/resource_providers/{uuid}"}
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": CAPACITY}}}
    assert call("PUT", f"/resource_providers/{uuid}/inventories", stock)[0] == 200
    return uuid


def _claims_are_exact(call: Calls, uuid: str) -> None:
    def claim(consumer: str) -> Callable[[], int]:
        return lambda: call("PUT", f"/allocations/{consumer}", entry({uuid: {"VCPU": 1}}))[0]

    consumers = [new_uuid() for _ in range(CLIENTS)]
    answers = together([claim(consumer) for consumer in consumers])
    assert Counter(answers) == {204: CAPACITY, 409: CLIENTS - CAPACITY}
    assert call("GET", f"/resource_providers/{uuid}/usages")[2]["usages"] == {"VCPU": CAPACITY}
    for consumer, status in zip(consumers, answers, strict=True):
        assert status == 409 or call("DELETE", f"/allocations/{consumer}")[0] == 204


def log_is_quiet(log: Path) -> None:
    """Check that a server logged its requests, but no errors and no probes."""
    text = log.read_text(encoding="utf-8", errors="replace")
    assert '/resource_providers" status: 200' in text
    assert "Traceback" not in text
    assert '/" status:' not in text
    assert '/placement" status:' not in text
