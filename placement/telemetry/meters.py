"""What the server tells its meters, and the meters of a server that keeps none."""

from typing import NamedTuple, Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class SearchSeen(NamedTuple):
    """One search for allocation candidates: what it took and what came of it.

    ``trees`` is how many trees the candidates are in; ``complete`` is False where the search ran out of steps.
    """

    duration_s: float
    trees: int
    candidates: int
    complete: bool


class Meters(Protocol):
    """Takes note of what happens, and shows the sums."""

    def searched(self, seen: SearchSeen) -> None:
        """Take note of a search for candidates."""

    def found_nothing(self, cause: str) -> None:
        """Take note of why a search found no candidates, in a word."""

    def exposition(self) -> bytes | None:
        """Return everything in the text format of Prometheus, or None where no metrics are kept."""


class NoMeters:
    """Meters of a server without metrics."""

    def searched(self, seen: SearchSeen) -> None:
        """Forget it."""

    def found_nothing(self, cause: str) -> None:
        """Forget it."""

    def exposition(self) -> bytes | None:
        """Show nothing."""
        return None
