"""What processes have cost so far: CPU time to the nanosecond, and the most memory they held. Linux only."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

Times = dict[int, int]
"""CPU time of processes in nanoseconds, by process id."""

CPU_CLOCK = 2
"""What the kernel calls CPUCLOCK_SCHED: all threads of a process, those that have ended included."""


@dataclass(frozen=True, slots=True)
class CpuMeter:
    """Reads the CPU time of a changing set of processes."""

    pids: Callable[[], Iterable[int]]

    def read(self) -> Times:
        """Return the CPU time of each process that is there now."""
        return {pid: spent for pid in self.pids() if (spent := _cpu_time(pid)) is not None}


def spent_ms(before: Times, after: Times) -> float:
    """Return the CPU time between two readings; a process that is new has spent all of its own."""
    return sum(spent - before.get(pid, 0) for pid, spent in after.items()) / 1e6


def with_children(pid: int) -> list[int]:
    """Return a process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        children = ""
    return [pid, *map(int, children.split())]


def forget_peak_memory(pids: Iterable[int]) -> None:
    """Make the peak of each process what it holds now."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_memory_mib(pids: Iterable[int]) -> float:
    """Return the most memory that any of the processes held."""
    return max(_status_kib(pid, "VmHWM") for pid in pids) / 1024


@dataclass(frozen=True, slots=True)
class Held:
    """What a process holds, in MB: what no other has, and its proportional share with what several have."""

    private_mb: float
    share_mb: float


def held(pid: int) -> Held:
    """Return what a process holds now."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.partition(":")[0]: int(line.split()[1]) for line in lines}
    return Held((kib["Private_Dirty"] + kib["Private_Clean"]) / 1024, kib["Pss"] / 1024)


def _cpu_time(pid: int) -> int | None:
    try:
        return time.clock_gettime_ns((~pid << 3) | CPU_CLOCK)
    except OSError:
        return None  # It has ended.


def _status_kib(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
