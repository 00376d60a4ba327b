"""How many steps a search may take: what it costs is bounded however hard the request is."""

STEPS_PER_TREE = 1_000_000
STEPS_PER_REQUEST = 4_000_000


class Budget:
    """How many steps a search may still take, and whether it wanted more."""

    def __init__(self, *, per_tree: int = STEPS_PER_TREE, per_request: int = STEPS_PER_REQUEST) -> None:
        self.per_tree = per_tree
        self.left = per_request
        self.was_hit = False

    def take(self, steps: int) -> bool:
        """Take so many steps at once, if so many are left."""
        if self.left < steps:
            return False
        self.left -= steps
        return True


class Steps:
    """The steps that may be taken in one tree, however often it is searched."""

    __slots__ = ("_budget", "_left", "ran_out")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._left = budget.per_tree
        self.ran_out = False

    def take(self) -> bool:
        """Take one step; if there is none left, note it in the budget."""
        if self._left <= 0 or self._budget.left <= 0:
            self.ran_out = True
            self._budget.was_hit = True
            return False
        self._left -= 1
        self._budget.left -= 1
        return True
