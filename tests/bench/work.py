"""The work that is measured: what one client sends, once."""

import itertools
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.rows import provider_uuid
from tests.bench.sides import NEW, PROJECT, Answer, Caller

OWNER = {"project_id": PROJECT, "user_id": PROJECT, "consumer_type": "INSTANCE", "consumer_generation": None}
REGISTERED_TRAITS = ["HW_CPU_X86_AVX2", "COMPUTE_VOLUME_MULTI_ATTACH", "STORAGE_DISK_SSD"]
REGISTERED_INVENTORIES = {"VCPU": 64, "MEMORY_MB": 262144, "DISK_GB": 2000}
PLANNER = "/planner/v1"

Work = Callable[[Caller], int]
"""Sends requests, and returns how much was achieved: 1, or how many consumers of a claim got what they want."""

Body = Mapping[str, Any]
_numbers = itertools.count()


class UnexpectedAnswer(Exception):
    """A server's answer was not the one the work expects."""


def checked(answer: Answer) -> Answer:
    """Return the answer if it was successful."""
    if answer.status >= 300:
        raise UnexpectedAnswer(f"{answer.status}: {answer.body[:500].decode(errors='replace')}")
    return answer


@dataclass(frozen=True, slots=True)
class Get:
    """Reads something."""

    path: str

    def __call__(self, caller: Caller) -> int:
        """Send the GET."""
        checked(caller("GET", self.path))
        return 1


@dataclass(frozen=True, slots=True)
class Post:
    """Asks something by POST."""

    path: str
    body: Body

    def __call__(self, caller: Caller) -> int:
        """Send the POST."""
        checked(caller("POST", self.path, self.body))
        return 1


def candidates(query: str, *, limit: int | None = None) -> Get:
    """Return the work of requesting allocation candidates."""
    return Get(f"/allocation_candidates?{query}" + (f"&limit={limit}" if limit else ""))


def of_provider(name: str, what: str) -> Get:
    """Return the work of reading something of one provider."""
    return Get(f"/resource_providers/{provider_uuid(name)}/{what}")


def in_turn(*works: Work) -> Work:
    """Return several kinds of work as one."""
    return lambda caller: min([work(caller) for work in works])


def claim_and_free(allocations: Mapping[str, Mapping[str, int]]) -> Work:
    """Return the work of allocating for a new consumer, and of deleting that."""
    taken = {provider_uuid(name): {"resources": amounts} for name, amounts in allocations.items()}

    def work(caller: Caller) -> int:
        path = f"/allocations/{uuid.uuid4()}"
        checked(caller("PUT", path, {"allocations": taken, **OWNER}))
        checked(caller("DELETE", path))
        return 1

    return work


def get_and_put(query: str, *, limit: int = 10, choose: Callable[[Sequence[Any]], Any] = random.choice) -> Work:
    """Return the work of a scheduler: get candidates, allocate one of them.

    By default it is a random one, because a scheduler prefers candidates for reasons of its own.
    """

    def work(caller: Caller) -> int:
        offered = checked(caller("GET", f"/allocation_candidates?{query}&limit={limit}")).document()
        body = {**choose(offered["allocation_requests"]), **OWNER}
        return _is_allocated(caller("PUT", f"/allocations/{uuid.uuid4()}", body), status=204)

    return work


def planner_claim(body: Body) -> Work:
    """Return the work of claiming through the planner."""

    def work(caller: Caller) -> int:
        answer = caller("POST", f"{PLANNER}/claims", {**body, "consumer": {"uuid": str(uuid.uuid4()), **OWNER}})
        return int(body.get("members", 1)) * _is_allocated(answer, status=201)

    return work


def _is_allocated(answer: Answer, *, status: int) -> int:
    return int((answer if answer.status == 409 else checked(answer)).status == status)


def score_all(query: str) -> Work:
    """Return the work of scoring the best candidate of every host, as nova's weigher does."""
    bodies: list[Body] = []

    def work(caller: Caller) -> int:
        if not bodies:
            offered = checked(caller("GET", f"/allocation_candidates?{query}&limit=1000")).document()
            requests = [{"allocations": each["allocations"]} for each in offered["allocation_requests"]]
            bodies.append({"allocation_requests": requests})
        return Post(f"{PLANNER}/scores", bodies[0])(caller)

    return work


def register(caller: Caller) -> int:
    """Register a provider as nova-compute does when it starts: provider, inventories, traits."""
    new = str(uuid.uuid4())
    path = f"/resource_providers/{new}"
    checked(caller("POST", "/resource_providers", {"uuid": new, "name": f"{NEW}{next(_numbers)}-{new}"}))
    totals = {name: {"total": total, "max_unit": total} for name, total in REGISTERED_INVENTORIES.items()}
    checked(caller("PUT", f"{path}/inventories", {"resource_provider_generation": 0, "inventories": totals}))
    checked(caller("PUT", f"{path}/traits", {"resource_provider_generation": 1, "traits": REGISTERED_TRAITS}))
    return 1
