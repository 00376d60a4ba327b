"""What is waited for, and what bounds it: totals for the whole tree, limits for parts of it.

Leaves that wait for the same below the same bounds fit together or not at all. So each such *pending task* is looked
at once, however many leaves it has, and only when the amount that is left passes one of its own.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence

TaskAmounts = tuple[int, ...]
"""How much of each class, in the order of the classes."""


class PendingTask:
    """One task under one ceiling, and how many leaves wait for it.

    Args:
        task: what is asked for.
        ceilings: all that it has to fit under, the innermost first.
    """

    __slots__ = ("ceilings", "is_counted", "leaves", "short", "task")

    def __init__(self, task: TaskAmounts, ceilings: "tuple[Ceiling, ...]") -> None:
        self.task = task
        self.ceilings = ceilings
        self.leaves = 0
        self.is_counted = False
        """Whether it is known to whoever counts the pending tasks that can be served."""
        self.short = 0
        """Under how many of the ceilings it does not fit."""

    @property
    def is_blocked(self) -> bool:
        """Whether nobody who waits for this can be served: nothing is asked for, or too little is left."""
        return self.short > 0 or not any(self.task)


class Ceiling:
    """How much is left of each class for a part of the tree, and the pending tasks of all that is below.

    Args:
        left: what is left; more than can be asked for where there is no bound.
        above: the next ceiling outwards.
    """

    def __init__(self, left: Sequence[int], above: "Ceiling | None" = None) -> None:
        self.left = list(left)
        self.path: tuple[Ceiling, ...] = (self, *(above.path if above else ()))
        self._pending: dict[TaskAmounts, PendingTask] = {}
        self._asking = [_Asking() for _class in left]

    def pending(self, task: TaskAmounts) -> PendingTask:
        """Return the pending task of someone right under this ceiling."""
        if task not in self._pending:
            pending = self._pending[task] = PendingTask(task, self.path)
            for ceiling in self.path:
                pending.short += not fits(task, ceiling.left)
                ceiling._enter(pending)
        return self._pending[task]

    def forget(self, pending: PendingTask) -> None:
        """Forget a pending task right under this ceiling that nobody has any more."""
        del self._pending[pending.task]
        for ceiling in self.path:
            ceiling._leave(pending)

    def change(self, more: Sequence[int]) -> list[PendingTask]:
        """Add to what is left (or take away), and return the pending tasks that fit under this ceiling now and did not.

        And those that do not any more.
        """
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
    """Tell whether there is enough; of what a task does not ask for there may be less than nothing.

    >>> fits((2, 0), (3, -1)), fits((2, 1), (3, 0))
    (True, False)
    """
    return all([not amount or amount <= rest for amount, rest in zip(task, left, strict=True)])


class _Asking:
    """The pending tasks for one class, by the amount they ask for."""

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
        """Yield the pending tasks for which it makes a difference whether the one or the other amount is left."""
        low, high = sorted((before, after))
        for amount in self._amounts[bisect_right(self._amounts, low) : bisect_right(self._amounts, high)]:
            yield from self._pending[amount]
