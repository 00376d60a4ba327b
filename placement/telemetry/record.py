"""What the server reports: of each request what was requested, by whom, the outcome, and the cost; of each search.

``Observed`` is outside the application's other layers, so that it also sees what they refuse.
"""

import time
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from werkzeug.wsgi import ClosingIterator

from placement.store.connection.statements import statements_so_far

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from placement.domain.identity import ServedRequest

KEY = "placement.record"
"""The environ key for a request's record; no client header can set it."""

THREADS = "placement.threads"
"""The environ key of the ThreadUse, set by servers that know it."""

NO_ROUTE = "none"


class ThreadUse(NamedTuple):
    """How many threads serve requests, and a function that tells how many requests wait for one."""

    threads: int
    waiting: Callable[[], int]


class RequestRecord:
    """What is known about a request; filled in while it is served.

    ``route`` is the path with placeholders, or NO_ROUTE. ``duration_s`` and ``statements`` are valid once the body has
    been sent.
    """

    __slots__ = ("began", "duration_s", "environ", "length", "logged", "route", "statements", "status", "version")

    def __init__(self, environ: "WSGIEnvironment") -> None:
        self.environ = environ
        self.began = time.perf_counter()
        self.status = 0
        self.length = "-"
        self.route = NO_ROUTE
        self.version: str | None = None
        self.logged: ServedRequest | None = None
        self.statements = statements_so_far()
        self.duration_s = 0.0

    def end(self) -> None:
        """Compute the duration and the number of statements."""
        self.duration_s = time.perf_counter() - self.began
        self.statements = statements_so_far() - self.statements


class Observer(Protocol):
    """Something that is told about every request."""

    def __call__(self, record: RequestRecord) -> None:
        """Record a request."""


class Observed:
    """WSGI middleware that reports each request to observers when its response has been sent.

    ``when_begun`` are told about it before anything else has happened.
    """

    def __init__(
        self, application: "WSGIApplication", observers: Iterable[Observer], *, when_begun: Iterable[Observer] = ()
    ) -> None:
        self._application = application
        self._observers = tuple(observers)
        self._when_begun = tuple(when_begun)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        record = environ[KEY] = RequestRecord(environ)
        for observer in self._when_begun:
            observer(record)

        def begin(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Callable[[bytes], object]:
            record.status = int(status[:3])
            record.length = _length(headers)
            return start_response(status, headers, *exc_info)

        try:
            body = self._application(environ, begin)
        except Exception:
            # The WSGI server turns the exception into a 500.
            record.status = 500
            self._tell(record)
            raise

        def close() -> None:
            try:
                if close_body := getattr(body, "close", None):
                    close_body()
            finally:
                self._tell(record)

        return ClosingIterator(chain(body), close)

    def _tell(self, record: RequestRecord) -> None:
        record.end()
        for observer in self._observers:
            observer(record)


def _length(headers: list[tuple[str, str]]) -> str:
    for name, value in headers:
        if name.lower() == "content-length":
            return value
    return "-"


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class SearchSeen(NamedTuple):
    """One search for allocation candidates: its cost and its result.

    ``trees`` is the number of trees with candidates; ``complete`` is False if the search hit its budget;
    ``from_cache`` is True if no tree was searched but those that have changed since the request was last made.
    """

    duration_s: float
    trees: int
    candidates: int
    complete: bool
    from_cache: bool = False


class Meters:
    """Those of a server without metrics: they record nothing."""

    def searched(self, search: SearchSeen) -> None:
        """Record a search for candidates."""

    def found_nothing(self, cause: str) -> None:
        """Record, in one word, why a search found no candidates."""

    def listening(self, count: int) -> None:
        """Record how many clients follow the journal in this process."""

    def exposition(self) -> bytes | None:
        """Return all metrics in the Prometheus text format, or None if none are collected."""
        return None
