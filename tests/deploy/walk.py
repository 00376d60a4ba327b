"""What every way of starting a server must pass: a walk through the API, concurrent claims, and a quiet log."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from tests.claims import entry, new_uuid
from tests.concurrency.together import together
from tests.http_calls import HttpCalls

CLIENTS = 24
CAPACITY = 10
LONG = "member_of=in:" + ",".join(str(uuid4()) for _ in range(300))
"""A query of 11,000 characters, such as nova sends for a large group of aggregates."""


def walk_through(url: str) -> None:
    """Read and change various things, and make concurrent claims."""
    call = HttpCalls(url)
    found = call.ask("GET", "/")
    assert (found.status, found.document["versions"][0]["max_version"]) == (200, "1.39")
    uuid = _provider(call)
    assert call.ask("GET", f"/allocation_candidates?resources=VCPU:1&{LONG}").document["provider_summaries"] == {}
    assert list(call.ask("GET", "/allocation_candidates?resources=VCPU:1").document["provider_summaries"]) == [uuid]
    assert call.ask("PUT", "/traits/CUSTOM_%C3%84").status == 400
    refusal = call.ask("GET", f"/resource_providers/{new_uuid()}")
    assert (refusal.status, refusal.document["errors"][0]["status"]) == (404, 404)
    _claims_are_exact(call, uuid)


def _provider(call: HttpCalls) -> str:
    """Create a provider with some VCPUs, using links that must lead back through any proxy."""
    uuid = new_uuid()
    made = call.ask("POST", "/resource_providers", body={"name": uuid, "uuid": uuid})
    assert made.status == 200
    assert made.headers["location"] == f"{call.url}/resource_providers/{uuid}"
    assert made.document["links"][0] == {"rel": "self", "href": f"{urlsplit(call.url).path}/resource_providers/{uuid}"}
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": CAPACITY}}}
    assert call.ask("PUT", f"/resource_providers/{uuid}/inventories", body=stock).status == 200
    return uuid


def _claims_are_exact(call: HttpCalls, uuid: str) -> None:
    def claim(consumer: str) -> Callable[[], int]:
        return lambda: call.ask("PUT", f"/allocations/{consumer}", body=entry({uuid: {"VCPU": 1}})).status

    consumers = [new_uuid() for _ in range(CLIENTS)]
    answers = together([claim(consumer) for consumer in consumers])
    assert Counter(answers) == {204: CAPACITY, 409: CLIENTS - CAPACITY}
    assert call.ask("GET", f"/resource_providers/{uuid}/usages").document["usages"] == {"VCPU": CAPACITY}
    for consumer, status in zip(consumers, answers, strict=True):
        assert status == 409 or call.ask("DELETE", f"/allocations/{consumer}").status == 204


def log_is_quiet(log: Path) -> None:
    """Check that a server logged its requests, but no errors and no probes."""
    text = log.read_text(encoding="utf-8", errors="replace")
    assert '/resource_providers" status: 200' in text
    assert "Traceback" not in text
    assert '/" status:' not in text
    assert '/placement" status:' not in text
