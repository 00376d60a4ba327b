"""Find candidates, and explain why there are none: behind GET /allocation_candidates and /planner/v1/explain."""

import random
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.explain.explain import explain, quick_cause
from placement.candidates.explain.explanation import Condition, ConditionKind, Explanation
from placement.candidates.explain.masks import ConditionMasks
from placement.candidates.fragmentation import host_demands
from placement.candidates.ranking import Ranking, TreeScores, amounts_of, shared_by
from placement.candidates.search import Candidate, candidates_in, found_candidates
from placement.candidates.tree_order import TreeOrder, least_places
from placement.candidates.tree_reader import TreeReader
from placement.domain.search_plan import LIMITS, CandidateRequest, NamedIds, Plan, SearchLimits, plan_for
from placement.domain.tree import PlaceLock, Tree
from placement.errors import OutOfSteps
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.fragmentation import FragmentationJudge
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.search.names import Named, Summaries, TreeMember, named_providers, tree_summaries


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The operator's options for generating candidates, as in the reference.

    At most ``max_candidates`` are generated; ``breadth_first`` takes one from each tree before the second of any;
    ``shuffled`` returns a random sample. A place whose lock, one of ``locks``, is fully used serves nobody.
    """

    max_candidates: int | None = None
    breadth_first: bool = False
    shuffled: bool = False
    limits: SearchLimits = LIMITS
    locks: tuple[PlaceLock, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateQuestion:
    """A request with the operator's options, and the ranking in force with the judge of its profile, if any."""

    request: CandidateRequest
    options: SearchOptions = SearchOptions()
    ranking: Ranking | None = None
    judge: FragmentationJudge | None = None

    @property
    def limit(self) -> int | None:
        """How many candidates to look for; None for all. A random sample needs them all."""
        limits = (None if self.options.shuffled else self.request.limit, self.options.max_candidates)
        return min([limit for limit in limits if limit is not None], default=None)

    @property
    def key(self) -> tuple[object, ...]:
        """All that decides whether there are candidates, besides the cloud."""
        return self.request, self.options, self.ranking and self.ranking.profile


@dataclass(frozen=True, slots=True)
class Answer:
    """Candidates in order, with all providers of the trees they touch; ``cause`` says why there are none at all.

    ``taken_from`` are the roots of the trees that resources are taken from. ``complete`` is False if the search ran out
    of steps, or the answer grew too large. ``serving_others`` are providers that serve only candidates beyond the
    limit.
    """

    plan: Plan
    candidates: list[Candidate]
    providers: Summaries
    taken_from: frozenset[int]
    complete: bool = True
    cause: Condition | None = None
    serving_others: frozenset[int] = frozenset()


def answer_to(
    tx: Transaction, question: CandidateQuestion, *, plan: Plan | None = None, ids: NamedIds | None = None
) -> Answer:
    """Find candidates in one snapshot, best first if there is a ranking; Invalid, or OutOfSteps without a result.

    ``plan`` and ``ids`` are those of the request, if they are known already.
    """
    ranking = question.ranking
    plan = plan or plan_for(question.request)
    ids = ids or ids_in(tx, plan, ranking.levels if ranking else (), locks=question.options.locks)
    if ranking is None:
        return _searched(tx, question, plan, ids=ids)
    answer: Answer | None = cloud_in(tx).reason_for_nothing(question.key)
    if answer is None:
        answer = _searched(tx, question, plan, ids=ids)
        if answer.cause is not None:
            # A reserve is kept more easily the less is idle.
            cloud_in(tx).note_nothing(question.key, answer, lasts=not ranking.profile.filters)
    return answer


allocation_candidates = reads_anywhere(answer_to)


def _searched(tx: Transaction, question: CandidateQuestion, plan: Plan, *, ids: NamedIds) -> Answer:
    request, options, ranking, limit = question.request, question.options, question.ranking, question.limit
    cloud, limits = cloud_in(tx), options.limits
    # Places matter only to a ranking, and only if any provider anchors one.
    with_places = ranking is not None and any(ids.levels)
    reader = cloud.reader(plan, ids, with_places=with_places, adds_up=True)
    order = None
    if ranking is not None:
        scores = _scores(tx, reader, ranking=ranking, judge=question.judge)
        places_tell = with_places and ranking.profile.compactness and limit is not None and plan.counted
        least = partial(least_places, reader.serving, plan.counted, levels=ids.levels) if places_tell else None
        order = TreeOrder(reader, scores, limit=limit, kept=cloud.kept, least=least, limits=limits)
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
    unfiltered = CandidateQuestion(replace(request, limit=1), replace(options, max_candidates=None, shuffled=False))
    is_filtered = order is not None and order.scores.filters and answer_to(tx, unfiltered).candidates
    cause = Condition(ConditionKind.PROPORTION) if is_filtered else quick_cause(plan, ConditionMasks(reader.serving))
    return Answer(plan, [], Summaries(), frozenset(), cause=cause)


def _scores(tx: Transaction, reader: TreeReader, *, ranking: Ranking, judge: FragmentationJudge | None) -> TreeScores:
    cloud, fragmentation = cloud_in(tx), None
    if judge is not None:
        fragmentation = judge.in_snapshot(tx).fragmentation(reader, host_demands(reader.plan), cloud.kept)
    scored_by = amounts_of(reader.plan), ranking, cloud.node_classes(ranking.profile), fragmentation
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
    reader: TreeReader, shown: Iterable[Candidate], members: Iterable[TreeMember], *, budget: RequestBudget
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


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation, with the names of the providers it mentions, by id."""

    explanation: Explanation
    providers: Mapping[int, Named]


def explained(
    tx: Transaction,
    request: CandidateRequest,
    *,
    locks: Sequence[PlaceLock] = (),
    profile: RankingProfile | None = None,
    only_root: int | None = None,
) -> Explained:
    """Explain a request, for one tree or all; a profile may leave candidates out. Invalid for unknown names."""
    plan = plan_for(request)
    explanation = explain(plan, condition_masks(tx, plan, locks=locks, only_root=only_root))
    if explanation.trees_with_candidates and profile is not None and profile.filters:
        first = CandidateQuestion(replace(request, limit=1), SearchOptions(locks=tuple(locks)), Ranking(profile))
        if not answer_to(tx, first).candidates:
            explanation = explanation.left_out_by_profile()
    return Explained(explanation, named_providers(tx, explanation.providers()))


explanation_of = reads_anywhere(explained)


def condition_masks(
    tx: Transaction,
    plan: Plan,
    *,
    locks: Sequence[PlaceLock] = (),
    only_root: int | None = None,
    avoided: frozenset[int] = frozenset(),
) -> ConditionMasks:
    """Return the conditions of a plan, in one tree or all but some; Invalid for unknown names.

    Held places serve nobody.
    """
    serving = cloud_in(tx).serving(plan, ids_in(tx, plan, locks=locks))
    return ConditionMasks(serving, only_root=only_root, avoided=avoided)
