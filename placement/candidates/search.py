"""The search for candidates: a pipeline of lazy phases, each pulling from the one before only what it needs.

* Narrow: the reader does it while reading. It is the cheapest phase and prunes most, so it comes first.
* Read: in portions, for callers that want ten candidates; most promising first, where sums tell.
* Compose: tree by tree, because trees are independent, except that equivalent ones are composed once.
* Rank: after composing, because the compactness of a tree's best candidate is not known before. A tree comes out as
  soon as no unread or uncomposed tree can beat it.
* Limit: last, so that it cuts off the worst candidates; the others are lazy, so it cuts off their work, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, islice, repeat
from operator import itemgetter

from placement.candidates.compose.compact import CompactFirst
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.candidates.frontier import ALL_AT_ONCE, ONE_BY_ONE, Batches, Key, Keyed, best_first
from placement.candidates.pooled import PooledRanking
from placement.candidates.tree_order import SumsAsRead, TreeOrder, by_id
from placement.candidates.tree_reader import TreeReader
from placement.domain.search_plan import LIMITS, Choice, Plan, SearchLimits
from placement.domain.tree import Tree

Candidate = tuple[int, Choice]
"""A way to serve a request: the root of the tree it was found in, and the provider of each slot of the plan.

A plain tuple, because there may be tens of thousands of them.
"""


def candidates_in(
    plan: Plan, trees: Iterable[Tree], budget: RequestBudget, *, breadth_first: bool = False
) -> Iterator[Candidate]:
    """Yield the candidates of all trees.

    Depth first exhausts a tree before going on to the next; breadth first takes each tree's first candidate before any
    tree's second. Trees are pulled only as candidates are.
    """
    composer = SlotComposer(plan, budget)
    return walked(((tree, composer.choices(tree)) for tree in trees), breadth_first=breadth_first)


def walked(compositions: Iterable[tuple[Tree, Iterator[Choice]]], *, breadth_first: bool) -> Iterator[Candidate]:
    """Yield the candidates of trees composed lazily, depth or breadth first, without duplicates."""
    distinct = _DistinctChoices()
    candidates = (zip(repeat(tree.root), distinct.new_in(tree, choices)) for tree, choices in compositions)
    return _round_robin(candidates) if breadth_first else chain.from_iterable(candidates)


class _DistinctChoices:
    """Drops choices that another tree has given: those of sharing providers alone can be found in several trees."""

    def __init__(self) -> None:
        self._listed: set[Choice] = set()
        self._of_pools: dict[tuple[tuple[int, ...], ...], Iterator[Choice]] = {}

    def new_in(self, tree: Tree, choices: Iterator[Choice]) -> Iterator[Choice]:
        """Return those of a tree's choices that are new when they are pulled."""
        if not tree.sharing:
            return choices
        new = _not_seen(choices, tree.sharing, self._listed)
        if tree.gives_of_its_own:
            return new
        # Thousands of hosts may have the same pools and nothing of their own. They share one iterator: each resumes
        # where the last one stopped, rather than composing again what the others have given.
        return self._of_pools.setdefault(tuple(map(tuple, tree.options)), new)


def _not_seen(choices: Iterator[Choice], sharing: AbstractSet[int], listed: set[Choice]) -> Iterator[Choice]:
    for choice in choices:
        if all([provider in sharing for provider in choice]):
            if choice in listed:
                continue
            listed.add(choice)
        yield choice


def _round_robin(compositions: Iterable[Iterator[Candidate]]) -> Iterator[Candidate]:
    waiting: list[Iterator[Candidate]] = []
    for composition in compositions:
        first = next(composition, None)
        if first is not None:
            yield first
            waiting.append(composition)
    while waiting:
        still: list[Iterator[Candidate]] = []
        for composition in waiting:
            following = next(composition, None)
            if following is not None:
                yield following
                still.append(composition)
        waiting = still


MANY = 128
"""Once this many candidates are wanted, composing a few trees too many does not matter."""

A_FEW_AT_ONCE = Batches(32, 32)

TreeWithChoices = tuple[Tree, Iterator[Choice]]


def found_candidates(
    reader: TreeReader,
    order: TreeOrder | None,
    *,
    budget: RequestBudget,
    limit: int | None,
    breadth_first: bool,
    limits: SearchLimits = LIMITS,
) -> list[Candidate]:
    """Return as many candidates of a plan as are wanted, but no more than one answer may hold.

    Mark the budget as hit if that cap cuts off any.

    Args:
        reader: narrows the trees to those in which every demand of the plan has a provider, and reads them.
        order: the order in which it does; None for candidates in id order.
        budget: limits the steps of the search.
        limit: how many candidates to return; None for all of them.
        breadth_first: whether each tree's first candidate comes before any tree's second.
        limits: how large an answer may be.
    """
    trees = _by_id(reader, budget, limit) if order is None else _best_first(order, budget)
    candidates = walked(trees, breadth_first=breadth_first)
    room = max(1, limits.placements // max(1, len(reader.plan.slots)))
    shown = list(islice(candidates, room if limit is None else min(limit, room)))
    if len(shown) == room and limit != room and next(candidates, None) is not None:
        budget.was_hit = True
    return shown


def _by_id(reader: TreeReader, budget: RequestBudget, limit: int | None) -> Iterator[TreeWithChoices]:
    composer = SlotComposer(reader.plan, budget)
    return ((tree, composer.choices(tree)) for tree in by_id(reader, limit))


def _best_first(order: TreeOrder, budget: RequestBudget) -> Iterator[TreeWithChoices]:
    """Compose and rank trees."""
    reader, scores, limit = order.reader, order.scores, order.limit
    batches = ALL_AT_ONCE if limit is None else ONE_BY_ONE if limit < MANY else A_FEW_AT_ONCE
    if reader.shares:
        sums = SumsAsRead(reader, scores.classes)
        pooled = PooledRanking(reader.plan, scores, sums, budget, all_wanted=limit is None)
        return map(itemgetter(2, 3), best_first(sums.read(order.portions()), pooled.ranked, batches))
    compose = partial(ranked, composer=CompactFirst(reader.plan, budget, all_wanted=limit is None), order=order)
    return map(itemgetter(1, 2), best_first(order.portions(), compose, batches))


RankedTree = tuple[Key, Tree, Iterator[Choice]]
"""A tree with its final key, and its candidates."""


def ranked(batch: Sequence[Keyed], composer: CompactFirst, order: TreeOrder) -> Iterator[RankedTree]:
    """Compose some trees, and deduct from their scores what their best candidates lack in compactness."""
    order.scores.prefer_devices([tree for _key, tree in batch])
    for key, tree in batch:
        if composed := composer.composed_in(tree):
            yield order.final(key, composed.counts), tree, composed.choices
