"""Trees without what is held exclusively: a reader that leaves out the providers inside such places."""

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from placement.candidates.reading import Reader
from placement.candidates.wrapped import WrappedReader
from placement.domain.tree import Tree, TreesRead

WithheldIn = Callable[[Collection[int]], AbstractSet[int]]
"""Returns the providers inside places that are held exclusively, in the trees with the given roots."""


class WithheldReader(WrappedReader):
    """A Reader of another reader's trees, without the withheld options; trees that no longer serve every demand go.

    Args:
        reader: reads the trees as they are.
        withheld_in: returns the withheld providers; called once for each portion of trees.
    """

    def __init__(self, reader: Reader, withheld_in: WithheldIn) -> None:
        super().__init__(reader)
        self._withheld_in = withheld_in
        self.left_out = False
        """Whether any option has been left out so far."""

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield all trees in portions, each with the highest root id that it may contain."""
        for read, last in self._reader.chunks(wanted):
            yield self._without_withheld(read), last

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return the trees with these roots."""
        return self._without_withheld(self._reader.trees_of(roots))

    def all_trees(self) -> TreesRead:
        """Return all trees."""
        return self._without_withheld(self._reader.all_trees())

    def _without_withheld(self, read: TreesRead) -> TreesRead:
        if not read.trees:
            return read
        others = {root for tree in read.trees if tree.sharing for root in tree.root_of.values()}
        withheld = self._withheld_in({tree.root for tree in read.trees} | others)
        if not withheld:
            return read
        trees = [self._left(tree, withheld) for tree in read.trees]
        return read._replace(trees=[tree for tree in trees if all(tree.options)])

    def _left(self, tree: Tree, withheld: AbstractSet[int]) -> Tree:
        options = [[one for one in providers if one not in withheld] for providers in tree.options]
        if options == tree.options:
            return tree
        self.left_out = True
        return replace(tree, options=options)
