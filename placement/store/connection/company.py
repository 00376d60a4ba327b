"""Company: a group commit for threads of one process: one thread does the same kind of work for all that wait."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

Wish = TypeVar("Wish")

Serve = Callable[[Sequence[Wish]], object]

LARGEST_PARTY = 32
"""The largest party: the last to be served delays everyone in it."""


class _Party:
    """Threads served together, and what is held until the last of them leaves."""

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


class _Guest(Generic[Wish]):
    """A waiting thread."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.party: _Party | None = None
        """The party that has served this thread; None when it is woken to host the next party itself."""
        self.called = threading.Event()


class Company(Generic[Wish]):
    """The waiting threads. None waits in order to have company: whoever arrives during one party makes up the next."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: list[_Guest[Wish]] = []
        self._has_party = False

    @property
    def waiting(self) -> int:
        """How many threads have arrived and are not served yet."""
        return len(self._waiting)

    @contextlib.contextmanager
    def joined(self, wish: Wish, turn: contextlib.AbstractContextManager[None], serve: Serve[Wish]) -> Iterator[None]:
        """Serve a wish together with those of other threads. The next party starts once this one has left the block.

        Args:
            wish: what this thread wants.
            turn: what the party holds; only the host, which serves the party, enters its own.
            serve: serves all wishes of a party. If it raises, none is served; the host gets the error, the others
                enter the block all the same.
        """
        guest = _Guest(wish)
        with self._guard:
            self._waiting.append(guest)
            if not self._has_party:
                self._has_party = True
                guest.called.set()
        guest.called.wait()
        party = guest.party or self._served(guest, turn, serve)
        try:
            yield
        finally:
            party.leave()

    def _served(self, host: _Guest[Wish], turn: contextlib.AbstractContextManager[None], serve: Serve[Wish]) -> _Party:
        """Wait for the turn, then serve everyone waiting by then and wake them."""
        with contextlib.ExitStack() as held:
            held.callback(self._call_next, host)
            held.enter_context(turn)
            party, others = _Party(held.pop_all()), self._others(host)
            party.admit(len(others))
            try:
                serve([host.wish, *[one.wish for one in others]])
            except BaseException:
                party.leave()
                raise
            finally:
                for one in others:
                    one.party = party
                    one.called.set()
        return party

    def _others(self, host: _Guest[Wish]) -> list[_Guest[Wish]]:
        with self._guard:
            others = [one for one in self._waiting if one is not host]
            self._waiting = others[LARGEST_PARTY - 1 :]
        return others[: LARGEST_PARTY - 1]

    def _call_next(self, host: _Guest[Wish]) -> None:
        """Wake one waiting thread as the next host. A host whose turn never came drops out of the queue."""
        with self._guard:
            self._waiting = [one for one in self._waiting if one is not host]
            self._has_party = bool(self._waiting)
            if self._waiting:
                self._waiting[0].called.set()
