"""A budget of steps, which bounds the cost of a search however hard the request is.

A child budget, for part of a search, draws on its parent as well. Each search decides what a step is; searches that
share a budget should have steps of about the same cost.
"""


class Budget:
    """A number of steps left to take, never more than the parent has left.

    >>> request = Budget(100)
    >>> tree = request.child(10)
    >>> tree.take(8), tree.take(8)
    (True, False)
    >>> tree.remaining, request.remaining, request.was_hit
    (0, 90, True)
    """

    __slots__ = ("_left", "_parent", "was_hit")

    def __init__(self, limit: int, parent: "Budget | None" = None) -> None:
        self._left = limit
        self._parent = parent
        self.was_hit = False
        """Whether more was asked for than was left, here or in a child; results may then be incomplete."""

    @property
    def remaining(self) -> int:
        """The number of steps left."""
        return self._left if self._parent is None else min(self._left, self._parent.remaining)

    @property
    def is_used_up(self) -> bool:
        """Whether no steps are left."""
        return self.remaining <= 0

    def child(self, limit: int) -> "Budget":
        """Return a budget for part of the search."""
        return Budget(limit, self)

    def take(self, steps: int = 1) -> bool:
        """Take this many steps at once. If fewer are left, use those up and mark the budget as hit."""
        if self._left < steps or not (self._parent is None or self._parent.take(steps)):
            return self._hit()
        self._left -= steps
        return True

    def _hit(self) -> bool:
        """Use up what is left, here and in all parents, and mark them all as hit."""
        remaining = self.remaining
        budget: Budget | None = self
        while budget is not None:
            budget._left -= remaining
            budget.was_hit = True
            budget = budget._parent
        return False
