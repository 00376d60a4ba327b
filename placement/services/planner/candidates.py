"""The candidates for a request, best first: the use case behind POST /planner/v1/candidates."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from operator import attrgetter

from placement.candidates.compose.proposals import Lock, Proposal
from placement.candidates.explain.explanation import cause_in_words
from placement.candidates.planner.planner_search import PlannedCandidate, PlannerSearch, search_for
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.scores import Score
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import NamedMember
from placement.errors import OutOfSteps
from placement.services.cloud_cache import CloudCache
from placement.services.explain import Explained
from placement.services.planner.changes import AS_THEY_ARE, Changes, overlay_of
from placement.services.planner.composers import PlannerOptions
from placement.services.planner.explaining import explained_plan
from placement.services.planner.hypothetical_trees import HypotheticalTrees
from placement.services.planner.questions import question_for
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.search.summaries import Summaries, TreeMember, providers_of_trees, tree_summaries

__all__ = [
    "Lock",
    "PlannedCandidate",
    "PlannerAnswer",
    "PlannerOptions",
    "Proposal",
    "Score",
    "planned_candidates",
    "why_not",
]


@dataclass(frozen=True, slots=True)
class PlannerAnswer:
    """Candidates, best first, with the trees they take from.

    Args:
        candidates: the candidates.
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

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's options.
        overlay: assumed changes to the cloud.
        changes: further assumed changes, by uuid.

    Raises:
        InvalidAt: the request, or a change, names something that does not exist.
        OutOfSteps: the search was cut off before it found anything.
    """
    overlay = overlay_of(tx, changes, overlay)
    question = question_for(tx, request, options)
    if options.cache is None or not overlay.is_empty:
        answer = _found(tx, question, overlay)
        return replace(answer, explained=_why(tx, question, options, answer)) if request.explain else answer
    answer = _found_or_known(tx, question, options, cache=options.cache)
    if not request.explain:
        return answer
    asked = "why not", *options.asked_for(request)
    explained: Explained | None = options.cache.reason_for_nothing(tx, asked)
    if explained is None:
        explained = _why(tx, question, options, answer)
        if not answer.candidates and answer.complete:
            options.cache.note_nothing(tx, asked, explained)
    return replace(answer, explained=explained)


def _found_or_known(
    tx: Transaction, question: PlannerQuestion, options: PlannerOptions, *, cache: CloudCache
) -> PlannerAnswer:
    """Return what the search finds, without searching where it is known to find nothing."""
    asked = "candidates", *options.asked_for(replace(question.request, explain=False))
    answer: PlannerAnswer | None = cache.reason_for_nothing(tx, asked)
    if answer is None:
        answer = _found(tx, question, AS_IT_IS)
        if not answer.candidates and answer.complete:
            cache.note_nothing(tx, asked, replace(answer, members={}), lasts=not options.profile.filters)
    return answer


def _found(tx: Transaction, question: PlannerQuestion, overlay: Overlay) -> PlannerAnswer:
    request, search = question.request, search_for(question, overlay)
    chosen = [*islice(search.distinct(), request.limit)]
    found = [PlannedCandidate(proposal, search.score(proposal)) for proposal in chosen]
    hypothetical = HypotheticalTrees(tx, question, overlay)
    candidates = [*islice(merge(found, hypothetical.candidates(), key=attrgetter("rank")), request.limit)]
    return _answer(tx, search, hypothetical, candidates)


def _why(tx: Transaction, question: PlannerQuestion, options: PlannerOptions, answer: PlannerAnswer) -> Explained:
    is_found = any(candidate.like is None for candidate in answer.candidates)
    return explained_plan(tx, question, options, nothing_found=not is_found)


def _answer(
    tx: Transaction, search: PlannerSearch, hypothetical: HypotheticalTrees, candidates: list[PlannedCandidate]
) -> PlannerAnswer:
    complete = search.complete and hypothetical.complete
    if not candidates and not complete:
        raise OutOfSteps
    members = {**search.members, **hypothetical.members}
    roots = {members[provider].root_id for one in candidates for provider in one.proposal.amounts}
    return PlannerAnswer(
        candidates=candidates,
        members=members,
        providers=_summaries(tx, members, roots),
        levels=search.levels,
        searched=search.searched + hypothetical.searched,
        complete=complete,
    )


def _summaries(tx: Transaction, members: Mapping[int, NamedMember], roots: Collection[int]) -> Summaries:
    """Return the summaries of trees, all of whose providers are among those read."""
    if not roots:
        return Summaries()
    known = {id_: TreeMember(*member[:4]) for id_, member in members.items() if member.root_id in roots}
    return tree_summaries(tx, roots, providers_of_trees(tx, roots, known))


def why_not(found: Explained) -> str:
    """Say in one sentence why a request has no candidate."""
    cause = found.explanation.cause
    if cause is not None:
        return cause_in_words(cause, found.explanation.shortfall)
    trees = found.explanation.found
    return (
        f"{trees} provider trees have something for every group, but none of them has enough for the counts, in places "
        "as affinity, within and exclusive demand."
    )
