"""Which leaves wait for how much of one class: whom it concerns that some of it was taken or given back."""

from bisect import bisect_right, insort
from collections.abc import Iterator


class Waiting:
    """The leaves that ask for one class, by the amount they ask for."""

    def __init__(self) -> None:
        self._leaves: dict[int, set[str]] = {}
        self._amounts: list[int] = []

    def add(self, leaf: str, amount: int) -> None:
        """Note that a leaf asks for an amount, more than 0."""
        if amount not in self._leaves:
            self._leaves[amount] = set()
            insort(self._amounts, amount)
        self._leaves[amount].add(leaf)

    def remove(self, leaf: str, amount: int) -> None:
        """Forget what was added."""
        self._leaves[amount].remove(leaf)
        if not self._leaves[amount]:
            del self._leaves[amount]
            self._amounts.remove(amount)

    def between(self, before: int, after: int) -> Iterator[str]:
        """Yield the leaves for which it makes a difference whether the one or the other amount is free."""
        low, high = sorted((before, after))
        for amount in self._amounts[bisect_right(self._amounts, low) : bisect_right(self._amounts, high)]:
            yield from self._leaves[amount]
