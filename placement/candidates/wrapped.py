"""Readers that wrap another reader: one that changes nothing, and one that reads everything only once."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

from placement.candidates.reading import Reader
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree, TreesRead

T = TypeVar("T")


class WrappedReader:
    """A Reader that delegates everything to another one: the base of those that change some of it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def plan(self) -> Plan:
        """The plan to serve."""
        return self._reader.plan

    @property
    def is_possible(self) -> bool:
        """Whether any tree may serve the plan at all."""
        return self._reader.is_possible

    @property
    def only_root(self) -> int | None:
        """The root of the only tree that may serve, if the request names one."""
        return self._reader.only_root

    @property
    def shares(self) -> bool:
        """Whether sharing providers may serve any of the plan."""
        return self._reader.shares

    @property
    def shared_demands(self) -> AbstractSet[int]:
        """The demands of the plan that sharing providers may serve."""
        return self._reader.shared_demands

    @property
    def most_listed(self) -> int:
        """How many trees may be asked for by root at a time."""
        return self._reader.most_listed

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> Collection[Sequence[int]]:
        """Return a row for each tree: its root, its capacity of each class, then its usage of each class."""
        return self._reader.sums(classes, found_by, roots)

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield all trees in portions, each with the highest root id that it may contain."""
        return self._reader.chunks(wanted)

    def with_room(self, roots: Iterable[int]) -> Collection[int] | None:
        """Return those of some trees that have enough left; None if that would cost much to find out."""
        return self._reader.with_room(roots)

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return the trees with these roots."""
        return self._reader.trees_of(roots)

    def all_trees(self) -> TreesRead:
        """Return all trees."""
        return self._reader.all_trees()


class RememberingReader(WrappedReader):
    """Reads each tree of a snapshot once, for searches that go through the same trees again and again.

    The trees are the same objects each time and come without ``TreesRead.places``, so searches must not lay them out.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self._sums: dict[tuple[tuple[str, ...], tuple[str, ...]], Collection[Sequence[int]]] = {}
        self._chunks: dict[int | None, Replayed[tuple[TreesRead, int]]] = {}
        self._trees: dict[int, Tree | None] = {}
        self._all: TreesRead | None = None

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> Collection[Sequence[int]]:
        """Return a row for each tree: its root, its capacity of each class, then its usage of each class."""
        asked = (tuple(classes), tuple(found_by))
        if roots is not None:
            if asked not in self._sums:
                return self._reader.sums(classes, found_by, roots)
            wanted = {*roots}
            return [row for row in self._sums[asked] if row[0] in wanted]
        if asked not in self._sums:
            self._sums[asked] = self._reader.sums(classes, found_by)
        return self._sums[asked]

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield all trees in portions, each with the highest root id that it may contain."""
        if wanted not in self._chunks:
            self._chunks[wanted] = Replayed(self._noted(self._reader.chunks(wanted)))
        return iter(self._chunks[wanted])

    def _noted(self, chunks: Iterator[tuple[TreesRead, int]]) -> Iterator[tuple[TreesRead, int]]:
        for read, last in chunks:
            self._trees.update({tree.root: tree for tree in read.trees})
            yield read, last

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return the trees with these roots."""
        if self._all is None and (unknown := [root for root in roots if root not in self._trees]):
            self._trees.update(dict.fromkeys(unknown))
            self._trees.update({tree.root: tree for tree in self._reader.trees_of(unknown).trees})
        return TreesRead([tree for root in sorted(roots) if (tree := self._trees.get(root)) is not None])

    def all_trees(self) -> TreesRead:
        """Return all trees."""
        if self._all is None:
            self._all = TreesRead([self._trees.get(tree.root) or tree for tree in self._reader.all_trees().trees])
            self._trees = {tree.root: tree for tree in self._all.trees}
        return self._all


class Replayed(Generic[T]):
    """Replays what an iterator yields as often as needed, pulling from it no further than the furthest reader."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source = iter(source)
        self._taken: list[T] = []

    def __iter__(self) -> Iterator[T]:
        """Yield everything from the beginning.

        >>> replayed = Replayed(iter([1, 2, 3]))
        >>> next(iter(replayed)), list(replayed), list(replayed)
        (1, [1, 2, 3], [1, 2, 3])
        """
        number = 0
        while number < len(self._taken) or self._has_another():
            yield self._taken[number]
            number += 1

    def _has_another(self) -> bool:
        for one in self._source:
            self._taken.append(one)
            return True
        return False
