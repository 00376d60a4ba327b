"""The cost of processes so far: CPU time to the nanosecond, and peak memory. Linux only."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

Times = dict[int, int]
"""CPU time of processes in nanoseconds, by process id."""

CPU_CLOCK = 2
"""The kernel's CPUCLOCK_SCHED: all threads of a process, including those that have ended."""


@dataclass(frozen=True, slots=True)
class CpuMeter:
    """Reads the CPU time of a changing set of processes."""

    pids: Callable[[], Iterable[int]]

    def read(self) -> Times:
        """Return the CPU time of each running process."""
        return {pid: spent for pid in self.pids() if (spent := _cpu_time(pid)) is not None}


def spent_ms(before: Times, after: Times) -> float:
    """Return the CPU time between two readings; all time of a new process counts."""
    return sum(spent - before.get(pid, 0) for pid, spent in after.items()) / 1e6


def with_children(pid: int) -> list[int]:
    """Return a process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        children = ""
    return [pid, *map(int, children.split())]


def forget_peak_memory(pids: Iterable[int]) -> None:
    """Reset each process's peak to its current memory."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_memory_mib(pids: Iterable[int]) -> float:
    """Return the highest peak memory of the processes."""
    return max(_status_kib(pid, "VmHWM") for pid in pids) / 1024


@dataclass(frozen=True, slots=True)
class Held:
    """The memory of a process in MB: what it alone holds, and its proportional share of what several hold."""

    private_mb: float
    share_mb: float


def held(pid: int) -> Held:
    """Return the current memory of a process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.partition(":")[0]: int(line.split()[1]) for line in lines}
    return Held((kib["Private_Dirty"] + kib["Private_Clean"]) / 1024, kib["Pss"] / 1024)


def _cpu_time(pid: int) -> int | None:
    try:
        return time.clock_gettime_ns((~pid << 3) | CPU_CLOCK)
    except OSError:
        return None  # It has exited.


def _status_kib(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
