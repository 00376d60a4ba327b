"""Waits until threads of this process have reached the point that a test needs."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from placement.store.connection.batching import Batching, Process

MAX_S = 60


def until_waiting(batches: Batching[Any], number: int) -> None:
    """Return when this many threads wait."""
    deadline, never = time.monotonic() + MAX_S, threading.Event()
    while batches.waiting < number:
        assert time.monotonic() < deadline, f"{batches.waiting} wait"
        never.wait(0.001)


class GatheredBatches(Batching[Any]):
    """Batches, the first of which has the given size."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.sizes: list[int] = []

    @contextmanager
    def joined(self, item: Any, turn: AbstractContextManager[None], process: Process[Any]) -> Iterator[None]:
        def noted(items: Sequence[Any]) -> None:
            self.sizes.append(len(items))
            process(items)

        with super().joined(item, self._when_all_are_here(turn), noted):
            yield

    @contextmanager
    def _when_all_are_here(self, turn: AbstractContextManager[None]) -> Iterator[None]:
        if not self.sizes:
            until_waiting(self, self._number)
        with turn:
            yield
