"""The order of trees: what a tree's score is, and which tree comes next while most are still unread.

The score of a tree is the mean by weight of what is known of it as a whole (strategy fit, scarce resources) and of the
compactness of its best candidate, which takes a search. So trees are read and searched by the highest score that they
can still have, and one comes out as soon as no other can have more (a threshold algorithm).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import NamedTuple

from placement.allocators.compactness import MAX_COMPACTNESS, Counts, compactness
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import scorer_for
from placement.candidates.compose.compact import Composed
from placement.domain.search_plan import Choice, Plan
from placement.domain.tree import Tree

MAX_SCORE = 100.0

Key = tuple[bool, float, int]
"""The place of a tree in the order: whether it breaks a proportion, its score as a negative number, its root."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How trees and candidates are to be ordered.

    Args:
        profile: what is best.
        levels: the traits of the places that compactness counts, outermost first.
        near_equal: trees whose scores differ by no more points may change places.
        seed: what decides which of them do; None leaves them in their order.
    """

    profile: RankingProfile
    levels: tuple[str, ...] = ()
    near_equal: float = 0.0
    seed: int | None = None


class TreeScores:
    """The scores of trees for one request.

    Args:
        requested: how much is asked for of each class in all.
        ranking: what is best.
        known: every class that providers may have; needed where the profile names scarce resources by family.
    """

    def __init__(self, requested: Mapping[str, int], ranking: Ranking, known: Iterable[str] = ()) -> None:
        profile = ranking.profile
        proportional = profile.strategy.proportional
        self._scorer = scorer_for(profile.strategy, requested, known)
        self._per_point = MAX_SCORE / float(profile.maximum) if profile.maximum else 0.0
        self._per_compactness = self._per_point * float(profile.compactness)
        self._most_compact = self._per_compactness * MAX_COMPACTNESS
        self._seed = ranking.seed
        self._near_equal = 0.0 if ranking.seed is None else ranking.near_equal
        self._lost: dict[Counts, float] = {(): 0.0}
        self.filters = proportional is not None and proportional.mode == "filter"
        self.classes = self._scorer.classes
        """What has to be known of a tree: its capacity and use of these classes, in this order."""

    @property
    def tell_trees_apart(self) -> bool:
        """Whether anything about a tree as a whole matters: sums of classes, or which root it has."""
        return bool(self.classes or self._near_equal)

    def keys(self, sums: Collection[Sequence[int]]) -> list[Key]:
        """Return the keys of trees before they are searched: with the highest scores that they can have.

        Args:
            sums: for each tree its root, then its capacity, then its use of each of the classes.
        """
        judged = cache(self._judged)  # Hosts of a cloud are much alike.
        keys = [(*judged(row[1:]), row[0]) for row in sums]
        if self._near_equal:
            return [(fails, below - self._jitter(root), root) for fails, below, root in keys]
        return keys

    def _judged(self, amounts: Sequence[int]) -> tuple[bool, float]:
        capacity, used = amounts[: len(self.classes)], amounts[len(self.classes) :]
        highest = self._scorer.score(capacity, used) * self._per_point + self._most_compact
        return not self._scorer.keeps_proportion(capacity, used), -highest

    def key_of_nothing(self, root: int) -> Key:
        """Return the key of a tree that has none of the classes."""
        return self.keys([(root, *[0] * 2 * len(self.classes))])[0]

    @property
    def least_key_of_nothing(self) -> Key:
        """A key that no tree that has none of the classes is below."""
        fails, below, _root = self.key_of_nothing(0)
        return fails, below - self._near_equal, 0

    def _jitter(self, root: int) -> float:
        # A hash of two integers is the same in every process.
        return self._near_equal * (hash((self._seed, root)) % 2**32) / 2**32

    def lost(self, counts: Counts) -> float:
        """Return by how much a tree falls short of its highest score if its best candidate touches so many places."""
        lost = self._lost.get(counts)
        if lost is None:
            lost = self._lost[counts] = self._per_compactness * (MAX_COMPACTNESS - compactness(counts))
        return lost


def amounts_of(plan: Plan) -> Mapping[str, int]:
    """Return how much of each class a request asks for in all."""
    amounts: dict[str, int] = {}
    for slot in plan.slots:
        for name, amount in slot.resources:
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


class Portion(NamedTuple):
    """Some trees with their keys as they are before a search, and a key that no tree to come is below."""

    trees: list[tuple[Key, Tree]]
    rest: Key


LAST: Key = (True, inf, 0)
"""A key behind that of every tree."""


def best_first(
    portions: Iterable[Portion], composed: Callable[[Tree], Composed | None], lost: Callable[[Counts], float]
) -> Iterator[tuple[Tree, Iterator[Choice]]]:
    """Yield trees with their candidates, the best first; read and search no more of them than that takes.

    Args:
        portions: the trees, those first that can score highest.
        composed: returns the candidates of a tree.
        lost: how much is taken off a tree's score for the counts of its best candidate.
    """
    waiting: list[tuple[Key, Tree]] = []
    ready: list[tuple[Key, Tree, Iterator[Choice]]] = []
    for trees, rest in chain(portions, (Portion([], LAST),)):
        # Roots are all different, so keys alone are compared.
        waiting = sorted(waiting + trees, reverse=True)
        while waiting and (expected := waiting[-1][0]) < rest:
            while ready and ready[0][0] < expected:
                yield heappop(ready)[1:]
            (fails, below, root), tree = waiting.pop()
            if (found := composed(tree)) is not None:
                heappush(ready, ((fails, below + lost(found.counts), root), tree, found.choices))
        while ready and ready[0][0] < rest:
            yield heappop(ready)[1:]


def all_best_first(
    portions: Iterable[Portion],
    composed: Callable[[Sequence[Tree]], Iterable[Composed | None]],
    lost: Callable[[Counts], float],
) -> Iterator[tuple[Tree, Iterator[Choice]]]:
    """Yield the same where all candidates are wanted, so that all trees have to be searched before.

    Args:
        portions: the trees.
        composed: returns the candidates of trees; those that can score highest are asked for first.
        lost: how much is taken off a tree's score for the counts of its best candidate.
    """
    waiting = sorted(chain.from_iterable([trees for trees, _rest in portions]))
    found = zip(waiting, composed([tree for _key, tree in waiting]), strict=True)
    ready = [
        ((fails, below + lost(one.counts), root), tree, one.choices)
        for ((fails, below, root), tree), one in found
        if one is not None
    ]
    for _key, tree, choices in sorted(ready):
        yield tree, choices
