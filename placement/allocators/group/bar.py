"""What a set of requirements must reach somewhere to be part of the best way to place all of them."""

from placement.allocators.group.sets import Sets

SetTable = dict[int, int]
"""By set the rank of the best way to place it: its worth and, in the lowest bits, how early in natural order."""


class Bar:
    """Tells what is promising: with the best that can be expected for all else it reaches what is known.

    Args:
        sets: the sets.
        expected: by set the most that it can be worth, tightness aside, as a rank; sets that are not there fit nowhere.
        least: what everything must reach, tightness aside, as a rank that says nothing of natural order.
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
        """Return the sets that are promising together with a set."""
        found = self._beside.get(numbers)
        if found is None:
            one = self._expected[numbers]
            found = self._beside[numbers] = [
                other
                for other in self._sets.beside(numbers)
                if other in self._expected and self.is_reached(numbers + other, one + self._expected[other])
            ]
        return found
