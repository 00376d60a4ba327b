"""How many steps a search may take: what it costs is bounded however hard the request is.

A budget of a part of a search, a child, draws from that of the whole as well. Who takes steps decides what a step is;
searches that share a budget should make theirs cost about the same time.
"""


class Budget:
    """A number of steps that may still be taken, at most so many as a parent has left.

    >>> request = Budget(100)
    >>> tree = request.child(10)
    >>> tree.take(8), tree.take(8)
    (True, False)
    >>> tree.left, request.left, request.was_hit
    (0, 90, True)
    """

    __slots__ = ("_left", "_parent", "was_hit")

    def __init__(self, limit: int, parent: "Budget | None" = None) -> None:
        self._left = limit
        self._parent = parent
        self.was_hit = False
        """Whether more was wanted than was left, here or in a child: what was found may not be all there is."""

    @property
    def left(self) -> int:
        """How many steps may still be taken."""
        return self._left if self._parent is None else min(self._left, self._parent.left)

    @property
    def is_used_up(self) -> bool:
        """Whether no step is left."""
        return self.left <= 0

    def child(self, limit: int) -> "Budget":
        """Return a budget for a part of the search."""
        return Budget(limit, self)

    def take(self, steps: int = 1) -> bool:
        """Take so many steps at once. If they are not left the rest is taken, and the budget is hit."""
        if self._left < steps or not (self._parent is None or self._parent.take(steps)):
            return self._hit()
        self._left -= steps
        return True

    def _hit(self) -> bool:
        """Use up what is left, on the parents' account as well, and let them all know."""
        rest = self.left
        budget: Budget | None = self
        while budget is not None:
            budget._left -= rest
            budget.was_hit = True
            budget = budget._parent
        return False
