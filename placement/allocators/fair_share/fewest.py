"""The fewest of many candidates that together give enough: iterative deepening with bounds."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

LARGEST_SET = 500
"""How many members a set may have; a search for more has to end without an answer."""


class Candidate(NamedTuple):
    """One of those to choose from: what it gives, what it is worth, and a kind, within which all are alike."""

    gives: tuple[int, ...]
    value: Fraction
    kind: object


class Search:
    """A search for the smallest set that gives enough; of the smallest, the one of least worth; then the first.

    Args:
        candidates: what to choose from, sorted by value; sets are compared by the places in this order at last.
        needed: how much of each is needed, more than 0.
        steps: how many partial sets are looked at.
    """

    def __init__(self, candidates: Sequence[Candidate], needed: tuple[int, ...], *, steps: int) -> None:
        self._candidates = candidates
        self._needed = needed
        self._steps = steps
        self._verdicts: dict[tuple[object, ...], bool] = {}
        self._most = _greatest_from(candidates, len(needed))
        self._best: tuple[Fraction, tuple[int, ...]] | None = None

    @property
    def complete(self) -> bool:
        """Whether the search came to its end."""
        return self._steps > 0

    def fewest(self, allowed: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...] | None:
        """Return the places of the chosen; None if there is no set, or none was found in time.

        Args:
            allowed: whether a set is acceptable; asked for sets that give enough, once for sets that are alike.
        """
        self._allowed = allowed
        for size in range(self._least_size(), len(self._candidates) + 1):
            if size > LARGEST_SET:
                self._steps = 0
            self._extend((), self._needed, Fraction(), size)
            if self._best is not None or not self.complete:
                break
        return self._best[1] if self._best else None

    def _least_size(self) -> int:
        """Return how many are needed at least, class by class; more than there are if all are not enough."""
        return max([self._size_for(number, needed) for number, needed in enumerate(self._needed)])

    def _size_for(self, number: int, needed: int) -> int:
        amounts = sorted([candidate.gives[number] for candidate in self._candidates], reverse=True)
        for size, amount in enumerate(amounts, 1):
            needed -= amount
            if needed <= 0:
                return size
        return len(amounts) + 1

    def _extend(self, chosen: tuple[int, ...], needed: tuple[int, ...], value: Fraction, left: int) -> None:
        """Look at all sets that begin like this and have so many members more."""
        if not left:
            self._consider(chosen, needed, value)
            return
        skipped = None
        start = chosen[-1] + 1 if chosen else 0
        for place in range(start, len(self._candidates) - left + 1):
            candidate = self._candidates[place]
            if self._steps <= 0 or not self._may_succeed(place, needed, value, left):
                return
            if candidate.kind != skipped:
                self._steps -= 1
                rest = tuple([need - gives for need, gives in zip(needed, candidate.gives, strict=True)])
                self._extend((*chosen, place), rest, value + candidate.value, left - 1)
                skipped = candidate.kind

    def _may_succeed(self, place: int, needed: tuple[int, ...], value: Fraction, left: int) -> bool:
        """Tell whether sets with so many members from this place on can be enough, and better than the best."""
        if any([need > left * most for need, most in zip(needed, self._most[place], strict=True)]):
            return False
        return self._best is None or value + left * self._candidates[place].value < self._best[0]

    def _consider(self, chosen: tuple[int, ...], needed: tuple[int, ...], value: Fraction) -> None:
        if any([need > 0 for need in needed]) or (self._best is not None and value >= self._best[0]):
            return
        kinds = tuple([self._candidates[place].kind for place in chosen])
        if kinds not in self._verdicts:
            self._verdicts[kinds] = self._allowed(chosen)
        if self._verdicts[kinds]:
            self._best = value, chosen


def _greatest_from(candidates: Sequence[Candidate], classes: int) -> list[tuple[int, ...]]:
    """Return the greatest amount of each class that any candidate from a place on gives."""
    greatest = [(0,) * classes]
    for candidate in reversed(candidates):
        greatest.append(tuple([max(pair) for pair in zip(candidate.gives, greatest[-1], strict=True)]))
    return greatest[:0:-1]
