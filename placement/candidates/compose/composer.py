"""What composes, as the phases around it see it: one method, whatever is composed and however."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from placement.allocators.compactness import Counts
from placement.domain.tree import Tree

Way = TypeVar("Way")


class Composed(NamedTuple, Generic[Way]):
    """The ways to serve a plan in one tree, the best first.

    ``counts`` are how many places of each level the first one touches; empty where levels do not matter, or where
    each way has counts of its own.
    """

    counts: Counts
    ways: Iterator[Way]


class Composer(Protocol[Way]):
    """Composes the ways to serve a plan: choices of providers for the slots of candidates, or the planner's proposals.

    It knows nothing of other trees than those it is given, of scores, or of how many ways are wanted: whoever wants
    ten takes ten.
    """

    def composed(self, trees: Sequence[Tree]) -> Iterable[Composed[Way] | None]:
        """Return for each of some trees what was composed; None is nothing, and so may be no ways."""
