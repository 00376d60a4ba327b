"""How much of the machine this process may use."""

import math
import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU quota: quota and period in microseconds, or ``max``."""


def cores(quota: Path = QUOTA) -> int:
    """Return how many cores this process may use, taking a container's quota into account."""
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = _share(quota)
    return present if share is None else max(1, min(present, math.ceil(share)))


def _share(quota: Path) -> float | None:
    """Return the quota in cores, or None if there is none ("max") or it is malformed."""
    try:
        given, period = quota.read_text().split()
        return int(given) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
