"""What a process does with memory, tuned for a server: the garbage collector, and what the C library keeps."""

import ctypes
import gc

KEPT_BYTES = 16 * 2**20
"""So much freed memory stays with the process for the next request."""
MAPPED_FROM_BYTES = 32 * 2**20
"""What is larger is handed back as soon as it is freed: the most that glibc can be told."""

ARENAS = 1
"""Threads share one heap: Python lets one at a time allocate, and a heap each would keep freed memory of its own."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def tune_process() -> None:
    """Make a process a server: what belongs to it was made, now the requests come. Not for who embeds an application.

    What exists now is never looked at again by the collector, so what is thrown away later, a test's application say,
    would stay for good.
    """
    spare_the_collector()
    keep_freed_memory()


def spare_the_collector() -> None:
    """Let the garbage collector run seldom: a large answer makes many objects and no cycles.

    At its usual thresholds it takes half the time of such a request; and what lives as long as the process is not
    worth a look at every collection.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def keep_freed_memory() -> None:
    """Let glibc keep some of what is freed; other C libraries go on as they do.

    It hands back all but a little, and the system clears each page that it gives out again: a tenth of the time of an
    answer of some megabytes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)
    mallopt(_M_ARENA_MAX, ARENAS)


def give_memory_back() -> None:
    """Give freed memory back to the system, after something that took much of it: some milliseconds."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
