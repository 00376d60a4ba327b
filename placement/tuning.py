"""The memory of server processes: the garbage collector, what the C library retains, workers that grow too large."""

import ctypes
import gc
import logging
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from werkzeug.wsgi import ClosingIterator

from placement.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

RETAINED_BYTES = 16 * 2**20
"""How much freed memory the process retains for the next request."""
MAPPED_FROM_BYTES = 32 * 2**20
"""Larger blocks are returned to the system as soon as they are freed; this is the highest threshold glibc accepts."""

ARENAS = 1
"""All threads share one heap: the GIL lets only one allocate at a time, and each further heap would retain memory."""

MANY_NEW_OBJECTS = 50_000
"""After so many new objects, the collector looks for cycles among them, between two requests."""

MOST_NEW_OBJECTS = 10 * MANY_NEW_OBJECTS
"""After so many it looks even within a request."""

ROUNDS_PER_OLDER_ROUND = 20, 100
"""How often it looks at new objects per look at older ones, and how often at these per look at the oldest."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def tune_process() -> None:
    """Tune this process as a server, once everything permanent exists. Not for code that embeds an application.

    The collector never looks at existing objects again, so cycles among them, such as those of a test's
    application, are never freed.
    """
    spare_the_collector()
    retain_freed_memory()


def spare_the_collector() -> None:
    """Make garbage collection rare, and let ``collect`` do it: a large answer has many objects but few cycles.

    At the default thresholds, collections take half the time of such a request; and objects that live as long as the
    process are not worth scanning each time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(MOST_NEW_OBJECTS, *ROUNDS_PER_OLDER_ROUND)


def collect() -> None:
    """Look for cycles. To be called between requests if there are MANY_NEW_OBJECTS.

    A large answer has some 250,000 objects before it is complete, nearly all of which go away by themselves. To look at
    them until then would take a tenth of its time. In a process that is not tuned, the collector is faster.
    """
    _new, rounds, older_rounds = gc.get_count()
    max_rounds, max_older_rounds = ROUNDS_PER_OLDER_ROUND
    gc.collect(0 if rounds <= max_rounds else 1 if older_rounds <= max_older_rounds else 2)


def retain_freed_memory() -> None:
    """Let glibc retain some freed memory; other C libraries are left alone.

    By default it returns nearly all of it, and the kernel zeroes each page it hands out again: a tenth of the time of
    an answer of several megabytes.
    """
    if mallopt := _of_glibc("mallopt"):
        mallopt(_M_TRIM_THRESHOLD, RETAINED_BYTES)
        mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)
        mallopt(_M_ARENA_MAX, ARENAS)


def give_memory_back() -> None:
    """Return freed memory to the system after something memory-intensive; takes some milliseconds."""
    if trim := _of_glibc("malloc_trim"):
        trim(0)


def _of_glibc(function: str) -> Any:
    with suppress(AttributeError, OSError, TypeError):
        return getattr(ctypes.CDLL(None), function)
    return None


LOG = logging.getLogger(__name__)

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, or 0 where the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def resident_mb() -> int:
    """Return the resident memory of this process, or 0 where the system does not report it."""
    return resident_bytes(os.getpid()) >> 20


class ReplacedWhenLarge:
    """A WSGI application whose worker stops when it holds too much memory; gunicorn then starts a new one.

    On SIGTERM, a gunicorn worker accepts no further requests and finishes those in progress. Other servers have an
    option of their own (uWSGI: ``reload-on-rss``), so nothing happens there.
    """

    def __init__(self, application: "WSGIApplication", most_mb: int) -> None:
        """Wrap an application.

        Raises:
            ConfigurationError: this process holds more already, so each worker would stop after one request.
        """
        if (idle_mb := resident_mb()) >= most_mb:
            raise ConfigurationError(
                f"[api] max_worker_memory_mb is {most_mb}, but a worker holds {idle_mb} MB before its first request."
            )
        self._application = application
        self._most_mb = most_mb
        self._is_leaving = False

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        body = self._application(environ, start_response)
        if not environ.get("SERVER_SOFTWARE", "").startswith("gunicorn"):
            return body
        return ClosingIterator(body, self._look)

    def _look(self) -> None:
        if self._is_leaving or (held := resident_mb()) <= self._most_mb:
            return
        self._is_leaving = True
        LOG.info("This worker holds %d MB, more than [api] max_worker_memory_mb, and is being replaced.", held)
        os.kill(os.getpid(), signal.SIGTERM)
