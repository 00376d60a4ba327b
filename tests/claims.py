"""Short helpers for providers and claims, and for reading them back, over whatever sends requests (``Call``)."""

import uuid
from typing import Any

from werkzeug.test import TestResponse

from tests.http_calls import Call, ask

Shares = dict[str, dict[str, Any]]
"""Amounts by class, by provider."""

SERVICE = {"x-roles": "service"}
"""Headers of a service user such as nova, which may reshape; administrators may not."""

OWNER = {"project_id": "project", "user_id": "user"}


def new_uuid() -> str:
    return str(uuid.uuid4())


def error_of(answer: TestResponse, status: int = 400) -> dict[str, Any]:
    """Return the one error of an answer that refuses a request."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any]
    (error,) = answer.get_json()["errors"]
    return error


def detail_of(answer: TestResponse, status: int = 400) -> str:
    """Return what an answer that refuses a request says."""
    return str(error_of(answer, status)["detail"])


def sentence_of(answer: TestResponse, status: int = 400) -> str:
    """Return the last line of that, which is all that the openstack command shows."""
    return detail_of(answer, status).splitlines()[-1]


def make_provider(call: Call, **inventories: int | dict[str, Any]) -> str:
    """Create a provider; an inventory is a total, or its fields."""
    identity = new_uuid()
    ask(call, "POST", "/resource_providers", body={"name": identity, "uuid": identity})
    if inventories:
        set_inventories(call, identity, **inventories)
    return identity


def set_inventories(call: Call, provider: str, **inventories: int | dict[str, Any]) -> None:
    stocks = {name: {"total": of} if isinstance(of, int) else of for name, of in inventories.items()}
    change(call, provider, "inventories", stocks)


def change(call: Call, provider: str, part: str, value: object) -> None:
    """Replace the inventories, traits or aggregates of a provider, at its current generation."""
    body = {"resource_provider_generation": generation(call, provider), part: value}
    ask(call, "PUT", f"/resource_providers/{provider}/{part}", body=body)


def entry(shares: Shares, consumer_generation: int | None = None, **changed: Any) -> dict[str, Any]:
    """Return a body as of 1.38; the consumer must be at the generation (None: must be new)."""
    return {
        "allocations": {provider: {"resources": resources} for provider, resources in shares.items()},
        "consumer_generation": consumer_generation,
        "consumer_type": "INSTANCE",
        **OWNER,
        **changed,
    }


def proposed(candidate: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return a body as of 1.38 that takes a candidate, as ``GET /allocation_candidates`` answers with."""
    return {**entry({}), **candidate, **changed}


def old_entry(shares: Shares, **changed: Any) -> dict[str, Any]:
    """Return a body as of 1.12 to 1.27, where the consumer's generation is not compared."""
    allocations = {provider: {"resources": resources} for provider, resources in shares.items()}
    return {"allocations": allocations, **OWNER, **changed}


def listed_entry(shares: Shares, **changed: Any) -> dict[str, Any]:
    """Return a body as of 1.0 to 1.11."""
    allocations = [{"resource_provider": {"uuid": uuid}, "resources": resources} for uuid, resources in shares.items()]
    return {"allocations": allocations, **changed}


def claimed(call: Call, shares: Shares, **changed: Any) -> str:
    """Claim for a new consumer and return its uuid."""
    consumer = new_uuid()
    ask(call, "PUT", f"/allocations/{consumer}", body=entry(shares, **changed))
    return consumer


def held(call: Call, consumer: str) -> Shares:
    """Return what a consumer holds."""
    shares = ask(call, "GET", f"/allocations/{consumer}")["allocations"]
    return {provider: share["resources"] for provider, share in shares.items()}


def used(call: Call, provider: str) -> dict[str, int]:
    usages: dict[str, int] = ask(call, "GET", f"/resource_providers/{provider}/usages")["usages"]
    return usages


def generation(call: Call, provider: str) -> int:
    number: int = ask(call, "GET", f"/resource_providers/{provider}")["generation"]
    return number


def consumer_generation(call: Call, consumer: str) -> int | None:
    """Return a consumer's generation, or None if it holds nothing."""
    number: int | None = ask(call, "GET", f"/allocations/{consumer}").get("consumer_generation")
    return number
