"""The cost of POST /planner/v1/scores: the first candidate of each of 1,000 hosts, as nova's weigher sends them.

python -m tests.bench.scores     a minute, on PostgreSQL; the figures are in docs/performance.md

Exits with 1 if a cloud takes more than 15 ms of CPU on a machine with the usual floor.
"""

import sys
from dataclasses import dataclass
from typing import Any

from tests.bench import sampling
from tests.bench.cluster import running_cluster
from tests.bench.floor import floor
from tests.bench.sampling import Subject, spread
from tests.bench.sides import Answer, Caller, Order, Starter
from tests.bench.work import checked

QUERIES = {
    "flat-1000": "resources=VCPU:4,MEMORY_MB:1024,DISK_GB:10",
    "numa-gpu-1000": "resources=DISK_GB:1&resources1=VCPU:4,MEMORY_MB:1024&resources2=PGPU:1&group_policy=none",
}
FILL = 0.3
PAIRS, TIMEOUT_S = 10, 60
BAR_MS = 15.0


@dataclass(frozen=True, slots=True)
class ScoreAll:
    """Scores allocation requests in one request."""

    body: dict[str, Any]
    requests: int = 1

    def do(self, caller: Caller) -> list[Answer]:
        """Send one POST."""
        return [checked(caller("POST", "/planner/v1/scores", self.body))]

    def undo(self, caller: Caller) -> None:
        """Do nothing: nothing was changed."""


def first_candidates(caller: Caller, query: str) -> dict[str, Any]:
    """Return a body with the best candidates, one for each host, as far as there are that many."""
    answer = checked(caller("GET", f"/allocation_candidates?{query}&limit=1000"))
    requests = answer.document()["allocation_requests"]
    return {"allocation_requests": [{"allocations": request["allocations"]} for request in requests]}


def main() -> None:
    """Measure and print."""
    slowest = 0.0
    with running_cluster(None, print) as cluster:
        for cloud, query in QUERIES.items():
            with Starter(cluster).side("ours", cloud, fill=FILL, order=Order.BEST_FIRST) as ours:
                work = ScoreAll(first_candidates(ours.caller(timeout_s=TIMEOUT_S), query))
                subject = Subject(ours, work, timeout_s=TIMEOUT_S)
                sampling.measure([subject], pairs=PAIRS)
            print(reference := floor())  # of this minute: others may use the machine
            cpu = spread([sample.cpu_ms for sample in subject.series.samples])
            slowest = max(slowest, cpu.median / reference.slowness)
            hosts, spent = len(work.body["allocation_requests"]), f"{cpu.low:.1f} to {cpu.high:.1f} ms of CPU"
            print(f"{cloud}: {hosts} hosts scored in {spent}, median {cpu.median:.1f}", flush=True)
    sys.exit(slowest > BAR_MS)


if __name__ == "__main__":
    main()
