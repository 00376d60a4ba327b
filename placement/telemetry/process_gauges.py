"""What the processes of a server are doing at the moment, for metrics: each keeps its own numbers, a scrape adds up.

Importing this module imports prometheus_client, an optional dependency.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge

from placement.store.connection.database import Database
from placement.telemetry.record import THREADS, RequestRecord, ThreadUse
from placement.telemetry.shared_directory import living_processes
from placement.worker_memory import resident_bytes


class ProcessGauges:
    """The gauges of this process.

    Args:
        registry: where they belong; it is never scraped itself, scrapes read the files of all processes.
        database: whose connections are counted.
    """

    def __init__(self, registry: CollectorRegistry, database: Database) -> None:
        gauge = partial(Gauge, registry=registry, multiprocess_mode="livesum")
        self._requests = gauge("placement_requests_in_progress", "Requests being served.")
        self._queue = gauge("placement_requests_waiting", "Requests that wait for a thread.")
        self._threads = gauge("placement_threads", "Threads that serve requests.")
        self._connections = gauge("placement_database_connections", "Database connections in use.")
        self._most_connections = gauge("placement_database_connections_limit", "The most database connections.")
        self._listeners = gauge("placement_journal_listeners", "Clients that follow the journal.")
        self._cached_since = Gauge(
            "placement_caches_read_timestamp_seconds",
            "When the worker with the oldest caches has last read them from the tables.",
            ("of",),
            registry=registry,
            multiprocess_mode="livemin",
        )
        self._starts = Counter("placement_worker_starts", "Processes that have begun to serve.", registry=registry)
        self._database = database
        self._introduced: int | None = None
        database.watch_pool(taken=self._connections.inc, given_back=self._connections.dec)
        database.on_read_anew = self._note_caches

    def begin(self, record: RequestRecord) -> None:
        """Note that a request has begun."""
        if self._introduced != os.getpid():
            self._introduced = os.getpid()
            self._starts.inc()
            self._most_connections.set(self._database.most_connections)
            self._note_caches()  # They may have been read before this process was forked.
        self._requests.inc()
        self._note_threads(record)

    def end(self, record: RequestRecord) -> None:
        """Note that a request has ended."""
        self._requests.dec()
        self._note_threads(record)

    def listening(self, count: int) -> None:
        """Note how many clients follow the journal in this process."""
        self._listeners.set(count)

    def _note_caches(self) -> None:
        if self._database.read_anew_at is not None:
            self._cached_since.labels("trees").set(self._database.read_anew_at)

    def _note_threads(self, record: RequestRecord) -> None:
        use: ThreadUse | None = record.environ.get(THREADS)
        if use is not None:
            self._threads.set(use.threads)
            self._queue.set(use.waiting())


def memory_lines(directory: Path) -> Iterator[str]:
    """Yield the lines of the memory that each process of a server holds."""
    name = "placement_worker_memory_bytes"
    yield f"# HELP {name} Resident memory.\n# TYPE {name} gauge\n"
    for pid in living_processes(directory):
        if held := resident_bytes(pid):
            yield f'{name}{{pid="{pid}"}} {held}\n'
