"""Rules out trees by same_subtree before they are read in detail: its groups need providers in a single tree.

Sharing providers belong to trees of their own, so a group that only they can serve is in none with the other groups.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from placement.candidates.compose.device_parts import Part
from placement.domain.planner_request import PlannerRequest
from placement.domain.tree import Tree


class _Tie(NamedTuple):
    """The demands of the groups in a same_subtree, and the least number of different providers they take."""

    demands: frozenset[int]
    different: int


class TornSubtrees:
    """The same_subtrees of a request.

    Args:
        request: the request.
        parts: its parts.
    """

    def __init__(self, request: PlannerRequest, parts: Sequence[Part]) -> None:
        # A group counted per subtree, or taking everything, may end up with nothing.
        fixed = [part for part in parts if not part.group.per_subtree and not part.group.everything]
        self._ties: list[_Tie] = []
        for suffixes in request.same_subtree:
            tied = [part for part in fixed if part.slot.suffix in suffixes]
            taking = sum(bool(part.slot.resources) for part in tied)
            demands = frozenset([part.slot.demand for part in tied])
            if demands:
                self._ties.append(_Tie(demands, taking if request.isolate else 1))

    def are_in(self, tree: Tree) -> bool:
        """Tell whether the groups of some same_subtree certainly have no tree in common among the options of a tree."""
        return any([_is_torn(tie, tree) for tie in self._ties])


def _is_torn(tie: _Tie, tree: Tree) -> bool:
    rows = [tree.options[demand] for demand in tie.demands]
    providers = set[int]().union(*rows)
    if tree.root_of.keys().isdisjoint(providers):  # All are of the tree itself, as in most trees of most clouds.
        return len(providers) < tie.different
    root_of = {provider: tree.root_of.get(provider, tree.root) for row in rows for provider in row}
    common = set.intersection(*[{root_of[provider] for provider in row} for row in rows])
    there = Counter(root_of.values())
    return all([there[one] < tie.different for one in common])
