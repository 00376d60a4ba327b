"""Pending tasks and the ceilings they have to fit under: totals for the whole tree, limits for parts of it.

Leaves that wait for the same task below the same ceilings fit together or not at all. Each such *pending task* is
therefore looked at once, however many leaves wait for it, and only when what is left crosses one of its amounts.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence

TaskAmounts = tuple[int, ...]
"""The amount of each class, in the order of the classes."""


class PendingTask:
    """One task under one ceiling, and how many leaves wait for it.

    Args:
        task: the amounts.
        ceilings: everything it has to fit under, the innermost first.
    """

    __slots__ = ("ceilings", "is_counted", "leaves", "short", "task")

    def __init__(self, task: TaskAmounts, ceilings: "tuple[Ceiling, ...]") -> None:
        self.task = task
        self.ceilings = ceilings
        self.leaves = 0
        self.is_counted = False
        """Whether ``FairShares`` counts it among the tasks that can be served."""
        self.short = 0
        """The number of ceilings that it does not fit under."""

    @property
    def is_blocked(self) -> bool:
        """Whether nobody can be served this: it asks for nothing, or too little is left."""
        return self.short > 0 or not any(self.task)


class Ceiling:
    """What is left of each class for one part of the tree, and the pending tasks of everything below.

    Args:
        left: what is left; ``NO_LIMIT`` or the like where there is no bound.
        above: the next ceiling outwards.
    """

    def __init__(self, left: Sequence[int], above: "Ceiling | None" = None) -> None:
        self.left = list(left)
        self.path: tuple[Ceiling, ...] = (self, *(above.path if above else ()))
        self._pending: dict[TaskAmounts, PendingTask] = {}
        self._asking = [_Asking() for _class in left]

    def pending(self, task: TaskAmounts) -> PendingTask:
        """Return the pending task with these amounts directly under this ceiling, registering it if it is new."""
        if task not in self._pending:
            pending = self._pending[task] = PendingTask(task, self.path)
            for ceiling in self.path:
                pending.short += not fits(task, ceiling.left)
                ceiling._enter(pending)
        return self._pending[task]

    def forget(self, pending: PendingTask) -> None:
        """Drop a pending task directly under this ceiling that nobody waits for any more."""
        del self._pending[pending.task]
        for ceiling in self.path:
            ceiling._leave(pending)

    def change(self, more: Sequence[int]) -> list[PendingTask]:
        """Add to what is left, or subtract; return the pending tasks that start or stop fitting under this ceiling."""
        before, self.left = self.left, [left + amount for left, amount in zip(self.left, more, strict=True)]
        concerned = {
            pending: None
            for asking, old, new in zip(self._asking, before, self.left, strict=True)
            if old != new
            for pending in asking.between(old, new)
        }
        changed = []
        for pending in concerned:
            difference = fits(pending.task, before) - fits(pending.task, self.left)
            if difference:
                pending.short += difference
                changed.append(pending)
        return changed

    def _enter(self, pending: PendingTask) -> None:
        for asking, amount in zip(self._asking, pending.task, strict=True):
            if amount:
                asking.add(pending, amount)

    def _leave(self, pending: PendingTask) -> None:
        for asking, amount in zip(self._asking, pending.task, strict=True):
            if amount:
                asking.remove(pending, amount)


def fits(task: TaskAmounts, left: Sequence[int]) -> bool:
    """Tell whether enough is left of every class that a task asks for; others may be overdrawn.

    >>> fits((2, 0), (3, -1)), fits((2, 1), (3, 0))
    (True, False)
    """
    return all([not amount or amount <= rest for amount, rest in zip(task, left, strict=True)])


class _Asking:
    """The pending tasks that ask for one class, by amount."""

    def __init__(self) -> None:
        self._pending: dict[int, dict[PendingTask, None]] = {}
        self._amounts: list[int] = []

    def add(self, pending: PendingTask, amount: int) -> None:
        if amount not in self._pending:
            self._pending[amount] = {}
            insort(self._amounts, amount)
        self._pending[amount][pending] = None

    def remove(self, pending: PendingTask, amount: int) -> None:
        del self._pending[amount][pending]
        if not self._pending[amount]:
            del self._pending[amount]
            self._amounts.remove(amount)

    def between(self, before: int, after: int) -> Iterator[PendingTask]:
        """Yield the pending tasks that fit what is left before or after a change, but not both."""
        low, high = sorted((before, after))
        for amount in self._amounts[bisect_right(self._amounts, low) : bisect_right(self._amounts, high)]:
            yield from self._pending[amount]
