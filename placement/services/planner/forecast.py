"""What the planner can expect of trees before it composes anything in them: their scores as wholes."""

from collections.abc import Callable, Mapping, Sequence

from placement.allocators.patterns import WILDCARD
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.scorer import Scorer, scorer_for
from placement.candidates.planner.best_first import Expected
from placement.domain.tree import Tree
from placement.store.connection.unit_of_work import Transaction
from placement.store.resource_classes import all_classes
from placement.store.search.planner_trees import Sums, tree_sums


class Forecast:
    """The score of trees by a profile, for one request.

    Args:
        tx: the transaction.
        profile: the profile.
        requested: how much is asked for of each class.
        compactness: how compact anything in each of some trees can be at best.
    """

    def __init__(
        self,
        tx: Transaction,
        profile: RankingProfile,
        requested: Mapping[str, int],
        compactness: Callable[[Sequence[Tree]], list[float]],
    ) -> None:
        self._tx = tx
        self._profile = profile
        self._requested = requested
        self._compactness = compactness
        self._maximum = float(profile.maximum)
        self._weight = float(profile.compactness)

    def of(self, trees: Sequence[Tree]) -> list[Expected]:
        """Return what can be expected of trees; without those that the profile leaves out."""
        if not trees:
            return []
        scorer = scorer_for(self._profile.strategy, self._requested, self._known_classes())
        ids = self._tx.names.classes.ids(self._tx.connection, set(scorer.classes))
        sums = tree_sums(self._tx, sorted(ids.values()), [tree.root for tree in trees])
        order = [ids.get(name) for name in scorer.classes]
        pairs = zip(trees, self._compactness(trees), strict=True)
        found = [self._expected(tree, scorer, _columns(sums.get(tree.root, {}), order), bound) for tree, bound in pairs]
        proportional = self._profile.strategy.proportional
        if proportional is not None and proportional.mode == "filter":
            return [one for one in found if one.keeps_proportion]
        return found

    def total(self, strategy: float, compactness: float) -> float:
        """Return a score from 0 to 100 of its parts."""
        return 100 * (strategy + self._weight * compactness) / self._maximum if self._maximum else 0.0

    def _expected(
        self, tree: Tree, scorer: Scorer, columns: tuple[tuple[int, ...], tuple[int, ...]], bound: float
    ) -> Expected:
        strategy = scorer.score(*columns)
        return Expected(tree, scorer.keeps_proportion(*columns), strategy, self.total(strategy, bound))

    def _known_classes(self) -> list[str]:
        """Return all classes there are, if the profile has families of them."""
        strategy = self._profile.strategy
        parts = [
            strategy.fit.resources if strategy.fit else {},
            strategy.sra.resources if strategy.sra else {},
            strategy.proportional.reserve if strategy.proportional else {},
        ]
        has_families = any([name.endswith(WILDCARD) for part in parts for name in part])
        return [each.name for each in all_classes(self._tx)] if has_families else []


def _columns(sums: Sums, order: Sequence[int | None]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return (capacities, used) in the order of classes."""
    found = [sums.get(class_id, (0, 0)) if class_id is not None else (0, 0) for class_id in order]
    return tuple([capacity for capacity, _used in found]), tuple([used for _capacity, used in found])
