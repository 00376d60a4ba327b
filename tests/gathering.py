"""Waits until threads of this process have reached the point that a test needs."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from placement.store.connection.company import Company, Serve

LONGEST_S = 60


def until_waiting(company: Company[Any], number: int) -> None:
    """Return when so many wait for company."""
    deadline, never = time.monotonic() + LONGEST_S, threading.Event()
    while company.waiting < number:
        assert time.monotonic() < deadline, f"{company.waiting} wait"
        never.wait(0.001)


class Gathering(Company[Any]):
    """Company in which the first party is of so many."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.parties: list[int] = []

    @contextmanager
    def joined(self, wish: Any, turn: AbstractContextManager[None], serve: Serve[Any]) -> Iterator[None]:
        def noted(wishes: Sequence[Any]) -> None:
            self.parties.append(len(wishes))
            serve(wishes)

        with super().joined(wish, self._when_all_are_here(turn), noted):
            yield

    @contextmanager
    def _when_all_are_here(self, turn: AbstractContextManager[None]) -> Iterator[None]:
        if not self.parties:
            until_waiting(self, self._number)
        with turn:
            yield
