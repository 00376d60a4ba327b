"""Where can this request go? The use case behind GET /allocation_candidates."""

import random
from dataclasses import dataclass, replace
from functools import partial

from placement.candidates.budget import RequestBudget
from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.quick import quick_cause
from placement.candidates.packing import wanted_by
from placement.candidates.ranking import Ranking, TreeScores, amounts_of
from placement.candidates.search import CandidateSearch
from placement.candidates.walk import Candidate
from placement.candidates.withheld import WithheldReader
from placement.domain.candidate_request import CandidateRequest
from placement.domain.place_lock import PlaceLock
from placement.domain.search_limits import LIMITS, SearchLimits
from placement.domain.search_plan import Plan, plan_for
from placement.errors import OutOfSteps
from placement.services.families import classes_in_families
from placement.services.left_out import serving_others
from placement.services.packing import Packer
from placement.services.tree_orders import TreeOrders
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.locks import withheld_providers
from placement.store.search.empty import conditions_that_left_nobody
from placement.store.search.names import ids_for
from placement.store.search.narrowing import Narrowing
from placement.store.search.summaries import StockRow, Summaries, tree_summaries
from placement.store.search.trees import TreeReader

__all__ = [
    "Answer",
    "Candidate",
    "Plan",
    "Ranking",
    "SearchOptions",
    "StockRow",
    "Summaries",
    "allocation_candidates",
    "answer_to",
]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How the operator wants candidates generated, as the reference's options say.

    ``most`` bounds how many are generated at all (None: no bound), ``breadth_first`` takes one from each tree before
    the second of any, ``shuffled`` gives a random sample instead of the first ones. ``limits`` bound each search.
    ``locks`` are what places have as locks: where all of one is taken, nobody serves.
    """

    most: int | None = None
    breadth_first: bool = False
    shuffled: bool = False
    limits: SearchLimits = LIMITS
    locks: tuple[PlaceLock, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Candidates, in order, with the providers of all trees they touch.

    ``taken_from`` are the roots of the trees that resources are taken from: a granular group without resources may
    be served by yet another one. ``complete`` is False when the search ran out of steps, or the answer grew too large,
    before it had seen everything it was asked for. ``cause`` tells why there is no candidate at all. ``serving_others``
    are providers of these trees that serve only candidates beyond the limit, for microversions that list them (< 1.29).
    """

    plan: Plan
    candidates: list[Candidate]
    providers: Summaries
    taken_from: frozenset[int]
    complete: bool = True
    cause: Condition | None = None
    serving_others: frozenset[int] = frozenset()


@reads_anywhere
def allocation_candidates(
    tx: Transaction,
    request: CandidateRequest,
    options: SearchOptions,
    ranking: Ranking | None = None,
    *,
    packer: Packer | None = None,
    orders: TreeOrders | None = None,
) -> Answer:
    """Find the candidates of a request, in one snapshot; the best first where a ranking says what is best.

    ``packer`` is that of the ranking's profile, if it has one, and ``orders`` are kept from request to request.

    Raises:
        Invalid: a resource class or trait does not exist.
        OutOfSteps: the search ran out of steps before it found anything.
    """
    return answer_to(tx, request, options, ranking, packer=packer, orders=orders)


def answer_to(
    tx: Transaction,
    request: CandidateRequest,
    options: SearchOptions,
    ranking: Ranking | None = None,
    *,
    packer: Packer | None = None,
    orders: TreeOrders | None = None,
) -> Answer:
    """Find the candidates inside a transaction, for use cases that have one; as ``allocation_candidates``."""
    plan, limits = plan_for(request), options.limits
    budget = RequestBudget(per_tree=limits.steps_per_tree, per_request=limits.steps_per_request)
    wanted = _wanted(request.limit, options)
    ids = ids_for(tx, plan, ranking.levels if ranking else (), locks=options.locks)
    # Places matter only to a ranking, and only where some provider stands for one.
    narrowing = Narrowing(tx, plan, ids, with_fit_counts=ranking is not None and any(ids.levels))
    reader = TreeReader(tx, narrowing, all_wanted=wanted is None, limits=limits)
    scores = None if ranking is None else _scores(tx, plan, ranking, packer)
    unheld = WithheldReader(reader, partial(withheld_providers, tx, ids.locks)) if ids.locks else None
    search = CandidateSearch(
        unheld or reader,
        scores,
        budget=budget,
        wanted=wanted,
        breadth_first=options.breadth_first,
        kept_order=None if orders is None else partial(orders.in_snapshot, tx),
        limits=limits,
    )
    candidates = _chosen(search.candidates(), request.limit, shuffled=options.shuffled)
    if budget.was_hit and not candidates:
        raise OutOfSteps
    if not candidates and wanted != 0:
        # Where there was a tree at all, every demand has somebody.
        nobody = {} if reader.found_any else conditions_that_left_nobody(tx, plan, ids)
        if scores is not None and scores.filters and _serves_unranked(tx, request, options):
            cause = Condition(ConditionKind.PROPORTION)
            return Answer(plan, [], Summaries(), frozenset(), cause=cause)
        held = unheld is not None and unheld.left_out
        cause = quick_cause(plan, nobody, some_tree=reader.found_any, some_held=held)
        return Answer(plan, [], Summaries(), frozenset(), cause=cause)
    answer = _answer(tx, plan, candidates, reader)
    if not request.combines_nested and len(candidates) == request.limit:
        members = answer.providers.members.values()
        others = serving_others(unheld or reader, candidates, members, budget, home=reader.home)
        answer = replace(answer, serving_others=others)
    return replace(answer, complete=not budget.was_hit)


def _serves_unranked(tx: Transaction, request: CandidateRequest, options: SearchOptions) -> bool:
    """Tell whether there is a candidate if the profile does not leave it out."""
    return bool(answer_to(tx, replace(request, limit=1), replace(options, most=None, shuffled=False)).candidates)


def _scores(tx: Transaction, plan: Plan, ranking: Ranking, packer: Packer | None) -> TreeScores:
    packing = packer.judged(tx, plan, wanted_by(plan)) if packer else None
    return TreeScores(amounts_of(plan), ranking, classes_in_families(tx, ranking), packing)


def _wanted(limit: int | None, options: SearchOptions) -> int | None:
    """Return how many candidates have to be generated: a random sample is one of all."""
    bounds = [bound for bound in (None if options.shuffled else limit, options.most) if bound is not None]
    return min(bounds, default=None)


def _chosen(candidates: list[Candidate], limit: int | None, *, shuffled: bool) -> list[Candidate]:
    if shuffled:
        random.shuffle(candidates)
        return candidates[:limit]
    return candidates


def _answer(tx: Transaction, plan: Plan, candidates: list[Candidate], reader: TreeReader) -> Answer:
    """Read the trees that the candidates take from; what shares with a tree comes from a tree of its own."""
    roots = {provider: root for root, choice in candidates for provider in choice}
    roots |= {provider: root for provider, root in reader.home.items() if provider in roots}
    consuming = [index for index, slot in enumerate(plan.slots) if slot.resources]
    if len(consuming) < len(plan.slots):
        taken_from = {roots[choice[index]] for _root, choice in candidates for index in consuming}
    else:
        taken_from = set(roots.values())
    return Answer(plan, candidates, tree_summaries(tx, set(roots.values()), reader.inhabitants), frozenset(taken_from))
