"""What the server reports: of each request what was requested, by whom, the outcome, and the cost; of each search.

``Observed`` is outside the application's other layers, so that it also sees what they refuse.
"""

import time
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

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


Observer = Callable[[RequestRecord], object]
"""What is told about every request."""


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


MEANINGS = {
    "placement_request_seconds": "How long requests took, by method, route and status. A histogram.",
    "placement_sql_statements_total": "SQL statements that requests have sent.",
    "placement_candidate_search_seconds": "How long searches for candidates took. A histogram.",
    "placement_candidate_search_trees": "How many trees the candidates of an answer were in. A histogram.",
    "placement_candidate_search_candidates": "How many candidates an answer had. A histogram.",
    "placement_candidate_search_budget_hits_total": "Searches that reached their limit of steps.",
    "placement_candidate_search_empty_total": "Searches that found nothing, by cause.",
    "placement_candidate_cache_hits_total": "Searches that the server answered from its cache.",
    "placement_transaction_retries_total": "Transactions that the server repeated, by reason: deadlocks, "
    "serialization failures, lost connections, failures of the standby.",
    "placement_database_faults_total": "Requests answered with 503 because the database failed, by cause.",
    "placement_failed_writes_total": "Those of them that were to write, by cause.",
    "placement_caches_dropped_total": "How often a worker dropped its caches, by reason: triggers, if somebody "
    "changed them, or difference, if a cached tree was not as in the tables.",
    "placement_worker_starts_total": "Processes that have begun to serve; an increase means restarts.",
    "placement_requests_in_progress": "Requests that threads serve now, over all workers.",
    "placement_requests_waiting": "Requests that wait for a thread, with the shipped worker class.",
    "placement_threads": "Threads that serve requests, with the shipped worker class.",
    "placement_database_connections": "Database connections in use, over all workers.",
    "placement_database_connections_limit": "The largest number of database connections, over all workers.",
    "placement_journal_listeners": "Clients that follow the journal, over all workers.",
    "placement_caches_read_timestamp_seconds": "When the worker with the oldest caches last read them from the tables.",
    "placement_worker_memory_bytes": "Resident memory of each process.",
    "placement_build_info": "1, with the version of the server, of Python, and the kind of database.",
    "placement_usage_is_kept": "1 if triggers keep usage, 0 if they are missing or may have missed something.",
    "placement_journal_is_written": "1 if triggers write the journal, 0 if they are missing.",
    "placement_standby_is_used": "1 if the worker that was asked reads from the standby.",
    "placement_journal_rows": "Rows of the journal, at most.",
    "placement_journal_age_seconds": "Age of the oldest row of the journal.",
    "placement_journal_lag_seconds": "Age of the oldest row that readers cannot have yet; 0 except on MariaDB.",
    "openstack_placement_up": "1 if the database answers.",
    "openstack_placement_resource_total": "Total inventory of a resource class, by hostname and resourcetype.",
    "openstack_placement_resource_allocation_ratio": "Its allocation ratio.",
    "openstack_placement_resource_reserved": "How much of it is reserved.",
    "openstack_placement_resource_usage": "How much of it is allocated.",
    "openstack_placement_resource_generation": "The generation of the provider.",
    "openstack_placement_resource_provider_allocations": "What each consumer holds, with [metrics] allocations.",
    "openstack_free_capacity_by_flavor_total": "How many more instances of a flavor fit.",
    "openstack_free_capacity_hypervisor_by_flavor": "How many more fit on a host, with [headroom] by_hypervisor.",
}
"""What each metric means: help texts of ``/metrics``, and the reference page of metrics.

``_total`` ends the names of counters; histograms also have ``_bucket``, ``_sum`` and ``_count``.
"""
