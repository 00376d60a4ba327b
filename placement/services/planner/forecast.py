"""What can be expected of the trees of a cloud, and so which of them are read first."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from placement.allocators.compactness import Counts
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.bounds import BoundedScores
from placement.candidates.ranking import LAST, Portion, Ranking
from placement.candidates.reading import ByScore
from placement.services.planner.least_places import Wanted, least_places
from placement.services.ranked_trees import classes_in_families, portions
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.narrowing import Narrowing
from placement.store.search.trees import TreeReader


class Forecast:
    """The trees of a cloud for one request, the most promising first.

    Args:
        tx: the transaction.
        narrowing: which trees can serve.
        profile: what is best.
        requested: how much is asked for of each class.
    """

    def __init__(
        self, tx: Transaction, narrowing: Narrowing, *, profile: RankingProfile, requested: Mapping[str, int]
    ) -> None:
        self._tx = tx
        self._narrowing = narrowing
        self._reader = TreeReader(tx, narrowing)
        ranking = Ranking(profile)
        self._scores = BoundedScores(requested, ranking, classes_in_families(tx, ranking))
        self._counts_places = bool(profile.compactness)
        self._falls_short = False

    def score_below(self, root: int, counts: Counts) -> float:
        """Return the score, as a negative number, of something that touches so many places of a tree.

        Remembers whether anything lost by that: ``as_needed`` counts places from then on.
        """
        self._falls_short = self._falls_short or self._scores.lost(counts) > 0
        return self._scores.score_below(root, counts)

    def portions(self, limit: int, wanted: Wanted, levels: Sequence[int | None]) -> Iterator[Portion]:
        """Yield the trees in portions.

        Args:
            limit: how many candidates are wanted.
            wanted: what is counted.
            levels: the ids of the traits of levels, None for one that does not exist.
        """
        if not self._reader.is_possible:
            return iter(())
        if (root := self._reader.only_root) is not None:
            return self.only(root)
        return self._bounded(limit, wanted, levels) or portions(self._reader, self._scores, limit)

    def as_needed(self, limit: int, wanted: Wanted, levels: Sequence[int | None]) -> Iterator[Portion]:
        """Yield the same trees, but count places only once something that was found touches more than one.

        What lies in one place of each level cannot be beaten: then most of the cloud is not looked at.
        """
        if not wanted or not self._counts_places or not self._reader.is_possible or self._reader.only_root is not None:
            yield from self.portions(limit, wanted, levels)
            return
        unbounded = portions(self._reader, self._scores, limit)
        seen: set[int] = set()
        while not self._falls_short:
            portion = next(unbounded, None)
            if portion is None:
                return
            yield portion
            seen.update([tree.root for _key, tree in portion.trees])
        for trees, rest in self._bounded(limit, wanted, levels) or unbounded:
            yield Portion([(key, tree) for key, tree in trees if tree.root not in seen], rest)

    def _bounded(self, limit: int, wanted: Wanted, levels: Sequence[int | None]) -> Iterator[Portion] | None:
        """Return the trees with bounds on the places that they touch, None where there are no such bounds."""
        least = least_places(self._tx, self._narrowing, wanted, levels) if wanted and self._counts_places else None
        if least is None:
            return None
        self._scores.bound(least)
        return ByScore(self._scores, self._sums(least), self._reader, complete=True).portions(limit)

    def only(self, root: int) -> Iterator[Portion]:
        """Yield one tree, unless the profile leaves it out."""
        trees = self._reader.trees_of([root]).trees if self._reader.is_possible else []
        if trees and self._scores.filters:
            trees = [] if self._scores.keys(self._sums([root]))[0][0] else trees
        yield Portion([(self._scores.key_of_nothing(root), tree) for tree in trees], LAST)

    def _sums(self, roots: Collection[int]) -> list[tuple[int, ...]]:
        """Return what scores look at: for each tree its root, then capacities, then what is used."""
        classes = self._scores.classes
        if not classes:
            return [(root,) for root in roots]
        known = {row[0]: row for row in self._reader.sums(classes, ())}
        return [known.get(root) or (root, *[0] * 2 * len(classes)) for root in roots]
