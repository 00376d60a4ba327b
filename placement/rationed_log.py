"""Log lines that say the same: some a second, then how many more there were. A fault says it at each request.

Before there was a bound, a full disk wrote 1,593 tracebacks in the time of one load test.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

MOST = 5
WINDOW_S = 1.0


class _Window:
    __slots__ = ("began", "lines")

    def __init__(self, began: float) -> None:
        self.began = began
        self.lines = 0


class RationedLog:
    """Writes to a log at most MOST lines of one cause in WINDOW_S; the number of the others when that time is over.

    Args:
        log: where to.
        clock: counts seconds.
        later: calls something after some seconds.
    """

    def __init__(
        self,
        log: logging.Logger,
        *,
        clock: Callable[[], float] = time.monotonic,
        later: "Callable[[float, Callable[[], None]], object] | None" = None,
    ) -> None:
        self._log = log
        self._clock = clock
        self._later = later or _by_a_thread
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}

    def write(self, level: int, cause: str, message: str, *values: Any, **options: Any) -> None:
        """Log a line unless its cause has had its share; ``options`` are those of ``Logger.log``."""
        self._close(level, cause)
        with self._lock:
            window = self._windows.get(cause)
            if window is None:
                window = self._windows[cause] = _Window(self._clock())
            window.lines += 1
            lines = window.lines
        if lines <= MOST:
            self._log.log(level, message, *values, **options)
        elif lines == MOST + 1:
            self._later(WINDOW_S, lambda: self._close(level, cause))

    def _close(self, level: int, cause: str) -> None:
        """Tell of what was left out, if the time is over."""
        with self._lock:
            window = self._windows.get(cause)
            if window is None or self._clock() - window.began < WINDOW_S:
                return
            del self._windows[cause]
        if window.lines > MOST:
            self._log.log(level, "%d more like this within a second: %s", window.lines - MOST, cause)


def _by_a_thread(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
