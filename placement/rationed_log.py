"""Rate limiting for repeated log lines: a few per second, then the number of those left out.

A persistent fault logs at each request: a full disk once wrote 1,593 tracebacks during one load test.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

MAX_LINES = 5
WINDOW_S = 1.0


class _Window:
    __slots__ = ("began", "lines")

    def __init__(self, began: float) -> None:
        self.began = began
        self.lines = 0


class RationedLog:
    """Logs at most MAX_LINES lines of one cause within WINDOW_S, then how many it left out.

    Args:
        log: the logger to write to.
        clock: returns seconds.
        later: calls a function after a number of seconds.
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
        """Log a line unless its cause has used up its share; ``options`` are those of ``Logger.log``."""
        self._close(level, cause)
        with self._lock:
            window = self._windows.get(cause)
            if window is None:
                window = self._windows[cause] = _Window(self._clock())
            window.lines += 1
            lines = window.lines
        if lines <= MAX_LINES:
            self._log.log(level, message, *values, **options)
        elif lines == MAX_LINES + 1:
            self._later(WINDOW_S, lambda: self._close(level, cause))

    def _close(self, level: int, cause: str) -> None:
        """Log how many lines were left out, if the window is over."""
        with self._lock:
            window = self._windows.get(cause)
            if window is None or self._clock() - window.began < WINDOW_S:
                return
            del self._windows[cause]
        if window.lines > MAX_LINES:
            self._log.log(level, "%d more like this within a second: %s", window.lines - MAX_LINES, cause)


def _by_a_thread(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
