"""Short helpers for providers and claims, and for reading them back, based on the ``api`` fixture."""

import uuid
from typing import Any, Protocol

from werkzeug.test import TestResponse

Shares = dict[str, dict[str, Any]]
"""Amounts by class, by provider."""

SERVICE = {"x-roles": "service"}
"""Headers of a service user such as nova, which may reshape; administrators may not."""

OWNER = {"project_id": "project", "user_id": "user"}


class Client(Protocol):
    """Sends requests as the admin."""

    def request(self, method: str, path: str, *, version: str = ..., **options: Any) -> TestResponse: ...


def new_uuid() -> str:
    return str(uuid.uuid4())


def ask(api: Client, method: str, path: str, version: str = "1.39", body: object = None) -> Any:
    """Send a request that must succeed and return the answer's document."""
    answer = api.request(method, path, version=version, **({} if body is None else {"json": body}))
    assert answer.status_code < 300, answer.text
    return answer.get_json(silent=True)


def error_of(answer: TestResponse, status: int = 400) -> dict[str, Any]:
    """Return the one error of an answer that refuses a request."""
    assert answer.status_code == status, answer.text
    (error,) = answer.get_json()["errors"]
    found: dict[str, Any] = error
    return found


def detail_of(answer: TestResponse, status: int = 400) -> str:
    """Return what an answer that refuses a request says."""
    return str(error_of(answer, status)["detail"])


def make_provider(api: Client, **inventories: int | dict[str, Any]) -> str:
    """Create a provider; an inventory is a total, or its fields."""
    identity = new_uuid()
    ask(api, "POST", "/resource_providers", body={"name": identity, "uuid": identity})
    if inventories:
        set_inventories(api, identity, **inventories)
    return identity


def set_inventories(api: Client, provider: str, **inventories: int | dict[str, Any]) -> None:
    body = {
        "resource_provider_generation": generation(api, provider),
        "inventories": {name: {"total": of} if isinstance(of, int) else of for name, of in inventories.items()},
    }
    ask(api, "PUT", f"/resource_providers/{provider}/inventories", body=body)


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


def claimed(api: Client, shares: Shares, **changed: Any) -> str:
    """Claim for a new consumer and return its uuid."""
    consumer = new_uuid()
    ask(api, "PUT", f"/allocations/{consumer}", body=entry(shares, **changed))
    return consumer


def held(api: Client, consumer: str) -> Shares:
    """Return what a consumer holds."""
    found = ask(api, "GET", f"/allocations/{consumer}")["allocations"]
    return {provider: share["resources"] for provider, share in found.items()}


def used(api: Client, provider: str) -> dict[str, int]:
    usages: dict[str, int] = ask(api, "GET", f"/resource_providers/{provider}/usages")["usages"]
    return usages


def generation(api: Client, provider: str) -> int:
    number: int = ask(api, "GET", f"/resource_providers/{provider}")["generation"]
    return number


def consumer_generation(api: Client, consumer: str) -> int | None:
    """Return a consumer's generation, or None if it holds nothing."""
    number: int | None = ask(api, "GET", f"/allocations/{consumer}").get("consumer_generation")
    return number
