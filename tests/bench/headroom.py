"""The cost of headroom: 50 flavors counted in one request, and one GET of candidates per flavor on the reference.

REFERENCE_PYTHON=... python -m tests.bench.headroom     a few minutes; the figures are in docs/performance.md

The reference answers something else: ways to serve the request, at most 1,000, not the number of copies.
"""

import argparse
from dataclasses import dataclass

from tests.bench import sampling
from tests.bench.cluster import running_cluster
from tests.bench.sampling import Series, Subject, spread
from tests.bench.sides import Answer, Caller, Starter
from tests.bench.work import checked

TIMEOUT_S = 600
FLAVORS = 50
LIMIT = 1000
FILL = 0.6


def flat_queries() -> list[str]:
    """Return flavors of three resource classes."""
    return [
        f"resources=VCPU:{1 + number % 16},MEMORY_MB:{1024 * (1 + number)},DISK_GB:{10 * (1 + number % 7)}"
        for number in range(FLAVORS)
    ]


def gpu_queries() -> list[str]:
    """Return flavors with GPUs: plain, on one NUMA node, several isolated ones, and with a NIC."""
    queries = []
    for number in range(FLAVORS):
        cores = 1 + number % 8
        node = f"resources_C=VCPU:{cores},MEMORY_MB:{cores * 4096}"
        pair = "resources_G=PGPU:1&resources_H=PGPU:1"
        isolated = "&".join(f"resources_{gpu}=PGPU:1" for gpu in range(1 + number % 3))
        queries += [
            [
                f"resources=VCPU:{cores},MEMORY_MB:{cores * 2048},PGPU:1,DISK_GB:{10 + number}",
                f"{node}&resources_G=PGPU:1&same_subtree=_C,_G&group_policy=none&resources=DISK_GB:{10 + number}",
                f"{isolated}&group_policy=isolate&resources=VCPU:{cores}",
                f"{node}&{pair}&resources_N=SRIOV_NET_VF:1&same_subtree=_C,_G,_H,_N&group_policy=isolate",
                f"resources_A=VCPU:{cores}&resources_B=VCPU:{cores + 2}&group_policy=isolate&resources_G=PGPU:1",
            ][number % 5]
        ]
    return queries


CLOUDS = ("flat-10000", "numa-gpu-1000")


def queries_for(cloud: str) -> list[str]:
    """Return the flavors that are counted in a cloud."""
    return flat_queries() if cloud.startswith("flat-") else gpu_queries()


@dataclass(frozen=True, slots=True)
class CountAll:
    """Counts all flavors at once."""

    queries: list[str]
    requests: int = 1

    def do(self, caller: Caller) -> list[Answer]:
        """Send one POST."""
        body = {"requests": {str(number): query for number, query in enumerate(self.queries)}}
        return [checked(caller("POST", "/planner/v1/headroom", body))]

    def undo(self, caller: Caller) -> None:
        """Do nothing: nothing was changed."""


@dataclass(frozen=True, slots=True)
class AskForEach:
    """Requests the candidates of each flavor, as exporters do."""

    queries: list[str]
    requests: int = FLAVORS

    def do(self, caller: Caller) -> list[Answer]:
        """Send a GET for each flavor."""
        return [checked(caller("GET", f"/allocation_candidates?{query}&limit={LIMIT}")) for query in self.queries]

    def undo(self, caller: Caller) -> None:
        """Do nothing: nothing was changed."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cloud", help="Only this cloud, such as flat-1000 or numa-gpu-100.")
    parser.add_argument("--alone", action="store_true", help="Leave the reference out.")
    chosen = parser.parse_args()
    with running_cluster(None, print) as cluster:
        for cloud in CLOUDS if chosen.cloud is None else [chosen.cloud]:
            starter, queries = Starter(cluster), queries_for(cloud)
            with starter.side("ours", cloud, fill=FILL) as ours:
                subject = Subject(ours, CountAll(queries), timeout_s=TIMEOUT_S)
                sampling.measure([subject], pairs=chosen.pairs)
                print(f"{cloud}: {FLAVORS} flavors counted in {_told(subject.series)}", flush=True)
            if not chosen.alone:
                with starter.side("reference", cloud, fill=FILL) as reference:
                    other = Subject(reference, AskForEach(queries), timeout_s=TIMEOUT_S)
                    other.try_once()
                print(f"{cloud}: {FLAVORS} GETs of the reference in {_told(other.series)}")


def _told(series: Series) -> str:
    if not series.samples:
        return f"more than {TIMEOUT_S} s for one of them"
    server, database = series.median("server_ms"), series.median("database_ms")
    cpu = spread([sample.cpu_ms for sample in series.samples])
    return f"{cpu.median:.0f} ms of CPU (server {server:.0f}, database {database:.0f})"


if __name__ == "__main__":
    main()
