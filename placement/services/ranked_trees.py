"""The trees of a cloud in the order of their scores: what is read of them, and when."""

from collections.abc import Iterator

from placement.allocators.patterns import WILDCARD
from placement.candidates.budget import Budget
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.ranking import Portion, Ranking, TreeScores, all_best_first, amounts_of, best_first
from placement.candidates.reading import ByScore, by_root
from placement.domain.search_plan import Choice
from placement.domain.tree import Tree
from placement.store.connection.unit_of_work import Transaction
from placement.store.resource_classes import all_classes
from placement.store.search.scores import ABSENT, tree_sums
from placement.store.search.trees import TreeSource


def best_trees(
    tx: Transaction, source: TreeSource, ranking: Ranking, *, budget: Budget, wanted: int | None
) -> Iterator[tuple[Tree, Iterator[Choice]]]:
    """Yield the trees that serve a plan with their candidates, both best first, reading no more than is asked for.

    Args:
        tx: where to read.
        source: the trees of a plan, with places.
        ranking: what is best.
        budget: the steps that may be taken.
        wanted: how many candidates are wanted; None reads everything at once.
    """
    plan = source.plan
    scores = TreeScores(amounts_of(plan), ranking, classes_in_families(tx, ranking))
    compact = CompactFirst(plan, budget, all_wanted=wanted is None)
    found = portions(tx, source, scores, wanted)
    if wanted is None:
        return all_best_first(found, compact.all_composed, scores.lost)
    return best_first(found, compact.composed, scores.lost)


def portions(tx: Transaction, source: TreeSource, scores: TreeScores, wanted: int | None) -> Iterator[Portion]:
    """Yield the trees that serve a plan in portions, those first that can score highest."""
    if not scores.tell_trees_apart or not source.is_possible or source.only_root is not None:
        return by_root(scores, source, wanted)
    asked = amounts_of(source.plan)
    ids = tx.names.classes.ids(tx.connection, {*scores.classes, *asked})
    # Where nothing is shared, a tree that can serve has some of every class that is asked for.
    found_by = [] if asked.keys() & {*scores.classes} else [ids[name] for name in sorted(asked)[:1]]
    sums = tree_sums(tx, [ids.get(name, ABSENT) for name in scores.classes], found_by)
    return ByScore(scores, sums, source, complete=not source.shares).portions(wanted)


def classes_in_families(tx: Transaction, ranking: Ranking) -> list[str]:
    """Return all classes, where the profile names scarce ones by family; otherwise none has to be known."""
    strategy = ranking.profile.strategy
    named = [*(strategy.sra.resources if strategy.sra else ())]
    named += strategy.proportional.reserve if strategy.proportional else ()
    return [class_.name for class_ in all_classes(tx)] if any(name.endswith(WILDCARD) for name in named) else []
