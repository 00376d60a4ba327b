"""The work that is measured: what is sent to a server, once, and how to undo it."""

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.bench.rows import provider_uuid
from tests.bench.sides import Answer, Caller

OWNER = {"project_id": "bench", "user_id": "bench", "consumer_type": "INSTANCE"}
REGISTERED_TRAITS = ["HW_CPU_X86_AVX2", "COMPUTE_VOLUME_MULTI_ATTACH", "STORAGE_DISK_SSD"]
REGISTERED_INVENTORIES = {"VCPU": 64, "MEMORY_MB": 262144, "DISK_GB": 2000}


class UnexpectedAnswer(Exception):
    """A server's answer was not the one the work expects."""


class Work(Protocol):
    """A unit of work."""

    @property
    def requests(self) -> int:
        """The number of HTTP requests it takes."""

    def do(self, caller: Caller) -> list[Answer]:
        """Send the requests and return the answers."""

    def undo(self, caller: Caller) -> None:
        """Remove what was left behind since the last call."""


@dataclass(frozen=True, slots=True)
class Get:
    """Reads something."""

    path: str
    requests: int = 1

    def do(self, caller: Caller) -> list[Answer]:
        """Send the GET."""
        return [checked(caller("GET", self.path))]

    def undo(self, caller: Caller) -> None:
        """Do nothing: nothing was changed."""


@dataclass(frozen=True, slots=True)
class ClaimAndFree:
    """Allocates for a new consumer and deletes the allocation."""

    allocations: dict[str, dict[str, int]]
    requests: int = 2

    def do(self, caller: Caller) -> list[Answer]:
        """Send PUT and DELETE."""
        path = f"/allocations/{uuid.uuid4()}"
        taken = {provider: {"resources": resources} for provider, resources in self.allocations.items()}
        body = {"allocations": taken, "consumer_generation": None, **OWNER}
        return [checked(caller("PUT", path, body)), checked(caller("DELETE", path))]

    def undo(self, caller: Caller) -> None:
        """Do nothing: the work undoes itself."""


@dataclass(frozen=True, slots=True)
class InTurn:
    """Several kinds of work in turn, so that the last one cannot be answered as before."""

    works: tuple[Work, ...]

    @property
    def requests(self) -> int:
        """The total number of HTTP requests."""
        return sum(work.requests for work in self.works)

    def do(self, caller: Caller) -> list[Answer]:
        """Do all of them."""
        return [answer for work in self.works for answer in work.do(caller)]

    def undo(self, caller: Caller) -> None:
        """Undo all of them."""
        for work in self.works:
            work.undo(caller)


@dataclass(frozen=True, slots=True)
class FirstCandidate:
    """Gets candidates and allocates the first, as a scheduler does."""

    query: str
    requests: int = 2
    made: list[str] = field(default_factory=list)

    def do(self, caller: Caller) -> list[Answer]:
        """Send GET and PUT."""
        offered = checked(caller("GET", f"/allocation_candidates?{self.query}&limit=10"))
        path = f"/allocations/{uuid.uuid4()}"
        body = {**offered.document()["allocation_requests"][0], "consumer_generation": None, **OWNER}
        claimed = checked(caller("PUT", path, body))
        self.made.append(path)
        return [offered, claimed]

    def undo(self, caller: Caller) -> None:
        """Delete the allocations."""
        while self.made:
            checked(caller("DELETE", self.made.pop()))


@dataclass(frozen=True, slots=True)
class PlannerClaim:
    """Claims through the planner."""

    resources: dict[str, int]
    requests: int = 1
    made: list[str] = field(default_factory=list)

    def do(self, caller: Caller) -> list[Answer]:
        """Send POST."""
        consumer = str(uuid.uuid4())
        body = {"groups": {"": {"resources": self.resources}}, "consumer": {"uuid": consumer, **OWNER}}
        claimed = checked(caller("POST", "/planner/v1/claims", body))
        self.made.append(f"/allocations/{consumer}")
        return [claimed]

    def undo(self, caller: Caller) -> None:
        """Delete the allocations."""
        while self.made:
            checked(caller("DELETE", self.made.pop()))


@dataclass(frozen=True, slots=True)
class Register:
    """Registers a provider as nova-compute does when it starts: provider, inventories, traits."""

    requests: int = 3
    made: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def do(self, caller: Caller) -> list[Answer]:
        """Send POST, PUT and PUT."""
        new = str(uuid.uuid4())
        path = f"/resource_providers/{new}"
        first = caller("POST", "/resource_providers", {"uuid": new, "name": f"new-{next(self._numbers)}-{new}"})
        totals = {name: {"total": total, "max_unit": total} for name, total in REGISTERED_INVENTORIES.items()}
        inventories = {"resource_provider_generation": 0, "inventories": totals}
        second = caller("PUT", f"{path}/inventories", inventories)
        traits = {"resource_provider_generation": 1, "traits": REGISTERED_TRAITS}
        third = caller("PUT", f"{path}/traits", traits)
        self.made.append(path)
        return [checked(first), checked(second), checked(third)]

    def undo(self, caller: Caller) -> None:
        """Delete the providers."""
        while self.made:
            checked(caller("DELETE", self.made.pop()))


def checked(answer: Answer) -> Answer:
    """Return the answer if it was successful."""
    if answer.status >= 300:
        raise UnexpectedAnswer(f"{answer.status}: {answer.body[:500].decode(errors='replace')}")
    return answer


def candidates(query: str, *, limit: int | None = None) -> Get:
    """Return the work of requesting allocation candidates."""
    return Get(f"/allocation_candidates?{query}" + (f"&limit={limit}" if limit else ""))


def of_provider(name: str, what: str) -> Get:
    """Return the work of reading something of one provider."""
    return Get(f"/resource_providers/{provider_uuid(name)}/{what}")


def claim_on_flat(host: str) -> dict[str, dict[str, int]]:
    """Return the allocation of a small instance on a flat host."""
    return {provider_uuid(host): {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10}}


def claim_on_nested(host: str) -> dict[str, dict[str, int]]:
    """Return the allocation of a small instance on a host with NUMA nodes."""
    return {
        provider_uuid(host): {"DISK_GB": 10},
        provider_uuid(f"{host}-numa0"): {"VCPU": 1, "MEMORY_MB": 512},
        provider_uuid(f"{host}-numa0-pf0"): {"SRIOV_NET_VF": 1},
    }


def candidate_count(document: Any) -> int | None:
    """Return how many candidates an answer has, or None for other kinds of answers."""
    if isinstance(document, dict) and "allocation_requests" in document:
        return len(document["allocation_requests"])
    return None
