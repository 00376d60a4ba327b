"""Threads of one process: they take turns, one does the same work for all in a batch, or in the background."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

Process = Callable[[Sequence[Item]], object]

MAX_BATCH = 32
"""The last item to be finished delays the whole batch."""

MAX_PRESSURE = 4.0


class _Batch:
    """Threads whose items are processed together, and what is held until the last of them leaves."""

    def __init__(self, held: contextlib.ExitStack) -> None:
        self._held = held
        self._guard = threading.Lock()
        self._size = 1

    def admit(self, count: int) -> None:
        self._size += count

    def leave(self) -> None:
        with self._guard:
            self._size -= 1
            is_over = not self._size
        if is_over:
            self._held.close()


class _Waiter(Generic[Item]):
    """A waiting thread."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.batch: _Batch | None = None
        """The batch in which its item was processed; None if it is woken to lead the next batch itself."""
        self.called = threading.Event()


class Batching(Generic[Item]):
    """The waiting threads. Nobody waits for a batch to fill: whoever arrives during one batch makes up the next."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: list[_Waiter[Item]] = []
        self._is_running = False

    @property
    def waiting(self) -> int:
        """How many threads have arrived and are in no batch yet."""
        return len(self._waiting)

    @contextlib.contextmanager
    def joined(
        self, item: Item, turn: contextlib.AbstractContextManager[None], process: Process[Item]
    ) -> Iterator[None]:
        """Process an item together with those of other threads. The next batch starts once all have left the block.

        Only the leader of a batch, the thread that processes it, enters its ``turn``. If ``process`` raises, the leader
        gets the error, and the others enter the block with nothing done.
        """
        waiter = _Waiter(item)
        with self._guard:
            self._waiting.append(waiter)
            if not self._is_running:
                self._is_running = True
                waiter.called.set()
        waiter.called.wait()
        batch = waiter.batch or self._led(waiter, turn, process)
        try:
            yield
        finally:
            batch.leave()

    def _led(
        self, leader: _Waiter[Item], turn: contextlib.AbstractContextManager[None], process: Process[Item]
    ) -> _Batch:
        """Wait for the turn, then process the items of everyone waiting by then, and wake them."""
        with contextlib.ExitStack() as held:
            held.callback(self._call_next, leader)
            held.enter_context(turn)
            with self._guard:
                later_waiters = [further for further in self._waiting if further is not leader]
                followers, self._waiting = later_waiters[: MAX_BATCH - 1], later_waiters[MAX_BATCH - 1 :]
            batch = _Batch(held.pop_all())
            batch.admit(len(followers))
            try:
                process([leader.item, *[further.item for further in followers]])
            except BaseException:
                batch.leave()
                raise
            finally:
                for further in followers:
                    further.batch = batch
                    further.called.set()
        return batch

    def _call_next(self, leader: _Waiter[Item]) -> None:
        """Wake one waiting thread as the next leader. A leader whose turn never came drops out of the queue."""
        with self._guard:
            self._waiting = [further for further in self._waiting if further is not leader]
            self._is_running = bool(self._waiting)
            if self._waiting:
                self._waiting[0].called.set()


class FairTurns:
    """A fair lock with bounded waiting: a thread that has waited long enough goes ahead without it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self.pressure = 0.0
        """How often turns have been wasted lately because another process was faster, from 0 to MAX_PRESSURE."""

    def note(self, *, was_in_vain: bool) -> None:
        """Record how a turn ended: a loss adds as much pressure as four successes take away."""
        change = 1.0 if was_in_vain else -0.25
        self.pressure = min(MAX_PRESSURE, max(0.0, self.pressure + change))

    @contextlib.contextmanager
    def taken(self, *, longest_wait_s: float) -> Iterator[None]:
        """Wait for a turn, no longer than that, and pass it on at the end of the block."""
        own_turn = threading.Event()
        with self._guard:
            self._waiting.append(own_turn)
            if self._waiting[0] is own_turn:
                own_turn.set()
        own_turn.wait(longest_wait_s)
        try:
            yield
        finally:
            with self._guard:
                self._waiting.remove(own_turn)
                if self._waiting:
                    self._waiting[0].set()


class BackgroundWork:
    """Begins some work in a thread when it is due. No thread outlives a fork, so requests begin it, not the start."""

    def __init__(self, work: Callable[[], object], *, name: str, first_s: float, every_s: float) -> None:
        self._work = work
        self._name = name
        self._every_s = every_s
        self.due = time.monotonic() + first_s
        """When to begin next."""
        self.thread: threading.Thread | None = None
        """The thread that works, or worked last."""

    def begin(self) -> None:
        """Begin, unless it is still under way."""
        if self.thread is None or not self.thread.is_alive():
            self.due = time.monotonic() + self._every_s
            self.thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self.thread.start()
