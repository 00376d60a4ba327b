"""Trees of a planner request in the order of what can still be expected of them, and proposals in order of their score.

A tree has a score of its own and a bound on how compact anything in it can be. So trees are composed only as long as
one of them may still hold something better than what has been found.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from placement.allocators.compactness import MAX_COMPACTNESS, compactness
from placement.candidates.planner.proposals import Proposal
from placement.domain.planner_tree import Position
from placement.domain.tree import Tree

ROUNDING = 1e-9
LARGEST_BATCH = 64
"""Trees that are read together: not many more than are needed, and not each by itself."""


class Expected(NamedTuple):
    """A tree, whether it keeps the proportions of the profile, and the best that a proposal in it can score."""

    tree: Tree
    keeps_proportion: bool
    strategy: float
    bound: float

    @property
    def order(self) -> tuple[bool, float, int]:
        """What trees are sorted by."""
        return not self.keeps_proportion, -self.bound, self.tree.root


class Scored(NamedTuple):
    """A proposal and its score, from 0 to 100."""

    order: tuple[bool, float, int, int]
    proposal: Proposal


def best_compactness(tree: Tree, wanted: Sequence[tuple[int, int]], positions: Mapping[int, Position]) -> float:
    """Return a bound on the compactness of anything in a tree: never too low.

    Args:
        tree: the tree.
        wanted: (kind, how many providers of it).
        positions: the places of the tree's options.
    """
    counts: list[int] = []
    for kind, number in wanted:
        rows = [positions[provider] for provider in tree.options[kind] if provider in positions]
        if len(rows) == len(tree.options[kind]) and rows:
            least = [_fewest([row[level] for row in rows], number) for level in range(len(rows[0]))]
            counts = least if not counts else [max(pair) for pair in zip(counts, least, strict=True)]
    return compactness(counts) if counts else MAX_COMPACTNESS


def _fewest(places: Sequence[int | None], number: int) -> int:
    """Return in how few places a number of providers can be; those in no place cost nothing.

    >>> _fewest([1, 1, 2, None], 3), _fewest([1, 2, 3], 3)
    (1, 3)
    """
    free: dict[int | None, int] = {}
    for place in places:
        free[place] = free.get(place, 0) + 1
    left = number - free.pop(None, 0)
    needed = 0
    for count in sorted(free.values(), reverse=True):
        if left <= 0:
            break
        left -= count
        needed += 1
    return max(1, needed)


def in_order(
    expected: Sequence[Expected], compose: Callable[[Sequence[Expected]], Iterator[Scored]], *, wanted: int
) -> Iterator[Proposal]:
    """Yield proposals, the best first, composing in as few trees as that takes.

    Args:
        expected: the trees.
        compose: composes in some of them.
        wanted: how many proposals will probably be taken.
    """
    waiting = sorted(expected, key=lambda one: one.order)
    found: list[Scored] = []
    at, size = 0, min(wanted, LARGEST_BATCH)
    while at < len(waiting) or found:
        if at < len(waiting) and not (found and _is_certain(found[0], waiting[at])):
            for scored in compose(waiting[at : at + size]):
                heapq.heappush(found, scored)
            at, size = at + size, min(2 * size, LARGEST_BATCH)
        elif found:
            yield heapq.heappop(found).proposal


def _is_certain(scored: Scored, rival: Expected) -> bool:
    """Tell whether nothing in a tree can come before a proposal."""
    fails, total, root, _number = scored.order
    other_fails, bound, other_root = rival.order
    if fails != other_fails:
        return not fails
    return total < bound - ROUNDING or (total <= bound + ROUNDING and root < other_root)
