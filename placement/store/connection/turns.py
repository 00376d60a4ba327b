"""Turns: threads of one process that do the same thing one after the other, in the order in which they came."""

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

MOST_PRESSURE = 4.0


class FairTurns:
    """A lock that is fair, and not held against anybody for long: who has waited long enough goes on without it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self.pressure = 0.0
        """How often turns have been in vain lately, from 0 to MOST_PRESSURE: somebody in another process was faster."""

    def note(self, *, was_in_vain: bool) -> None:
        """Take note of how a turn ended: what one loss adds, a few successes take away again."""
        change = 1.0 if was_in_vain else -0.25
        self.pressure = min(MOST_PRESSURE, max(0.0, self.pressure + change))

    @contextlib.contextmanager
    def taken(self, *, longest_wait_s: float) -> Iterator[None]:
        """Wait for a turn, and let the next one go on afterwards."""
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
