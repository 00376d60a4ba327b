"""What is told of same_subtree before a tree is read in detail: its groups have to find providers in one tree.

Providers that share with others are of other trees, so groups that they alone can serve are often torn apart.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from placement.candidates.compose.device_parts import Part
from placement.domain.planner_request import PlannerRequest
from placement.domain.tree import Tree


class _Tie(NamedTuple):
    """The demands of the groups of a same_subtree, and how many different providers it takes at least."""

    demands: frozenset[int]
    different: int


class TornSubtrees:
    """The same_subtrees of a request.

    Args:
        request: the request.
        parts: its parts.
    """

    def __init__(self, request: PlannerRequest, parts: Sequence[Part]) -> None:
        # Of what is counted in a tree, or taken as a whole, there may be none.
        fixed = [part for part in parts if not part.group.per_subtree and not part.group.everything]
        self._ties: list[_Tie] = []
        for suffixes in request.same_subtree:
            tied = [part for part in fixed if part.slot.suffix in suffixes]
            taking = sum(bool(part.slot.resources) for part in tied)
            demands = frozenset([part.slot.demand for part in tied])
            if demands:
                self._ties.append(_Tie(demands, taking if request.isolate else 1))

    def are_in(self, tree: Tree) -> bool:
        """Tell whether the groups of some same_subtree certainly find no common place among the options of a tree."""
        return any([_is_torn(tie, tree) for tie in self._ties])


def _is_torn(tie: _Tie, tree: Tree) -> bool:
    rows = [tree.options[demand] for demand in tie.demands]
    home = {provider: tree.home.get(provider, tree.root) for row in rows for provider in row}
    common = set.intersection(*[{home[provider] for provider in row} for row in rows])
    there = Counter(home.values())
    return all([there[one] < tie.different for one in common])
