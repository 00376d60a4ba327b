"""Many clients at once, each in a separate thread, for a limited time."""

import threading
from collections.abc import Callable, Iterable
from typing import Self

Work = Callable[[Callable[[], bool]], object]
"""A client's work; it is given a function that returns whether to end."""


class AtWork:
    """Clients that work as long as the context lasts; the first failure of one ends them all.

    ``longest_s`` is how long a request may take.
    """

    def __init__(self, clients: Iterable[Work], *, longest_s: float) -> None:
        self._enough = threading.Event()
        self._failures: list[BaseException] = []
        self._longest_s = longest_s
        self._threads = [threading.Thread(target=self._run, args=(client,)) for client in clients]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join(2 * self._longest_s)
        assert not self._failures, self._failures
        assert not any(thread.is_alive() for thread in self._threads), "a request is still waiting"

    @property
    def has_failed(self) -> bool:
        """Whether a client has failed."""
        return bool(self._failures)

    def _run(self, client: Work) -> None:
        try:
            client(self._enough.is_set)
        except BaseException as failure:
            self._failures.append(failure)
            self._enough.set()
