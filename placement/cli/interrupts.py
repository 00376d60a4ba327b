"""Ctrl-C between two rounds of a loop: an exception raised inside a library may be lost, or end in a traceback.

Python only reports what is raised while an object is being deleted; SQLAlchemy's pool has steps that must not fail.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LOOK_EVERY_S = 0.1


class Interrupts:
    """Whether Ctrl-C has been pressed."""

    def __init__(self) -> None:
        self.has_come = False

    def wait(self, seconds: float) -> None:
        """Sleep, but not on after an interrupt."""
        end = time.monotonic() + seconds
        while not self.has_come and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_EVERY_S))


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Note the first Ctrl-C instead of raising it; a second one is raised, in case that whatever runs hangs."""
    found = Interrupts()

    def note(number: int, frame: FrameType | None) -> None:
        if found.has_come:
            signal.default_int_handler(number, frame)
        found.has_come = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
