"""Metrics for Prometheus, collected by prometheus_client and summed over all processes of the server.

Gauges show what processes are doing at the moment: each keeps its own numbers, a scrape adds them up.

Importing this module imports prometheus_client, an optional dependency, so only ``[metrics] enabled`` does it.
"""

import contextlib
import functools
import logging
import mmap
import os
import platform
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess, values
from prometheus_client.mmap_dict import MmapedDict

from placement import __version__
from placement.errors import PlacementError
from placement.services.bulk_read import allocations, capacity
from placement.services.journal import journal_extent
from placement.settings import MetricsSettings
from placement.store.connection.database import Database
from placement.telemetry.flavor_headroom import FlavorHeadroom, allocation_lines, capacity_lines, heading, with_help
from placement.telemetry.record import MEANINGS, THREADS, Meters, RequestRecord, SearchSeen, ThreadUse
from placement.telemetry.shared_directory import forget_the_dead, living_processes, shared_directory
from placement.tuning import resident_bytes

LOG = logging.getLogger(__name__)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
AMOUNTS = (0, 1, 10, 100, 1000, 10000)
METHODS = frozenset({"GET", "PUT", "POST", "DELETE"})
"""Any other method counts as OTHER, so that clients cannot create labels."""

FIRST_BYTES = 64 * 1024
MAX_ENTRY_BYTES = 36
"""What a counter takes in its file, besides its name."""

_STARTING = threading.Lock()


@functools.cache
def _warn_once(reason: str) -> None:
    LOG.warning("This process goes on without metrics until it is restarted: there is no room for them (%s).", reason)


class AllocatedFile(MmapedDict):
    """A file of counters whose blocks are allocated before use: on a full disk, a write to a hole kills the process.

    Where no block can be had, the counters go on in memory, where no scrape sees them.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002  (as in the library)
        try:
            with Path(filename).open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, FIRST_BYTES)
        except OSError as error:
            self._in_memory = _memory_for(filename, error)
            filename = f"/proc/self/fd/{self._in_memory.fileno()}"
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        if self._used + len(key.encode()) + MAX_ENTRY_BYTES > self._capacity:
            try:
                os.posix_fallocate(self._f.fileno(), 0, 2 * self._capacity)
            except OSError as error:
                self._move(_memory_for(self._fname, error))
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def _move(self, file: BinaryIO) -> None:
        file.truncate(self._capacity)
        moved = mmap.mmap(file.fileno(), self._capacity)
        moved[:] = self._m[:]
        self._f, self._m = file, moved


def _memory_for(filename: str, error: OSError) -> BinaryIO:
    _warn_once(os.strerror(error.errno or 0))
    with contextlib.suppress(OSError):
        Path(filename).unlink()
    return cast("BinaryIO", os.fdopen(os.memfd_create("metrics"), "a+b"))


class Metrics(Meters):
    """The meters of a server with metrics; also an observer, called with the record of each request."""

    def __init__(self, database: Database, settings: MetricsSettings, headroom: FlavorHeadroom) -> None:
        self._database = database
        self.headroom = headroom
        """The headroom of each flavor."""
        self._shows_capacity = settings.capacity
        self._shows_allocations = settings.allocations
        with _STARTING:
            self._directory = shared_directory(settings.directory)
            # The library chose its value class when it was first imported, perhaps by other code.
            values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
            values.MmapedDict = AllocatedFile  # type: ignore[attr-defined]
            own = CollectorRegistry()  # never scraped itself: scrapes read the files
            self._make_counters(own)
            self._make_gauges(own)
        self._introduced: int | None = None
        database.on_event = self._note
        database.watch_pool(taken=self._connections.inc, given_back=self._connections.dec)

    def _make_counters(self, own: CollectorRegistry) -> None:
        def counter(name: str, *labels: str) -> Counter:
            return Counter(name, MEANINGS[f"{name}_total"], labels, registry=own)

        def histogram(name: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(name, MEANINGS[name], labels, buckets=buckets, registry=own)

        self._requests = histogram("placement_request_seconds", SECONDS, "method", "route", "status")
        self._statements = counter("placement_sql_statements")
        self._search = histogram("placement_candidate_search_seconds", SECONDS)
        self._trees = histogram("placement_candidate_search_trees", AMOUNTS)
        self._candidates = histogram("placement_candidate_search_candidates", AMOUNTS)
        self._budget_hits = counter("placement_candidate_search_budget_hits")
        self._empty = counter("placement_candidate_search_empty", "cause")
        self._of_database = {
            "retry": counter("placement_transaction_retries", "reason"),
            "fault": counter("placement_database_faults", "cause"),
            "drop": counter("placement_caches_dropped", "reason"),
            "failed write": counter("placement_failed_writes", "cause"),
        }
        self._cache_hits = counter("placement_candidate_cache_hits")
        self._children: dict[tuple[str, str, int], Histogram] = {}
        self._starts = counter("placement_worker_starts")

    def _make_gauges(self, own: CollectorRegistry) -> None:
        def gauge(name: str, *labels: str, mode: Literal["livesum", "livemin"] = "livesum") -> Gauge:
            return Gauge(name, MEANINGS[name], labels, registry=own, multiprocess_mode=mode)

        self._in_progress = gauge("placement_requests_in_progress")
        self._queue = gauge("placement_requests_waiting")
        self._threads = gauge("placement_threads")
        self._connections = gauge("placement_database_connections")
        self._max_connections = gauge("placement_database_connections_limit")
        self._listeners = gauge("placement_journal_listeners")
        self._cached_since = gauge("placement_caches_read_timestamp_seconds", "of", mode="livemin")

    def _note(self, event: str, cause: str) -> None:
        """Record what has happened to the database, or that caches were read anew."""
        if event in self._of_database:
            self._of_database[event].labels(cause).inc()
        else:
            self._note_caches()

    def _note_caches(self) -> None:
        if self._database.read_anew_at is not None:
            self._cached_since.labels("trees").set(self._database.read_anew_at)

    def begun(self, record: RequestRecord) -> None:
        """Record that a request has begun."""
        if self._introduced != os.getpid():
            self._introduced = os.getpid()
            self._starts.inc()
            self._max_connections.set(self._database.most_connections)
            self._note_caches()  # They may have been read before this process was forked.
        self._in_progress.inc()
        self._note_threads(record)

    def _note_threads(self, record: RequestRecord) -> None:
        use: ThreadUse | None = record.environ.get(THREADS)
        if use is not None:
            self._threads.set(use.threads)
            self._queue.set(use.waiting())

    def __call__(self, record: RequestRecord) -> None:
        """Record a completed request."""
        self._in_progress.dec()
        self._note_threads(record)
        method = record.environ["REQUEST_METHOD"]
        key = (method if method in METHODS else "OTHER", record.route, record.status)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._requests.labels(*key)
        child.observe(record.duration_s)
        self._statements.inc(record.statements)

    def searched(self, search: SearchSeen) -> None:
        """Record a search for candidates."""
        self._search.observe(search.duration_s)
        self._trees.observe(search.trees)
        self._candidates.observe(search.candidates)
        if not search.complete:
            self._budget_hits.inc()
        if search.from_cache:
            self._cache_hits.inc()

    def found_nothing(self, cause: str) -> None:
        """Record why a search found no candidates."""
        self._empty.labels(cause).inc()

    def listening(self, count: int) -> None:
        """Record how many clients follow the journal in this process."""
        self._listeners.set(count)

    def exposition(self) -> bytes:
        """Return all metrics in the Prometheus text format: the counters, then the present capacity."""
        forget_the_dead(self._directory)
        registry = CollectorRegistry()
        if self._directory.is_dir():
            multiprocess.MultiProcessCollector(registry, path=str(self._directory))  # type: ignore[no-untyped-call]
        lines = [*self._server_lines(), *self._database_lines()]
        return generate_latest(registry) + "".join(lines).encode()

    def _server_lines(self) -> Iterator[str]:
        database, built = self._database, "placement_build_info"
        yield heading(built)
        labels = f'version="{__version__}",python="{platform.python_version()}",database="{database.dialect}"'
        yield f"{built}{{{labels}}} 1\n"
        yield gauge("placement_usage_is_kept", database.keeps_usage)
        yield gauge("placement_journal_is_written", database.keeps_journal)
        if database.standby is not None:
            yield gauge("placement_standby_is_used", database.standby.may_serve())
        memory = "placement_worker_memory_bytes"
        yield heading(memory)
        for pid in living_processes(self._directory):
            if held := resident_bytes(pid):
                yield f'{memory}{{pid="{pid}"}} {held}\n'

    def _database_lines(self) -> list[str]:
        try:
            extent = journal_extent(self._database)
            journal = [
                gauge("placement_journal_rows", extent.rows),
                gauge("placement_journal_age_seconds", extent.age_s),
                gauge("placement_journal_lag_seconds", extent.lag_s),
            ]
            shown = capacity_lines(capacity(self._database) if self._shows_capacity else None)
            held = allocation_lines(allocations(self._database)) if self._shows_allocations else ()
            return [*journal, *shown, *held, *with_help(self.headroom.lines())]
        except PlacementError as error:
            LOG.warning("Metrics are served without capacity: %s", error.message)
            return ["openstack_placement_up 0\n"]


def gauge(name: str, value: float) -> str:
    """Return the lines of a gauge without labels."""
    return f"{heading(name)}{name} {float(value):.15g}\n"
