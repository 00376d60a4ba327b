"""Runs requests in threads, one statement at a time, in an order that the caller chooses.

Each request rests before every statement and before the end of each transaction. A statement that waits for a lock goes
on when the lock is given back, at whatever step that happens. Knows no server: the reference's environment uses it too.
"""

import functools
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, event

from tests.interleavings.lock_waits import LockWaits
from tests.interleavings.statements import Step, Transaction, takes_the_whole_database

T = TypeVar("T")

Choose = Callable[[Mapping[int, Step]], int]
"""Returns the request that goes on, of those that can, each with its next step."""

POLL_S = 0.002
MAX_STEP_S = 120.0

_PROPERTY = functools.cached_property.__get__.__code__  # type: ignore[attr-defined]


class NobodyGoesOn(Exception):
    """A statement neither ended nor waited for a lock that another request of the run holds."""


class _Request(Generic[T]):
    """A request at work in its thread."""

    def __init__(self, number: int, transaction: Transaction) -> None:
        self.number = number
        self.transaction = transaction
        self.thread = 0
        self.session = 0
        self.next_step: Step | None = None
        self.go_on = threading.Semaphore(0)
        self.is_over = False
        self.result: T | None = None
        self.failure: BaseException | None = None

    @property
    def frames(self) -> Iterator[FrameType]:
        """Where its thread is, innermost first."""
        frame = sys._current_frames().get(self.thread)
        while frame is not None:
            yield frame
            frame = frame.f_back

    def waits_for(self, others: Iterable["_Request[Any]"]) -> bool:
        """Tell whether it waits for a property that one of others computes: until Python 3.12 they have a lock."""
        mine = next(self.frames, None)
        return (
            mine is not None
            and mine.f_code is _PROPERTY
            and any(
                frame.f_code is _PROPERTY and frame.f_locals["self"] is mine.f_locals["self"]
                for other in others
                for frame in other.frames
            )
        )


class Scheduler:
    """Stops the requests of a run at their statements.

    Args:
        waits: who waits for a lock.
        neighbours: the tables, as ``statements.neighbours`` returns them.
    """

    def __init__(self, waits: LockWaits, neighbours: Mapping[str, frozenset[str]]) -> None:
        self._waits = waits
        self._neighbours = neighbours
        self._here = threading.local()
        self._arrivals: queue.SimpleQueue[_Request[Any]] = queue.SimpleQueue()
        self._requests: list[_Request[Any]] = []
        self._writer: _Request[Any] | None = None

    def watch(self, engine: Engine) -> None:
        """Stop requests at the statements that they send with an engine."""
        event.listen(engine, "before_cursor_execute", self._before_statement)
        event.listen(engine, "commit", lambda connection: self._before_end(connection, "COMMIT"))
        # First, because a server may roll back itself in such a listener.
        event.listen(engine, "rollback", lambda connection: self._before_end(connection, "ROLLBACK"), insert=True)

    def run(self, calls: Sequence[Callable[[], T]], choose: Choose) -> tuple[list[T], list[Step]]:
        """Run calls to their end; return their results and the steps in the order chosen.

        Raises:
            NobodyGoesOn: the run cannot be finished.
        """
        self._requests = [_Request(number, Transaction(self._neighbours)) for number in range(len(calls))]
        threads = [
            threading.Thread(target=self._serve, args=pair, daemon=True)
            for pair in zip(self._requests, calls, strict=True)
        ]
        for thread in threads:
            thread.start()
        steps = []
        self._settle()
        while able := self._able():
            chosen = self._requests[choose(able)]
            steps.append(able[chosen.number])
            self._let_go_on(chosen)
            self._settle()
        for request in self._requests:
            if request.failure is not None:
                raise request.failure
        return [request.result for request in self._requests], steps  # type: ignore[misc]

    def _serve(self, request: _Request[T], call: Callable[[], T]) -> None:
        self._here.request = request
        request.thread = threading.get_ident()
        try:
            request.result = call()
        except BaseException as failure:
            request.failure = failure
        request.is_over = True
        self._arrivals.put(request)

    def _before_statement(self, connection: Connection, _cursor: Any, text: str, *_values: Any) -> None:
        request: _Request[Any] | None = getattr(self._here, "request", None)
        if request is not None:
            request.session = self._waits.session(connection.connection.dbapi_connection)
            request.next_step = request.transaction.step(request.number, text)
            self._rest(request)

    def _before_end(self, connection: Connection, text: str) -> None:
        request: _Request[Any] | None = getattr(self._here, "request", None)
        if request is not None and not connection.invalidated:
            request.next_step = request.transaction.end(request.number, text)
            if request.next_step is not None:
                self._rest(request)

    def _rest(self, request: _Request[Any]) -> None:
        """Arrive, in the request's own thread, and wait to be told to go on."""
        self._arrivals.put(request)
        request.go_on.acquire()

    def _able(self) -> dict[int, Step]:
        """Return the next steps of those that rest and need not wait for SQLite's only writer."""
        resting = {one.number: one.next_step for one in self._requests if one.next_step is not None}
        if self._writer is None:
            return resting
        return {number: step for number, step in resting.items() if not takes_the_whole_database(step.text)}

    def _let_go_on(self, request: _Request[Any]) -> None:
        assert request.next_step is not None
        if takes_the_whole_database(request.next_step.text):
            self._writer = request
        elif request.next_step.text in ("COMMIT", "ROLLBACK") and self._writer is request:
            self._writer = None
        request.next_step = None
        request.go_on.release()

    def _settle(self) -> None:
        """Return once each request rests, is over, or waits for a lock of one that rests."""
        deadline = time.monotonic() + MAX_STEP_S
        while sent := [one for one in self._requests if one.next_step is None and not one.is_over]:
            try:
                self._arrivals.get(timeout=POLL_S)
            except queue.Empty:
                if self._are_stuck(sent):
                    return
                if time.monotonic() > deadline:
                    raise NobodyGoesOn([one.number for one in sent]) from None

    def _are_stuck(self, sent: Sequence[_Request[Any]]) -> bool:
        """Tell whether requests that do not rest wait for those that do."""
        resting = [request for request in self._requests if request.next_step is not None]
        asked = [request.session for request in sent if not request.waits_for(resting)]
        holding = [request.session for request in resting]
        return bool(self._able()) and (not asked or self._waits.stuck(asked, holding))
