"""The candidates for a request, best first, and why there are none: the use case behind POST /planner/v1/candidates."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, repeat
from operator import attrgetter

from placement.allocators import Budget
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.paths import PathComposer
from placement.candidates.compose.proposals import Proposal, ProposalComposer
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explain_rules import RuleSearches, distinguishing_columns, explain_request, rules_of
from placement.candidates.explain.explanation import cause_in_words
from placement.candidates.explain.masks import ConditionMasks
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.scores import Score
from placement.domain.overlay import AS_IT_IS, MoreTrees, Overlay
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan, plan_for
from placement.domain.tree import NamedMember
from placement.errors import OutOfSteps
from placement.services.cloud_cache import cloud_in
from placement.services.explain import Explained, condition_masks
from placement.services.planner.changes import AS_THEY_ARE, Changes, emptied, overlay_of
from placement.services.planner.questions import STEPS_PER_REQUEST, PlannerOptions, question_for
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.search.names import named_providers
from placement.store.search.summaries import Summaries, TreeMember, tree_summaries


@dataclass(frozen=True, slots=True)
class PlannedCandidate:
    """A proposal and its score.

    Args:
        like: for a hypothetical tree, the root of the tree it is modelled on, whose providers the proposal names.
    """

    proposal: Proposal
    score: Score
    like: int | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """The sort key: candidates that break the reserve of scarce resources last, otherwise the best score first."""
        return self.score.keeps_proportion is False, -self.score.total


@dataclass(frozen=True, slots=True)
class PlannerAnswer:
    """Candidates, best first, with the trees they take from.

    Args:
        members: the providers named in them, and others.
        providers: all providers of the trees that they take from.
        levels: the names of the levels that scores count, outermost first.
        searched: how many trees were searched, because they might have contained one of the best.
        complete: whether the search for the best hit no budget anywhere.
        explained: what was left after each condition, if requested.
    """

    candidates: list[PlannedCandidate]
    members: Mapping[int, NamedMember]
    providers: Summaries
    levels: tuple[str, ...]
    searched: int
    complete: bool
    explained: Explained | None = None


@reads_anywhere
def planned_candidates(
    tx: Transaction,
    request: PlannerRequest,
    options: PlannerOptions,
    *,
    overlay: Overlay = AS_IT_IS,
    changes: Changes = AS_THEY_ARE,
) -> PlannerAnswer:
    """Find the best candidates for a planner request, in one snapshot.

    Raises:
        InvalidAt: the request, or a change, names something that does not exist.
        OutOfSteps: the search was cut off before it found anything.
    """
    overlay = overlay_of(tx, changes, overlay)
    question = question_for(tx, request, options)
    if not overlay.is_empty:
        answer = _searched(tx, question, overlay)
        return replace(answer, explained=_why(tx, question, options, answer)) if request.explain else answer
    cloud, answer = cloud_in(tx), _found_or_known(tx, question, options)
    if not request.explain:
        return answer
    question_key = "why not", *options.asked_for(request)
    explained: Explained | None = cloud.reason_for_nothing(question_key)
    if explained is None:
        explained = _why(tx, question, options, answer)
        if not answer.candidates and answer.complete:
            cloud.note_nothing(question_key, explained)
    return replace(answer, explained=explained)


def _found_or_known(tx: Transaction, question: PlannerQuestion, options: PlannerOptions) -> PlannerAnswer:
    """Return what the search finds, without searching where it is known to find nothing."""
    question_key = "candidates", *options.asked_for(replace(question.request, explain=False))
    cloud = cloud_in(tx)
    answer: PlannerAnswer | None = cloud.reason_for_nothing(question_key)
    if answer is None:
        answer = _searched(tx, question, AS_IT_IS)
        if not answer.candidates and answer.complete:
            cloud.note_nothing(question_key, replace(answer, members={}), lasts=not options.profile.filters)
    return answer


def _searched(tx: Transaction, question: PlannerQuestion, overlay: Overlay) -> PlannerAnswer:
    request, search = question.request, PlannerSearch(question, overlay)
    existing = [_scored(search, proposal) for proposal in islice(search.distinct(), request.limit)]
    searches = [search, *[PlannerSearch(question, emptied(tx, [more.like], overlay)) for more in overlay.more]]
    added = [
        candidate
        for more, search_in_it in zip(overlay.more, searches[1:], strict=True)
        for candidate in _in_trees_like(more, search_in_it, limit=request.limit)
    ]
    by_rank = attrgetter("rank")
    candidates = [*islice(merge(existing, sorted(added, key=by_rank), key=by_rank), request.limit)]
    complete = all(searched.complete for searched in searches)
    if not candidates and not complete:
        raise OutOfSteps
    return PlannerAnswer(
        candidates=candidates,
        members=search.members,
        providers=_summaries(tx, search.members, candidates),
        levels=question.prepared.levels.names,
        searched=search.searched + sum([more.count for more in overlay.more]),
        complete=complete,
    )


def _why(tx: Transaction, question: PlannerQuestion, options: PlannerOptions, answer: PlannerAnswer) -> Explained:
    is_found = any(candidate.like is None for candidate in answer.candidates)
    return explained_plan(tx, question, options, nothing_found=not is_found)


def _scored(search: PlannerSearch, proposal: Proposal, *, like: int | None = None) -> PlannedCandidate:
    return PlannedCandidate(proposal, search.score(proposal), like)


def _in_trees_like(more: MoreTrees, search: PlannerSearch, *, limit: int) -> Iterator[PlannedCandidate]:
    """Yield the candidates in empty trees like one that is empty in a search, each of which names its providers."""
    for proposal in [*search.proposals(only=more.like)]:
        yield from repeat(_scored(search, proposal, like=more.like), min(more.count, limit))


def _summaries(
    tx: Transaction, members: Mapping[int, NamedMember], candidates: Iterable[PlannedCandidate]
) -> Summaries:
    """Return the summaries of the trees that candidates take from, all of whose providers are among those read."""
    roots = {members[provider].root_id for candidate in candidates for provider in candidate.proposal.amounts}
    named = {id_: TreeMember(*member[:4]) for id_, member in members.items() if member.root_id in roots}
    return tree_summaries(tx, roots, named)


def why_not(explained: Explained) -> str:
    """Say in one sentence why a request has no candidate."""
    cause = explained.explanation.cause
    if cause is not None:
        return cause_in_words(cause, explained.explanation.shortfall)
    trees = explained.explanation.trees_with_candidates
    return (
        f"{trees} provider trees have something for every group, but none of them has enough for the counts, in places "
        "as affinity, within and exclusive demand."
    )


def explained_plan(
    tx: Transaction, question: PlannerQuestion, options: PlannerOptions, *, nothing_found: bool = True
) -> Explained:
    """Explain the request of a question on the cloud as it is."""
    request, plan = question.request, question.prepared.plan
    masks = condition_masks(tx, plan)
    locks = _locks(tx, options)
    if rules_of(request) or request.paths or locks:
        explanation = explain_request(request, plan, masks, _searches(question, masks, locks))
    else:
        explanation = explain(plan, masks)
    if explanation.cause is None and explanation.complete and nothing_found and options.profile.filters:
        explanation = explanation.left_out_by_profile()
    return Explained(explanation, named_providers(tx, explanation.providers()))


def _locks(tx: Transaction, options: PlannerOptions) -> Mapping[str, str]:
    """Return the locks by level; nobody can hold a place by a class that does not exist."""
    existing = tx.names.classes.ids(tx.connection, {*options.locks.values()})
    return {level: name for level, name in options.locks.items() if name in existing}


def _searches(question: PlannerQuestion, masks: ConditionMasks, locks: Mapping[str, str]) -> RuleSearches:
    request, levels, serving = question.request, question.prepared.levels, masks.serving

    def composer_for(variant: PlannerRequest, plan: Plan) -> ProposalComposer:
        # Levels apply whichever rules are left out.
        if variant.paths:
            return PathComposer(variant, levels, locks=locks)
        return DeviceComposer(variant, plan, levels, locks=locks)

    def plan_of_paths(variant: PlannerRequest) -> Plan:
        return plan_for(PathComposer(variant, levels, locks=locks).plain())

    # All stocks matter to nested parts, and what is in use to groups that want a place to themselves.
    deciding = question.cloud.deciding(None if request.paths else {*locks.values()})
    columns = distinguishing_columns(serving, deciding, in_use=question.use.is_in_use if request.exclusive else None)
    return RuleSearches(composer_for, plan_of_paths, question.details.built, columns, Budget(STEPS_PER_REQUEST))
