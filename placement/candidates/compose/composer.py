"""What the other phases see of composing: one method, whatever is composed and however."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from placement.allocators.compactness import Counts
from placement.domain.tree import Tree

Way = TypeVar("Way")


class Composed(NamedTuple, Generic[Way]):
    """The ways to serve a plan in one tree, best first.

    ``counts`` tells how many places of each level the first way touches. It is empty if levels do not matter, or if
    each way has counts of its own.
    """

    counts: Counts
    ways: Iterator[Way]


class Composer(Protocol[Way]):
    """Composes the ways to serve a plan: choices of providers for the slots of candidates, or the planner's proposals.

    It knows nothing of scores, of trees beyond those it is given, or of how many ways are wanted: the caller pulls as
    many as it needs.
    """

    def composed(self, trees: Sequence[Tree]) -> Iterable[Composed[Way] | None]:
        """Compose several trees. A result of None means no ways; other results may turn out to have none, too."""
