"""Find candidates: the use case behind GET /allocation_candidates."""

import random
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from placement.candidates.compose.slots import RequestBudget
from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.explain import quick_cause
from placement.candidates.explain.masks import ConditionMasks
from placement.candidates.fragmentation import host_demands
from placement.candidates.ranking import Ranking, TreeScores, amounts_of, shared_by
from placement.candidates.search import Candidate, candidates_in, found_candidates
from placement.candidates.tree_order import TreeOrder, least_places
from placement.candidates.tree_reader import TreeReader
from placement.domain.places import PlaceLock
from placement.domain.search_plan import LIMITS, CandidateRequest, NamedIds, Plan, SearchLimits, plan_for
from placement.domain.tree import Tree
from placement.errors import OutOfSteps
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.fragmentation import FragmentationJudge
from placement.services.resource_classes import classes_in_families
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.search.summaries import Summaries, TreeMember, tree_summaries


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The operator's options for generating candidates, as in the reference.

    ``max_candidates`` limits how many are generated (None: no limit), ``breadth_first`` takes one from each tree before
    the second of any, ``shuffled`` returns a random sample instead of the first ones. ``limits`` bound each search.
    ``locks`` are the locks of places: a place whose lock is fully used serves nobody.
    """

    max_candidates: int | None = None
    breadth_first: bool = False
    shuffled: bool = False
    limits: SearchLimits = LIMITS
    locks: tuple[PlaceLock, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Candidates in order, with all providers of the trees they touch.

    ``taken_from`` are the roots of the trees that resources are taken from: a granular group without resources may be
    served by yet another one. ``complete`` is False if the search ran out of steps, or the answer grew too large,
    before everything requested was seen. ``cause`` says why there are no candidates at all. ``serving_others`` are
    providers of these trees that serve only candidates beyond the limit, for microversions that list them (< 1.29).
    """

    plan: Plan
    candidates: list[Candidate]
    providers: Summaries
    taken_from: frozenset[int]
    complete: bool = True
    cause: Condition | None = None
    serving_others: frozenset[int] = frozenset()


def answer_to(
    tx: Transaction,
    request: CandidateRequest,
    options: SearchOptions,
    ranking: Ranking | None = None,
    *,
    judge: FragmentationJudge | None = None,
) -> Answer:
    """Find the candidates for a request, in one snapshot; best first if there is a ranking.

    ``judge`` belongs to the ranking's profile, if that has one.

    Raises:
        Invalid: a resource class or trait does not exist.
        OutOfSteps: the search ran out of steps before it found anything.
    """
    plan = plan_for(request)
    ids = ids_in(tx, plan, ranking.levels if ranking else (), locks=options.locks)
    return answer_for(tx, request, options, ranking, plan=plan, ids=ids, judge=judge)


allocation_candidates = reads_anywhere(answer_to)


def answer_for(
    tx: Transaction,
    request: CandidateRequest,
    options: SearchOptions,
    ranking: Ranking | None,
    *,
    plan: Plan,
    ids: NamedIds,
    judge: FragmentationJudge | None,
) -> Answer:
    """Find the same, given the plan of the request and the ids of the names in it."""
    if ranking is None:
        return _searched(tx, request, options, plan=plan, ids=ids, ranking=ranking, judge=judge)
    cloud, question = cloud_in(tx), asked_for(request, options, ranking)
    answer: Answer | None = cloud.reason_for_nothing(question)
    if answer is None:
        answer = _searched(tx, request, options, plan=plan, ids=ids, ranking=ranking, judge=judge)
        if answer.cause is not None:
            # A reserve is kept more easily the less is idle.
            cloud.note_nothing(question, answer, lasts=not ranking.profile.filters)
    return answer


def asked_for(request: CandidateRequest, options: SearchOptions, ranking: Ranking) -> tuple[object, ...]:
    """Return all that decides whether a request has candidates, besides the cloud."""
    return request, options, ranking.profile


def _searched(
    tx: Transaction,
    request: CandidateRequest,
    options: SearchOptions,
    *,
    plan: Plan,
    ids: NamedIds,
    ranking: Ranking | None,
    judge: FragmentationJudge | None,
) -> Answer:
    """Search for candidates."""
    # A random sample needs them all.
    bounds = (None if options.shuffled else request.limit, options.max_candidates)
    limit, limits = min([bound for bound in bounds if bound is not None], default=None), options.limits
    # Places matter only to a ranking, and only if any provider anchors one.
    with_places = ranking is not None and any(ids.levels)
    reader = cloud_in(tx).reader(plan, ids, with_places=with_places, adds_up=True)
    order = None
    if ranking is not None:
        scores = _scores(tx, reader, ranking=ranking, judge=judge)
        places_tell = with_places and ranking.profile.compactness and limit is not None and plan.counted
        least = partial(least_places, reader.serving, plan.counted, levels=ids.levels) if places_tell else None
        order = TreeOrder(reader, scores, limit=limit, kept=cloud_in(tx).kept, least=least, limits=limits)
    budget = RequestBudget(per_tree=limits.steps_per_tree, per_request=limits.steps_per_request)
    candidates = found_candidates(
        reader, order, budget=budget, limit=limit, breadth_first=options.breadth_first, limits=limits
    )
    if options.shuffled:
        random.shuffle(candidates)
        candidates = candidates[: request.limit]
    if candidates or limit == 0:
        return _with_providers(tx, request, reader, candidates=candidates, budget=budget)
    if budget.was_hit:
        raise OutOfSteps
    is_filtered = order is not None and order.scores.filters and _has_any(tx, request, options)
    cause = Condition(ConditionKind.PROPORTION) if is_filtered else quick_cause(plan, ConditionMasks(reader.serving))
    return Answer(plan, [], Summaries(), frozenset(), cause=cause)


def _has_any(tx: Transaction, request: CandidateRequest, options: SearchOptions) -> bool:
    """Tell whether a request has candidates if no profile leaves any out."""
    return bool(
        answer_to(tx, replace(request, limit=1), replace(options, max_candidates=None, shuffled=False)).candidates
    )


def _scores(tx: Transaction, reader: TreeReader, *, ranking: Ranking, judge: FragmentationJudge | None) -> TreeScores:
    """Return what scores the trees."""
    demands, kept = host_demands(reader.plan), cloud_in(tx).kept
    fragmentation = judge.in_snapshot(tx).fragmentation(reader, demands, kept) if judge else None
    scored_by = amounts_of(reader.plan), ranking, classes_in_families(tx, ranking), fragmentation
    return TreeScores(*scored_by, shared=shared_by(reader))


def _with_providers(
    tx: Transaction,
    request: CandidateRequest,
    reader: TreeReader,
    *,
    candidates: list[Candidate],
    budget: RequestBudget,
) -> Answer:
    """Read the trees that candidates take from, including those of sharing providers."""
    plan = reader.plan
    roots = {provider: root for root, choice in candidates for provider in choice}
    roots |= {provider: root for provider, root in reader.root_of.items() if provider in roots}
    providers = tree_summaries(tx, set(roots.values()))
    taken_from = frozenset(roots.values())
    consuming = [index for index, slot in enumerate(plan.slots) if slot.resources]
    if len(consuming) < len(plan.slots):
        taken_from = frozenset([roots[choice[index]] for _root, choice in candidates for index in consuming])
    complete, idle_servers = not budget.was_hit, frozenset[int]()
    if not request.combines_nested and len(candidates) == request.limit:
        idle_servers = _serving_others(reader, candidates, providers.members.values(), budget=budget)
    return Answer(plan, candidates, providers, taken_from, complete=complete, serving_others=idle_servers)


def _serving_others(
    reader: TreeReader,
    shown: Iterable[Candidate],
    members: Iterable[TreeMember],
    *,
    budget: RequestBudget,
) -> frozenset[int]:
    """Return those members of the shown candidates' trees that serve only candidates that are not shown.

    The reference finds all candidates before it applies the limit, and its summaries keep the providers of all of them,
    as far as they are in these trees. Nothing is read if the trees have no further providers.
    """
    used = {provider for _root, choice in shown for provider in choice}
    idle = {member.id: member.root_id for member in members if member.id not in used}
    if not idle:
        return frozenset()
    serving = _serving(idle.keys(), reader.plan, reader.trees_of([*{*idle.values()}]), budget)
    # Sharing providers may also serve trees of which no candidate is shown.
    if sharing := idle.keys() & reader.root_of.keys() - serving:
        serving |= _serving(sharing, reader.plan, reader.all_trees(), budget)
    return frozenset(serving)


def _serving(providers: AbstractSet[int], plan: Plan, trees: Iterable[Tree], budget: RequestBudget) -> set[int]:
    """Return those of the providers that serve a candidate in these trees, composing no more than necessary."""
    serving: set[int] = set()
    for tree in trees:
        waiting = {*chain.from_iterable(tree.options)} & providers - serving
        candidates = candidates_in(plan, [tree], budget)
        while waiting and (candidate := next(candidates, None)):
            _root, choice = candidate
            waiting.difference_update(choice)
            serving |= providers & {*choice}
    return serving
