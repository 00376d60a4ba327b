"""The order of candidates where providers share with trees: by what each takes of the tree itself.

A candidate that sharing providers serve alone is of no tree, so those of a tree come apart from its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from placement.allocators.compactness import Counts
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.given import Given, OwnParts
from placement.candidates.compose.pooled import BestFirst, CandidateRank
from placement.candidates.frontier import Key, Keyed
from placement.candidates.ranking import TreeScores
from placement.candidates.reading import SumsAsRead
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

RankedPart = tuple[Key, bool, Tree, Iterator[Choice]]
"""The key of the best candidate, whether pools alone serve, the tree, and the candidates."""


class PooledRanking:
    """Composes in trees that share, and ranks what comes out.

    Args:
        plan: what is asked for.
        scores: what candidates score.
        sums: those of the trees.
        budget: the steps that may be taken.
        all_wanted: whether every candidate will be taken.
    """

    def __init__(
        self, plan: Plan, scores: TreeScores, sums: SumsAsRead, budget: RequestBudget, *, all_wanted: bool
    ) -> None:
        self._scores = scores
        self._sums = sums
        self._own_parts = OwnParts(plan, scores.weighed)
        self._composer = BestFirst(plan, budget, self._own_parts, all_wanted=all_wanted)

    def ranked(self, batch: Sequence[Keyed]) -> Iterator[RankedPart]:
        """Yield the candidates of some trees, with the keys of the best."""
        trees = [tree for _key, tree in batch]
        self._scores.prefer_devices(trees)
        alike: dict[int, Given] = {}
        for tree in trees:
            alone, possible = self._own_parts.of_pools_alone(tree), self._own_parts.possible(tree)
            if alone is not None:
                yield from self._of_pools(tree, alone)
            if possible is not None and len(possible) == 1 and alone is None:
                (alike[tree.root],) = possible
            elif possible is None or possible:
                yield from self._of_tree(tree)
        yield from self._all_alike([tree for tree in trees if tree.root in alike], alike)

    def _all_alike(self, trees: Sequence[Tree], given: Mapping[int, Given]) -> Iterator[RankedPart]:
        """Yield the candidates of trees that give the same in all of theirs: these come by compactness alone."""
        for tree, composed in zip(trees, self._composer.composed(trees), strict=True):
            if composed is not None:
                key = self._scores.key_of(self._sums.of(tree.root), given[tree.root], composed.counts)
                if not (key[0] and self._scores.filters):
                    yield key, False, tree, composed.ways

    def _of_pools(self, tree: Tree, alone: Tree) -> Iterator[RankedPart]:
        composed = self._composer.composed_in(alone)
        if composed is not None:
            yield self._scores.key_of(self._sums.of(tree.root), None, ()), True, alone, composed.ways

    def _of_tree(self, tree: Tree) -> Iterator[RankedPart]:
        row = self._sums.of(tree.root)
        ranked = self._composer.ranked_in(tree, partial(self._rank, row))
        if ranked is not None:
            yield (*ranked.rank, tree.root), False, tree, ranked.ways

    def _rank(self, row: Sequence[int], given: Given, counts: Counts) -> CandidateRank | None:
        fails, below = self._scores.weight(row, given)
        return None if fails and self._scores.filters else (fails, below + self._scores.lost(counts))
