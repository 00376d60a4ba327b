"""The candidates for a request, best first, and why there are none: the use case behind POST /planner/v1/candidates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from operator import attrgetter

from placement.allocators import Budget
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.paths import PathComposer
from placement.candidates.compose.proposals import Proposal, ProposalComposer
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explain_rules import RuleSearches, distinguishing_columns, explain_request, rules_of
from placement.candidates.explain.explanation import cause_in_words
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.scores import Score
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.domain.tree import AS_IT_IS, NamedMember, Overlay
from placement.errors import OutOfSteps
from placement.services.allocation_candidates import Explained, condition_masks
from placement.services.cloud_cache import cloud_in
from placement.services.planner.questions import (
    AS_THEY_ARE,
    STEPS_PER_REQUEST,
    Changes,
    PlannerOptions,
    emptied,
    overlay_of,
    question_for,
)
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.search.names import Summaries, TreeMember, named_providers, tree_summaries


@dataclass(frozen=True, slots=True)
class PlannedCandidate:
    """A proposal and its score; in a hypothetical tree, ``like`` is the root of the one whose providers it names."""

    proposal: Proposal
    score: Score
    like: int | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """The sort key: candidates that break the reserve of scarce resources last, otherwise the best score first."""
        return self.score.keeps_proportion is False, -self.score.total


@dataclass(frozen=True, slots=True)
class PlannerAnswer:
    """Candidates, best first, with all providers of the trees they take from.

    ``members`` are the providers named in them, and others; ``levels`` the names of levels that scores count, outermost
    first; ``searched`` says in how many trees the best were looked for, ``complete`` that no budget was hit.
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

    InvalidAt if something named does not exist, OutOfSteps if the search was cut off before it found anything.
    """
    overlay = overlay_of(tx, changes, overlay)
    question, cloud = question_for(tx, request, options), cloud_in(tx)
    name, is_real = ("candidates", *options.asked_for(request)), overlay.is_empty
    answer: PlannerAnswer | None = cloud.reason_for_nothing(name) if is_real else None
    if answer is None:
        answer = _searched(tx, question, overlay)
        if is_real and not answer.candidates and answer.complete:
            cloud.note_nothing(name, replace(answer, members={}), lasts=not options.profile.filters)
    if not request.explain:
        return answer
    if is_real and not answer.candidates and answer.complete:
        return replace(answer, explained=why_nothing(tx, question, options))
    is_found = any(candidate.like is None for candidate in answer.candidates)
    return replace(answer, explained=explained_plan(tx, question, options, nothing_found=not is_found))


def _searched(tx: Transaction, question: PlannerQuestion, overlay: Overlay) -> PlannerAnswer:
    limit, search = question.request.limit, PlannerSearch(question, overlay)
    existing = [PlannedCandidate(proposal, search.score(proposal)) for proposal in islice(search.distinct(), limit)]
    searches, added = [search], list[PlannedCandidate]()
    for more in overlay.more:  # Each tree like another one has what that would have, were it empty.
        searches.append(empty := PlannerSearch(question, emptied(tx, [more.like], overlay)))
        for proposal in [*empty.proposals(only=more.like)]:
            added += [PlannedCandidate(proposal, empty.score(proposal), more.like)] * min(more.count, limit)
    by_rank = attrgetter("rank")
    candidates = [*islice(merge(existing, sorted(added, key=by_rank), key=by_rank), limit)]
    complete = all(searched.complete for searched in searches)
    if not candidates and not complete:
        raise OutOfSteps
    return PlannerAnswer(
        candidates=candidates,
        members=search.members,
        providers=_summaries(tx, search.members, candidates),
        levels=question.composer.levels.names,
        searched=search.searched + sum([more.count for more in overlay.more]),
        complete=complete,
    )


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
    """Explain the request of a question on the cloud as it is, but for the trees to avoid."""
    request, plan = question.request, question.composer.plan
    masks = condition_masks(tx, plan, avoided=question.avoided)
    # Nobody can hold a place by a class that does not exist.
    existing = tx.names.classes.ids(tx.connection, {*options.locks.values()})
    locks = {level: name for level, name in options.locks.items() if name in existing}
    if rules_of(request) or request.paths or locks:
        explanation = explain_request(request, plan, masks, _searches(question, locks))
    else:
        explanation = explain(plan, masks)
    if explanation.cause is None and explanation.complete and nothing_found and options.profile.filters:
        explanation = explanation.left_out_by_profile()
    return Explained(explanation, named_providers(tx, explanation.providers()))


def why_nothing(tx: Transaction, question: PlannerQuestion, options: PlannerOptions) -> Explained:
    """Explain a request that finds nothing on the cloud as it is; kept until a tree changes."""
    cloud, name = cloud_in(tx), ("why not", *options.asked_for(question.request))
    explained: Explained = cloud.reason_for_nothing(name) or explained_plan(tx, question, options)
    cloud.note_nothing(name, explained)
    return explained


def _searches(question: PlannerQuestion, locks: Mapping[str, str]) -> RuleSearches:
    request, levels = question.request, question.composer.levels

    def composer_for(variant: PlannerRequest, plan: Plan) -> ProposalComposer:
        # Levels apply whichever rules are left out.
        if variant.paths:
            return PathComposer(variant, levels, locks=locks)
        return DeviceComposer(variant, levels, locks=locks, plan=plan)

    # All stocks matter to nested parts, and what is in use to groups that want a place to themselves.
    classes, in_use = (
        None if request.paths else {*locks.values()},
        question.cloud.reader.serving.in_use if request.exclusive else None,
    )
    columns = distinguishing_columns(question.cloud, classes, in_use=in_use)
    return RuleSearches(composer_for, question.details.built, columns, Budget(STEPS_PER_REQUEST))
