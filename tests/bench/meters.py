"""The cost of processes so far: CPU time to the nanosecond, and memory. Linux only.

``python -m tests.bench.meters`` prints the floor of this machine, by which absolute CPU times can be read: machines
differ by a factor of three, and so do hours. Benchmarks whose bars are absolute divide by it.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from flask import Flask

CPU_CLOCK = 2
"""The kernel's CPUCLOCK_SCHED: all threads of a process, including those that have ended."""

ANSWER_BYTES = 1_000
SERIES, REQUESTS = 30, 50
USUAL_FLOOR_MS = 0.2
"""The floor of the machines for which absolute bars are meant."""


Pids = Callable[[], Iterable[int]]
"""Returns the processes of a server, which may change."""


@contextlib.contextmanager
def metered(processes: Mapping[str, Pids]) -> Iterator[dict[str, float]]:
    """Yield what is filled in afterwards: the CPU time in ms that groups of processes spend meanwhile."""
    spent: dict[str, float] = {}
    before = {name: _cpu_times(pids()) for name, pids in processes.items()}
    yield spent
    for name, pids in processes.items():
        spent[name] = sum(time - before[name].get(pid, 0) for pid, time in _cpu_times(pids()).items()) / 1e6


def with_children(pid: int) -> list[int]:
    """Return a process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        children = ""
    return [pid, *map(int, children.split())]


def postmaster(data_directory: str) -> Pids:
    """Return what tells the processes of the PostgreSQL that has its data in a directory."""
    pid = int((Path(data_directory) / "postmaster.pid").read_text().split()[0])
    return lambda: with_children(pid)


class Memory(NamedTuple):
    """The memory of a process in MB: what it alone holds, and its proportional share of what several hold."""

    private_mb: float
    share_mb: float


def memory_of(pid: int) -> Memory:
    """Return the current memory of a process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.partition(":")[0]: int(line.split()[1]) for line in lines}
    return Memory((kib["Private_Dirty"] + kib["Private_Clean"]) / 1024, kib["Pss"] / 1024)


def cpu_ms(work: Callable[[], object], *, repeats: int) -> float:
    """Return the median CPU time that some work takes in this process."""
    spent = []
    for _ in range(repeats):
        begun = time.process_time_ns()
        work()
        spent.append((time.process_time_ns() - begun) / 1e6)
    return statistics.median(spent)


class Floor(NamedTuple):
    """The CPU time that Flask takes to return a stored answer in this process."""

    ms: float

    @property
    def slowness(self) -> float:
        """How many times slower this machine is than those for which absolute bars are meant; 1 if it is faster."""
        return max(1.0, self.ms / USUAL_FLOOR_MS)

    def __str__(self) -> str:
        """Return it in words."""
        return f"floor: a stored answer of {ANSWER_BYTES} bytes takes {self.ms:.3f} ms of CPU"


def floor() -> Floor:
    """Measure the floor."""
    application, stored = Flask("floor"), b"x" * ANSWER_BYTES
    application.add_url_rule("/", view_func=lambda: stored)
    client = application.test_client()
    return Floor(cpu_ms(lambda: [client.get("/") for _ in range(REQUESTS)], repeats=SERIES) / REQUESTS)


def _cpu_times(pids: Iterable[int]) -> dict[int, int]:
    """Return the CPU time of each running process in nanoseconds."""
    times = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # It has exited.
            times[pid] = time.clock_gettime_ns((~pid << 3) | CPU_CLOCK)
    return times


if __name__ == "__main__":
    print(floor())
