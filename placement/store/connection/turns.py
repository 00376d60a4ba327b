"""Turns: threads of one process doing the same thing one at a time, first come, first served."""

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

MAX_PRESSURE = 4.0


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
        mine = threading.Event()
        with self._guard:
            self._waiting.append(mine)
            if self._waiting[0] is mine:
                mine.set()
        mine.wait(longest_wait_s)
        try:
            yield
        finally:
            with self._guard:
                self._waiting.remove(mine)
                if self._waiting:
                    self._waiting[0].set()
