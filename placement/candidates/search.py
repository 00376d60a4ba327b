"""The search for candidates: a pipeline of lazy phases, each pulling from the one before only what it needs.

* Narrow: the reader does it while reading. It is the cheapest phase and prunes most, so it comes first.
* Read: in portions, for callers that want ten candidates; most promising first, where sums tell.
* Compose: tree by tree, because trees are independent, except that equivalent ones are composed once.
* Rank: after composing, because the compactness of a tree's best candidate is not known before. A tree comes out as
  soon as no unread or uncomposed tree can beat it.
* Limit: last, so that it cuts off the worst candidates; the others are lazy, so it cuts off their work, too.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from operator import itemgetter

from placement.candidates.bounds import BoundedScores
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.frontier import (
    ALL_AT_ONCE,
    ONE_BY_ONE,
    Batches,
    Portion,
    best_first,
)
from placement.candidates.pooled import PooledRanking
from placement.candidates.ranking import TreeScores, ranked
from placement.candidates.reading import (
    CachedOrder,
    LeastPlaces,
    SumsAsRead,
    bounded_as_needed,
    by_id,
    promising_first,
)
from placement.candidates.tree_reader import TreeReader
from placement.candidates.walk import Candidate, walked
from placement.domain.search_limits import LIMITS, SearchLimits
from placement.domain.search_plan import Choice
from placement.domain.tree import Tree

MANY = 128
"""Once this many candidates are wanted, composing a few trees too many does not matter."""

A_FEW_AT_ONCE = Batches(32, 32)

TreeWithChoices = tuple[Tree, Iterator[Choice]]


def found_candidates(
    reader: TreeReader,
    scores: TreeScores | None,
    *,
    budget: RequestBudget,
    wanted: int | None,
    breadth_first: bool,
    cached_order: CachedOrder | None = None,
    least_places: LeastPlaces | None = None,
    limits: SearchLimits = LIMITS,
) -> list[Candidate]:
    """Return as many candidates of a plan as are wanted, but no more than one answer may hold.

    Mark the budget as hit if that cap cuts off any.

    Args:
        reader: narrows the trees to those in which every demand of the plan has a provider, and reads them.
        scores: ranks the trees; None for candidates in id order.
        budget: limits the steps of the search.
        wanted: how many candidates to return; None for all of them.
        breadth_first: whether each tree's first candidate comes before any tree's second.
        cached_order: looks up the keys of all trees for scores that were asked for before.
        least_places: returns how few places each tree can touch, for scores that take such bounds.
        limits: how large an answer may be, and how large the portions in which trees are read.
    """
    if scores is None:
        trees = _by_id(reader, budget, wanted)
    else:
        read = promising_first
        if least_places is not None and isinstance(scores, BoundedScores):
            read = partial(bounded_as_needed, least=least_places)
        portions = read(reader, scores, wanted, cached_order=cached_order, limits=limits)
        trees = _best_first(reader, scores, portions, wanted=wanted, budget=budget)
    candidates = walked(trees, breadth_first=breadth_first)
    most = max(1, limits.placements // max(1, len(reader.plan.slots)))
    found = list(islice(candidates, most if wanted is None else min(wanted, most)))
    if len(found) == most and wanted != most and next(candidates, None) is not None:
        budget.was_hit = True
    return found


def _by_id(reader: TreeReader, budget: RequestBudget, wanted: int | None) -> Iterator[TreeWithChoices]:
    composer = SlotComposer(reader.plan, budget)
    return ((tree, composer.choices(tree)) for tree in by_id(reader, wanted))


def _best_first(
    reader: TreeReader, scores: TreeScores, portions: Iterator[Portion], *, wanted: int | None, budget: RequestBudget
) -> Iterator[TreeWithChoices]:
    """Compose and rank the trees of some portions."""
    plan = reader.plan
    batches = ALL_AT_ONCE if wanted is None else ONE_BY_ONE if wanted < MANY else A_FEW_AT_ONCE
    if reader.shares:
        sums = SumsAsRead(reader, scores.classes)
        pooled = PooledRanking(plan, scores, sums, budget, all_wanted=wanted is None)
        return map(itemgetter(2, 3), best_first(sums.read(portions), pooled.ranked, batches))
    compact = CompactFirst(plan, budget, all_wanted=wanted is None)
    compose = partial(ranked, composer=compact, scores=scores)
    return map(itemgetter(1, 2), best_first(portions, compose, batches))
