"""Clients that claim as fast as they can: get ten candidates, allocate one of them, repeat."""

import random
import statistics
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.bench.meters import spent_ms
from tests.bench.sampling import Spread, spread
from tests.bench.sides import Answer, Caller, Running, Side
from tests.bench.work import OWNER, UnexpectedAnswer, checked

LIMIT = 10
TIMEOUT_S = 60


Choose = Callable[[Sequence[Any]], Any]
"""Chooses which of the candidates a client claims."""


@dataclass(slots=True)
class Claimed:
    """What one client achieved, or all of them together."""

    consumers: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    last_at: float = 0.0

    def add(self, other: "Claimed") -> None:
        """Add what another client achieved."""
        self.consumers += other.consumers
        self.refused += other.refused
        self.last_at = max(self.last_at, other.last_at)


@dataclass(frozen=True, slots=True)
class ClaimSample:
    """One period of claiming."""

    per_second: float
    cpu_ms: float


@dataclass(slots=True)
class ClaimSeries:
    """All periods of one side; ``refused`` counts the 409 responses by reason."""

    samples: list[ClaimSample] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    claims: int = 0

    def median(self, attribute: str) -> float:
        """Return the median of an attribute over the samples."""
        return float(statistics.median(getattr(sample, attribute) for sample in self.samples))


def times_as_fast(ours: ClaimSeries, theirs: ClaimSeries) -> Spread:
    """Return how many times as many claims per second the first series made, pair by pair."""
    pairs = zip(ours.samples, theirs.samples, strict=True)
    return spread([mine.per_second / other.per_second for mine, other in pairs])


def measure_claims(
    sides: Sequence[Side], query: str, *, clients: int, pairs: int, seconds: float, choose: Choose = random.choice
) -> list[ClaimSeries]:
    """Let clients claim on each side in turn; the claims are deleted after each period.

    By default each client claims a random candidate, because a scheduler prefers candidates for reasons of its own.
    """
    found = [ClaimSeries() for _ in sides]
    for side in sides:
        _stretch(side, query, clients=clients, seconds=0.1, choose=choose)
    for _ in range(pairs):
        for side, series in zip(sides, found, strict=True):
            sample, claimed = _stretch(side, query, clients=clients, seconds=seconds, choose=choose)
            series.samples.append(sample)
            series.refused += claimed.refused
            series.claims += len(claimed.consumers)
    return found


def _stretch(side: Side, query: str, *, clients: int, seconds: float, choose: Choose) -> tuple[ClaimSample, Claimed]:
    running, total = side.running, Claimed()
    callers = [side.caller(timeout_s=TIMEOUT_S) for _ in range(clients)]
    results = [Claimed() for _ in callers]
    server, database = running.server.read(), running.database.read()
    begun = time.monotonic()
    threads = [
        threading.Thread(target=_claim_until, args=(caller, query, begun + seconds, result, choose))
        for caller, result in zip(callers, results, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        total.add(result)
    cpu_ms = spent_ms(server, running.server.read()) + spent_ms(database, running.database.read())
    if not total.consumers:
        raise UnexpectedAnswer(f"nobody on {side.name} could claim anything: {total.refused}")
    _forget(running, total.consumers)
    # Until the last claim, not until the deadline: a slow server makes few claims, so the unfinished one would matter.
    sample = ClaimSample(len(total.consumers) / (total.last_at - begun), cpu_ms / len(total.consumers))
    return sample, total


def _claim_until(caller: Caller, query: str, deadline: float, result: Claimed, choose: Choose) -> None:
    """Claim until the deadline, at least once."""
    while True:
        _claim_once(caller, query, choose, result)
        if time.monotonic() >= deadline:
            return


def _claim_once(caller: Caller, query: str, choose: Choose, result: Claimed) -> None:
    offered = checked(caller("GET", f"/allocation_candidates?{query}&limit={LIMIT}")).document()
    chosen = choose(offered["allocation_requests"])
    consumer = str(uuid.uuid4())
    answer = caller("PUT", f"/allocations/{consumer}", {**chosen, "consumer_generation": None, **OWNER})
    if answer.status == 409:
        result.refused[_reason(answer)] += 1
        return
    checked(answer)
    result.consumers.append(consumer)
    result.last_at = time.monotonic()


def _reason(answer: Answer) -> str:
    """Return why a claim was refused: "full" if the host was full by then, otherwise the error code."""
    error = answer.document()["errors"][0]
    return "full" if "exceed the capacity" in error["detail"] else str(error.get("code", "no code"))


def _forget(running: Running, consumers: list[str]) -> None:
    """Delete the allocations and consumers by SQL, and vacuum the tables."""
    assert running.database_url is not None
    with psycopg.connect(running.database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM allocations WHERE consumer_id = ANY(%s)", [consumers])
        connection.execute("DELETE FROM consumers WHERE uuid = ANY(%s)", [consumers])
        connection.execute("VACUUM ANALYZE")
