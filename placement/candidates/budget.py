"""How many steps the search of one request may take: what it costs is bounded however hard the request is."""

from placement.allocators.budget import Budget

STEPS_PER_TREE = 1_000_000
STEPS_PER_REQUEST = 4_000_000


class RequestBudget(Budget):
    """The steps of one request, of which the search of one tree may take ``per_tree``."""

    __slots__ = ("per_tree",)

    def __init__(self, *, per_tree: int = STEPS_PER_TREE, per_request: int = STEPS_PER_REQUEST) -> None:
        super().__init__(per_request)
        self.per_tree = per_tree

    def of_tree(self) -> Budget:
        """Return the steps of one tree, however often it is searched."""
        return self.child(self.per_tree)
