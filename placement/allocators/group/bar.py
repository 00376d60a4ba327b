"""The bound that a partial result for a set of requirements must reach to be part of the best overall placement."""

from placement.allocators.group.sets import Sets

SetTable = dict[int, int]
"""Set -> the rank of the best way to place it: its worth and, in the lowest bits, how early in natural order."""


class Bar:
    """A pruning test: a result is promising if, with the best to be expected of all else, it reaches a known solution.

    Args:
        sets: the sets.
        expected: set -> an upper bound on its worth, tightness aside, as a rank; sets that fit nowhere are absent.
        least: the rank that the full set must reach, tightness and natural order aside.
    """

    def __init__(self, sets: Sets, expected: SetTable, least: int) -> None:
        self._sets = sets
        self._expected = expected
        self._least = {sets.everything - numbers: least - rank for numbers, rank in expected.items()}
        self._beside: dict[int, list[int]] = {}

    def is_reached(self, numbers: int, rank: int) -> bool:
        """Tell whether a way to place a set is promising."""
        return numbers in self._least and rank >= self._least[numbers]

    def beside(self, numbers: int) -> list[int]:
        """Return the disjoint sets that are promising together with this one."""
        found = self._beside.get(numbers)
        if found is None:
            one = self._expected[numbers]
            found = self._beside[numbers] = [
                other
                for other in self._sets.beside(numbers)
                if other in self._expected and self.is_reached(numbers + other, one + self._expected[other])
            ]
        return found
