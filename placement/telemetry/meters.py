"""What the server reports to its meters, and the meters of a server without metrics."""

from typing import NamedTuple, Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class SearchSeen(NamedTuple):
    """One search for allocation candidates: its cost and its result.

    ``trees`` is the number of trees with candidates; ``complete`` is False if the search hit its budget;
    ``from_cache`` is True if no tree was searched but those that have changed since the request was last made.
    """

    duration_s: float
    trees: int
    candidates: int
    complete: bool
    from_cache: bool = False


class Meters(Protocol):
    """Records events and shows their totals."""

    def searched(self, seen: SearchSeen) -> None:
        """Record a search for candidates."""

    def found_nothing(self, cause: str) -> None:
        """Record, in one word, why a search found no candidates."""

    def listening(self, count: int) -> None:
        """Record how many clients follow the journal in this process."""

    def exposition(self) -> bytes | None:
        """Return all metrics in the Prometheus text format, or None if none are collected."""


class NoMeters:
    """Meters of a server without metrics."""

    def searched(self, seen: SearchSeen) -> None:
        """Ignore the search."""

    def found_nothing(self, cause: str) -> None:
        """Ignore the cause."""

    def listening(self, count: int) -> None:
        """Ignore the number."""

    def exposition(self) -> bytes | None:
        """Return None."""
        return None
