"""What is waited for, and what bounds it: totals for the whole tree, limits for parts of it.

Leaves that wait for the same below the same bounds fit together or not at all. So each such *demand* is looked at
once, however many leaves it has, and only when the amount that is left passes one of its own.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence

Task = tuple[int, ...]
"""How much of each class, in the order of the classes."""


class Demand:
    """One task under one ceiling, and how many leaves wait for it.

    Args:
        task: what is asked for.
        ceilings: all that it has to fit under, the innermost first.
    """

    __slots__ = ("ceilings", "is_counted", "leaves", "short", "task")

    def __init__(self, task: Task, ceilings: "tuple[Ceiling, ...]") -> None:
        self.task = task
        self.ceilings = ceilings
        self.leaves = 0
        self.is_counted = False
        """Whether it is known to whoever counts the demands that can be served."""
        self.short = 0
        """Under how many of the ceilings it does not fit."""

    @property
    def is_blocked(self) -> bool:
        """Whether nobody who waits for this can be served: nothing is asked for, or too little is left."""
        return self.short > 0 or not any(self.task)


class Ceiling:
    """How much is left of each class for a part of the tree, and the demands of all that is below.

    Args:
        left: what is left; more than can be asked for where there is no bound.
        above: the next ceiling outwards.
    """

    def __init__(self, left: Sequence[int], above: "Ceiling | None" = None) -> None:
        self.left = list(left)
        self.path: tuple[Ceiling, ...] = (self, *(above.path if above else ()))
        self._demands: dict[Task, Demand] = {}
        self._asking = [_Asking() for _class in left]

    def demand(self, task: Task) -> Demand:
        """Return the demand for a task of someone right under this ceiling."""
        if task not in self._demands:
            demand = self._demands[task] = Demand(task, self.path)
            for ceiling in self.path:
                demand.short += not fits(task, ceiling.left)
                ceiling._enter(demand)
        return self._demands[task]

    def forget(self, demand: Demand) -> None:
        """Forget a demand right under this ceiling that nobody has any more."""
        del self._demands[demand.task]
        for ceiling in self.path:
            ceiling._leave(demand)

    def change(self, more: Sequence[int]) -> list[Demand]:
        """Add to what is left (or take away), and return the demands that fit under this ceiling now and did not.

        And those that do not any more.
        """
        before, self.left = self.left, [left + amount for left, amount in zip(self.left, more, strict=True)]
        concerned = {
            demand: None
            for asking, old, new in zip(self._asking, before, self.left, strict=True)
            if old != new
            for demand in asking.between(old, new)
        }
        changed = []
        for demand in concerned:
            difference = fits(demand.task, before) - fits(demand.task, self.left)
            if difference:
                demand.short += difference
                changed.append(demand)
        return changed

    def _enter(self, demand: Demand) -> None:
        for asking, amount in zip(self._asking, demand.task, strict=True):
            if amount:
                asking.add(demand, amount)

    def _leave(self, demand: Demand) -> None:
        for asking, amount in zip(self._asking, demand.task, strict=True):
            if amount:
                asking.remove(demand, amount)


def fits(task: Task, left: Sequence[int]) -> bool:
    """Tell whether there is enough; of what a task does not ask for there may be less than nothing.

    >>> fits((2, 0), (3, -1)), fits((2, 1), (3, 0))
    (True, False)
    """
    return all([not amount or amount <= rest for amount, rest in zip(task, left, strict=True)])


class _Asking:
    """The demands for one class, by the amount they ask for."""

    def __init__(self) -> None:
        self._demands: dict[int, dict[Demand, None]] = {}
        self._amounts: list[int] = []

    def add(self, demand: Demand, amount: int) -> None:
        if amount not in self._demands:
            self._demands[amount] = {}
            insort(self._amounts, amount)
        self._demands[amount][demand] = None

    def remove(self, demand: Demand, amount: int) -> None:
        del self._demands[amount][demand]
        if not self._demands[amount]:
            del self._demands[amount]
            self._amounts.remove(amount)

    def between(self, before: int, after: int) -> Iterator[Demand]:
        """Yield the demands for which it makes a difference whether the one or the other amount is left."""
        low, high = sorted((before, after))
        for amount in self._amounts[bisect_right(self._amounts, low) : bisect_right(self._amounts, high)]:
            yield from self._demands[amount]
