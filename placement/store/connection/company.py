"""Company: threads of one process that want the same kind of thing at a time, and one of them that does it for all."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

Wish = TypeVar("Wish")

Serve = Callable[[Sequence[Wish]], object]

LARGEST_PARTY = 32
"""So many go together at most: who comes last waits for all of them."""


class _Party:
    """Those who go together, and what is held for as long as any of them is there."""

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
    """One thread that waits."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.party: _Party | None = None
        """Where it has been served; until then it is called only to serve others and itself."""
        self.called = threading.Event()


class Company(Generic[Wish]):
    """Those who wait. Nobody waits for company: a party is made of those who have come while the last one was there."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: list[_Guest[Wish]] = []
        self._has_party = False

    @property
    def waiting(self) -> int:
        """How many have come and have not been served yet."""
        return len(self._waiting)

    @contextlib.contextmanager
    def joined(self, wish: Wish, turn: contextlib.AbstractContextManager[None], serve: Serve[Wish]) -> Iterator[None]:
        """Have a wish served together with others. The next party begins when all of this one have left the block.

        Args:
            wish: what is wanted.
            turn: what is held by a party; that of one of its threads.
            serve: serves all wishes of a party. Where it fails, none is served, and one thread has the error.
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
        """Serve those who wait by the time that it is our turn, and call them."""
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
        """Let one of those who wait by now serve them, but not a host whose turn never came: it has left."""
        with self._guard:
            self._waiting = [one for one in self._waiting if one is not host]
            self._has_party = bool(self._waiting)
            if self._waiting:
                self._waiting[0].called.set()
