"""Work that the requests of a server begin now and then, each kind in one thread at a time."""

import threading
import time
from collections.abc import Callable


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

    def begin_if_due(self) -> None:
        """Begin, unless it is not time to, or still under way."""
        now = time.monotonic()
        if now >= self.due and (self.thread is None or not self.thread.is_alive()):
            self.due = now + self._every_s
            self.thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self.thread.start()
