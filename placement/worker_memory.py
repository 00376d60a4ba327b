"""Replacement of a worker that has grown too large, between two requests: ``[api] max_worker_memory_mb``."""

import logging
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from werkzeug.wsgi import ClosingIterator

from placement.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

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
