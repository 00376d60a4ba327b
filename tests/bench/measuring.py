"""Measures work on servers in turn: CPU time of the server and of its database, and work done a second."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.bench.meters import metered
from tests.bench.sides import WORKERS, Caller, Side, TookTooLong
from tests.bench.work import UnexpectedAnswer, Work

SAMPLE_MS = 120
"""Work is repeated until a sample takes about this long: much shorter ones drown in noise."""

MAX_REPEATS = 40
WARM_UP_ROUNDS, WARM_UP_S = 12, 5.0


class Sample(NamedTuple):
    """The cost of doing the work once, averaged, and how often it was done in a second."""

    server_ms: float
    database_ms: float
    per_second: float

    @property
    def cpu_ms(self) -> float:
        """CPU time of the server and of its database."""
        return self.server_ms + self.database_ms


class Spread(NamedTuple):
    """A median and the quartiles around it."""

    low: float
    median: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return median and quartiles of some values."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


class Subject:
    """Some work on one side.

    Args:
        side: the server.
        work: what each client does.
        clients: how many clients do it at the same time.
        seconds: how long they do it as often as they can, for one sample; None for one client that repeats it.
        timeout_s: how long to wait for an answer; a server that takes longer is stopped and not measured again.
    """

    def __init__(
        self, side: Side, work: Work, *, clients: int = 1, seconds: float | None = None, timeout_s: float
    ) -> None:
        self._side = side
        self._work = work
        self._clients = clients
        self._seconds = seconds
        self._repeats = 1
        self._timeout_s = timeout_s
        self.samples: list[Sample] = []
        self.is_late = False

    def warm_up(self) -> None:
        """Do the work in every worker process, and determine how many repeats make a sample.

        A driver prepares a statement on its sixth execution; a slow request is not repeated that often.
        """
        if self._seconds is not None:
            self._sample(self._clients, seconds=0)
            return
        self._sample(WORKERS, repeats=WARM_UP_ROUNDS, seconds=WARM_UP_S)
        cost = self._sample(1, repeats=1)
        if cost is not None:
            self._repeats = max(1, min(MAX_REPEATS, round(SAMPLE_MS / max(cost.cpu_ms, 0.1))))

    def take(self) -> None:
        """Add a sample, unless the server took too long before."""
        if self.is_late:
            return
        times = {"repeats": self._repeats} if self._seconds is None else {"seconds": self._seconds}
        if (sample := self._sample(self._clients, **times)) is not None:
            self.samples.append(sample)

    def _sample(self, clients: int, *, repeats: float = math.inf, seconds: float = math.inf) -> Sample | None:
        """Let clients work so many times or seconds, at least once; return the cost, or None if that took too long."""
        callers = [self._side.caller(timeout_s=self._timeout_s) for _ in range(clients)]
        try:
            with metered(self._side.processes) as spent, ThreadPoolExecutor(clients) as executor:
                begun = time.monotonic()
                client = _client(self._work, repeats=repeats, deadline=begun + seconds)
                done = sum(executor.map(client, callers))
            elapsed = time.monotonic() - begun
        except TookTooLong:
            self.is_late = True
            self._side.stop()
            return None
        finally:
            for caller in callers:
                caller.close()
        self._side.forget(is_vacuumed=self._seconds is not None)
        if not done:
            raise UnexpectedAnswer("no client could allocate anything")
        return Sample(spent["server"] / done, spent["database"] / done, done / elapsed)


def _client(work: Work, *, repeats: float, deadline: float) -> Callable[[Caller], int]:
    def client(caller: Caller) -> int:
        done, times = work(caller), 1
        while times < repeats and time.monotonic() < deadline:
            done, times = done + work(caller), times + 1
        return done

    return client


def measure(subjects: Sequence[Subject], *, pairs: int) -> None:
    """Take samples of all subjects in turn."""
    for subject in subjects:
        subject.warm_up()
    for _ in range(pairs):
        for subject in subjects:
            subject.take()
