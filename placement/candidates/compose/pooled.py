"""The order of the candidates of one tree that others share with: the best score first.

The own part decides the score, so candidates of one tree differ in more than the places they touch. Those that score
the same come by compactness, then in search order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.compact import FEW_COMBINATIONS, CompactFirst
from placement.candidates.compose.constraints import Constraint
from placement.candidates.compose.own_parts import OwnAmounts, OwnParts, WithOwnPart
from placement.candidates.compose.touched_places import Touches, possible_counts
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

CandidateRank = tuple[bool, float]
"""Whether a candidate breaks a proportion, and its negated score."""

CandidateRankOf = Callable[[OwnAmounts, Counts], CandidateRank | None]
"""Returns the rank of candidates, by their own part and how many places of each level they touch; None to leave them
out.
"""


class RankedWays(NamedTuple):
    """The candidates of a tree, best first, and the rank of the first one."""

    rank: CandidateRank
    ways: Iterator[Choice]


class BestFirst(CompactFirst):
    """Composes the candidates of trees that others share with, the best scores first.

    Args:
        plan: what is asked for.
        budget: limits the steps of the search.
        own_parts: the own parts that candidates may have.
        all_wanted: whether every candidate will be taken.
        few: up to this many combinations of a tree are composed and sorted in any case.
    """

    def __init__(
        self, plan: Plan, budget: RequestBudget, own_parts: OwnParts, *, all_wanted: bool, few: int = FEW_COMBINATIONS
    ) -> None:
        super().__init__(plan, budget, all_wanted=all_wanted, few=few)
        self._own_parts = own_parts

    def ranked_in(self, tree: Tree, rank_of: CandidateRankOf) -> RankedWays | None:
        """Return the choices that take anything of the tree itself, best first; None if there are none."""
        if self._combinations(tree) <= self._few or self._may_sort(tree):
            ranked = sorted(self._ranked(tree, self._composer.choices(tree), rank_of), key=itemgetter(0))
            return RankedWays(ranked[0][0][0], iter([choice for _key, choice in ranked])) if ranked else None
        possible = self._own_parts.possible(tree)
        if possible is None:
            composed = self._unsorted(tree)
        else:
            composed = self._first_found(tree, self._conditions(tree, possible, rank_of))
        found = self._ranked(tree, composed.ways, rank_of) if composed else iter(())
        first = next(found, None)
        if first is None:
            return None
        (rank, _counts), choice = first
        return RankedWays(rank, chain((choice,), (choice for _key, choice in found)))

    def _ranked(
        self, tree: Tree, choices: Iterator[Choice], rank_of: CandidateRankOf
    ) -> Iterator[tuple[tuple[CandidateRank, Counts], Choice]]:
        """Yield choices with their sort keys, without those that take nothing of the tree or are left out."""
        masks, own_parts = tree.places.of, self._own_parts
        for choice in choices:
            given = own_parts.of(choice, tree)
            if given is not None:
                (touched,) = self._touched(masks, [choice])
                counts = tree.places.counts(touched) if masks else ()
                rank = rank_of(given, counts)
                if rank is not None:
                    yield (rank, counts), choice

    def _conditions(
        self, tree: Tree, possible: AbstractSet[OwnAmounts], rank_of: CandidateRankOf
    ) -> Iterator[tuple[Counts, Sequence[Constraint]]]:
        """Yield counts with the constraints for candidates of one score that touch as many places, best score first."""
        slots = self._composer.slots_in_order(tree)
        has_places = bool(tree.places.of)
        of_equal_rank: dict[tuple[CandidateRank, Counts], set[OwnAmounts]] = defaultdict(set)
        for counts in possible_counts(self._plan, tree) if has_places else [()]:
            for given in possible:
                rank = rank_of(given, counts)
                if rank is not None:
                    of_equal_rank[rank, counts].add(given)
        for (_rank, counts), amounts in sorted(of_equal_rank.items(), key=itemgetter(0)):
            with_own_part = WithOwnPart(self._own_parts, tree, slots, amounts)
            yield counts, [with_own_part, Touches(slots, tree.places, counts)] if has_places else [with_own_part]
