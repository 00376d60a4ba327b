"""Measures the same work on several sides in turn, as often as requested."""

import contextlib
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.bench.meters import spent_ms
from tests.bench.sides import WORKERS, Caller, Side, TookTooLong
from tests.bench.work import Work

SAMPLE_MS = 120
"""Work is repeated until a sample takes about this long: much shorter ones drown in noise."""

MAX_REPEATS = 40

WARM_UP_ROUNDS = 12
WARM_UP_S = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The cost of doing the work once, averaged over some repeats."""

    server_ms: float
    database_ms: float
    latencies_ms: tuple[float, ...]

    @property
    def cpu_ms(self) -> float:
        """CPU time of the server and of its database."""
        return self.server_ms + self.database_ms


@dataclass(slots=True)
class Series:
    """The samples of one side; none if it did not answer in time."""

    samples: list[Sample] = field(default_factory=list)
    peak_memory_mib: float = 0.0
    took_too_long: bool = False

    def median(self, attribute: str) -> float:
        """Return the median of an attribute over the samples."""
        return float(statistics.median(getattr(sample, attribute) for sample in self.samples))

    @property
    def latency_ms(self) -> float:
        """The median over all requests."""
        return statistics.median(value for sample in self.samples for value in sample.latencies_ms)


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the quartiles around it."""

    low: float
    median: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return median and quartiles of some values."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, median, high)


def ratios(above: Series, below: Series) -> Spread:
    """Return how many times as much the first series cost, pair by pair."""
    pairs = zip(above.samples, below.samples, strict=True)
    return spread([first.cpu_ms / second.cpu_ms for first, second in pairs])


class Subject:
    """Some work on one side, ready to be measured."""

    def __init__(self, side: Side, work: Work, *, timeout_s: float) -> None:
        self._side = side
        self._work = work
        self._timeout_s = timeout_s
        self._repeats = 1
        self.series = Series()

    def warm_up(self) -> None:
        """Do the work in every worker process, and determine how many repeats make a sample."""
        self._side.running.forget_peak_memory()
        with self._patience():
            self._once()
            self._get_going()
            first = self._measured(1)
            self._repeats = max(1, min(MAX_REPEATS, round(SAMPLE_MS / max(first.cpu_ms, 0.1))))

    def try_once(self) -> None:
        """Take the only sample, without warming up."""
        self._side.running.forget_peak_memory()
        with self._patience():
            self.series.samples.append(self._measured(1))

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """Stop a side that does not answer in time, because it would keep computing an answer nobody waits for."""
        try:
            yield
        except TookTooLong:
            self.series.took_too_long = True
            self.series.peak_memory_mib = self._side.running.peak_memory_mib()
            self._side.stop()

    def once(self) -> Sample:
        """Return the cost of doing the work once."""
        return self._measured(1)

    def take(self) -> None:
        """Add a sample."""
        if not self.series.took_too_long:
            self.series.samples.append(self._measured(self._repeats))

    def finish(self) -> None:
        """Record what concerns the whole series."""
        if not self.series.took_too_long:
            self.series.peak_memory_mib = self._side.running.peak_memory_mib()

    def _get_going(self) -> None:
        """Bring every worker process to the state of one that has served for a while.

        A driver prepares a statement on its sixth execution; a slow request is not repeated that often.
        """
        begun = time.monotonic()
        for _ in range(WARM_UP_ROUNDS):
            self._in_each_worker()
            if time.monotonic() - begun > WARM_UP_S:
                return

    def _in_each_worker(self) -> None:
        """Send as many requests at once as there are workers: a busy worker does not take a second one."""
        with ThreadPoolExecutor(WORKERS) as executor:
            waiting = [executor.submit(self._once) for _ in range(WORKERS)]
        for future in waiting:
            future.result()

    def _once(self) -> None:
        caller = self._caller()
        self._work.do(caller)
        self._work.undo(caller)

    def _measured(self, repeats: int) -> Sample:
        running, caller = self._side.running, self._caller()
        server, database = running.server.read(), running.database.read()
        latencies = []
        for _ in range(repeats):
            begun = time.perf_counter()
            self._work.do(caller)
            latencies.append((time.perf_counter() - begun) * 1000)
        spent = spent_ms(server, running.server.read()), spent_ms(database, running.database.read())
        self._work.undo(caller)
        caller.close()
        return Sample(spent[0] / repeats, spent[1] / repeats, tuple(latencies))

    def _caller(self) -> Caller:
        return self._side.caller(timeout_s=self._timeout_s)


def measure(subjects: Sequence[Subject], *, pairs: int) -> None:
    """Take samples of all subjects in turn."""
    for subject in subjects:
        subject.warm_up()
    for _ in range(pairs):
        for subject in subjects:
            subject.take()
    for subject in subjects:
        subject.finish()


def in_turn(sides: Sequence[Side], work: Work, *, blocks: int, times: int = 20) -> list[Series]:
    """Do the work on all sides in turn, in alternating order; a sample is the median of a block.

    For sides that cost almost the same: background load affects all of them, and outliers of one side are dropped.
    """
    subjects = [Subject(side, work, timeout_s=WARM_UP_S * WARM_UP_ROUNDS) for side in sides]
    for subject in subjects:
        subject.warm_up()
    for _ in range(blocks):
        found: list[list[Sample]] = [[] for _ in sides]
        for number in range(times):
            for of in range(len(sides))[:: 1 if number % 2 else -1]:
                found[of].append(subjects[of].once())
        for subject, samples in zip(subjects, found, strict=True):
            server_ms = statistics.median(one.server_ms for one in samples)
            subject.series.samples.append(Sample(server_ms, statistics.median(one.database_ms for one in samples), ()))
    return [subject.series for subject in subjects]


def measure_once(subject: Subject) -> None:
    """Take one sample of a side that will take very long."""
    subject.try_once()
    subject.finish()
