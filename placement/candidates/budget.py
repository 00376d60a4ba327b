"""The step budget of one request: it bounds the cost of a search, however hard the request is."""

from placement.allocators.budget import Budget
from placement.domain.search_plan import LIMITS


class RequestBudget(Budget):
    """The steps of one request, of which searching one tree may take ``per_tree``."""

    __slots__ = ("per_tree",)

    def __init__(self, *, per_tree: int = LIMITS.steps_per_tree, per_request: int = LIMITS.steps_per_request) -> None:
        super().__init__(per_request)
        self.per_tree = per_tree

    def of_tree(self) -> Budget:
        """Return the budget of one tree, shared by all searches of it."""
        return self.child(self.per_tree)
