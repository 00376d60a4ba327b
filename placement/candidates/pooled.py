"""Ranks candidates where providers share with trees: by what each takes of the tree itself.

A candidate served by sharing providers alone takes from their trees, not from the tree it was found in. Such candidates
are ranked apart, grouped by the trees they take from, however many trees they are found in.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain

from placement.allocators.compactness import Counts
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.own_parts import OwnAmounts, OwnParts
from placement.candidates.compose.pooled import BestFirst, CandidateRank
from placement.candidates.frontier import FAILS, Key, Keyed
from placement.candidates.ranking import TreeScores
from placement.candidates.reading import SumsAsRead
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

RankedPart = tuple[Key, tuple[int, ...], Tree, Iterator[Choice]]
"""The key of the best candidate, a tie-break for equal keys, the tree, and its candidates."""


class PooledRanking:
    """Composes in trees that others share with, and ranks the results.

    Args:
        plan: what is asked for.
        scores: what candidates score.
        sums: the sums of the trees.
        budget: limits the steps of the search.
        all_wanted: whether every candidate will be taken.
    """

    def __init__(
        self, plan: Plan, scores: TreeScores, sums: SumsAsRead, budget: RequestBudget, *, all_wanted: bool
    ) -> None:
        self._scores = scores
        self._sums = sums
        self._own_parts = OwnParts(plan, scores.weighed)
        self._composer = BestFirst(plan, budget, self._own_parts, all_wanted=all_wanted)
        self._found_elsewhere: set[tuple[AbstractSet[int] | None, tuple[tuple[int, ...], ...]]] = set()

    def ranked(self, batch: Sequence[Keyed]) -> Iterator[RankedPart]:
        """Yield the candidates of some trees in groups, each with the key of its best."""
        trees = [tree for _key, tree in batch]
        self._scores.prefer_devices(trees)
        alike: dict[int, OwnAmounts] = {}
        for tree in trees:
            alone, possible = self._own_parts.of_pools_alone(tree), self._own_parts.possible(tree)
            if alone is not None:
                yield from self._of_pools(alone)
            if possible is not None and len(possible) == 1 and alone is None:
                (alike[tree.root],) = possible
            elif possible is None or possible:
                yield from self._of_tree(tree)
        yield from self._all_alike([tree for tree in trees if tree.root in alike], alike)

    def _all_alike(self, trees: Sequence[Tree], given: Mapping[int, OwnAmounts]) -> Iterator[RankedPart]:
        """Yield the candidates of trees that give the same in each of theirs, so that only compactness orders them."""
        for tree, composed in zip(trees, self._composer.composed(trees), strict=True):
            if composed is not None:
                key = self._scores.key_of(self._sums.of(tree.root), given[tree.root], composed.counts)
                if not (key[FAILS] and self._scores.filters):
                    yield key, (), tree, composed.ways

    def _of_pools(self, alone: Tree) -> Iterator[RankedPart]:
        """Yield what sharing providers serve alone: whatever takes from the same trees scores the same."""
        if self._was_found_elsewhere(alone, None):
            return
        pools_of, possible = self._own_parts.pools_of, self._own_parts.possible_pools(alone)
        for roots in [None] if possible is None else possible:
            tree = alone if roots is None else self._own_parts.within(alone, roots)
            if roots is not None and self._was_found_elsewhere(tree, roots):
                continue
            composed = self._composer.composed_in(tree)
            ways = iter(()) if composed is None else composed.ways
            if roots is not None and len(roots) > 1:
                ways = filter(partial(self._takes_from, alone, roots), ways)
            first = next(ways, None)
            if first is not None:
                pools = pools_of(first, alone)
                key = self._key_of_pools(pools, alone)
                if not (key[FAILS] and self._scores.filters):
                    yield key, (*sorted(pools), alone.root), tree, chain((first,), ways)

    def _takes_from(self, alone: Tree, roots: AbstractSet[int], choice: Choice) -> bool:
        return self._own_parts.pools_of(choice, alone) == roots

    def _key_of_pools(self, roots: AbstractSet[int], alone: Tree) -> Key:
        row = self._sums.together(roots, alone.root_of)
        weight = self._scores.weight_of_pools(row)
        # Ranks among trees as if it had been found in its own.
        return (*weight, row[0] if self._scores.tell_trees_apart else alone.root)

    def _was_found_elsewhere(self, tree: Tree, roots: AbstractSet[int] | None) -> bool:
        """Tell whether another tree has given the same: only possible if the tree gives nothing of its own.

        Args:
            tree: the tree, with the options to choose from.
            roots: the trees that must be taken from; None for any.
        """
        if tree.gives_of_its_own:
            return False
        found = roots, tuple(map(tuple, tree.options))
        if found in self._found_elsewhere:
            return True
        self._found_elsewhere.add(found)
        return False

    def _of_tree(self, tree: Tree) -> Iterator[RankedPart]:
        row = self._sums.of(tree.root)
        ranked = self._composer.ranked_in(tree, partial(self._rank, row))
        if ranked is not None:
            yield (*ranked.rank, tree.root), (), tree, ranked.ways

    def _rank(self, row: Sequence[int], given: OwnAmounts, counts: Counts) -> CandidateRank | None:
        fails, negated = self._scores.weight(row, given)
        return None if fails and self._scores.filters else (fails, negated + self._scores.lost(counts))
