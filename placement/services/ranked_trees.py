"""The trees of a cloud in the order of their scores: what is read of them, and when."""

from collections.abc import Iterator

from placement.allocators.patterns import WILDCARD
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.ranking import Portion, Ranking, TreeScores, all_best_first, amounts_of, best_first
from placement.candidates.reading import ByScore, Reader, by_root
from placement.domain.search_plan import Choice
from placement.domain.tree import Tree
from placement.store.connection.unit_of_work import Transaction
from placement.store.resource_classes import all_classes


def best_trees(
    tx: Transaction, reader: Reader, ranking: Ranking, *, budget: RequestBudget, wanted: int | None
) -> Iterator[tuple[Tree, Iterator[Choice]]]:
    """Yield the trees that serve a plan with their candidates, both best first, reading no more than is asked for.

    Args:
        tx: where to read.
        reader: reads the trees of a plan, with places.
        ranking: what is best.
        budget: the steps that may be taken.
        wanted: how many candidates are wanted; None reads everything at once.
    """
    plan = reader.plan
    scores = TreeScores(amounts_of(plan), ranking, classes_in_families(tx, ranking))
    compact = CompactFirst(plan, budget, all_wanted=wanted is None)
    found = portions(reader, scores, wanted)
    if wanted is None:
        return all_best_first(found, compact.all_composed, scores.lost)
    return best_first(found, compact.composed, scores.lost)


def portions(reader: Reader, scores: TreeScores, wanted: int | None) -> Iterator[Portion]:
    """Yield the trees that serve a plan in portions, those first that can score highest."""
    if not scores.tell_trees_apart or not reader.is_possible or reader.only_root is not None:
        return by_root(scores, reader, wanted)
    asked = amounts_of(reader.plan)
    # Where nothing is shared, a tree that can serve has some of every class that is asked for.
    found_by = [] if asked.keys() & {*scores.classes} else sorted(asked)[:1]
    sums = reader.sums(scores.classes, found_by)
    return ByScore(scores, sums, reader, complete=not reader.shares).portions(wanted)


def classes_in_families(tx: Transaction, ranking: Ranking) -> list[str]:
    """Return all classes, where the profile names scarce ones by family; otherwise none has to be known."""
    strategy = ranking.profile.strategy
    named = [*(strategy.sra.resources if strategy.sra else ())]
    named += strategy.proportional.reserve if strategy.proportional else ()
    return [class_.name for class_ in all_classes(tx)] if any(name.endswith(WILDCARD) for name in named) else []
