"""The candidates for a planner request, best first; and why there are none for a request, a claim or a gang."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from placement.errors import Conflict, OutOfSteps
from placement.services.allocation_candidates import Explained, condition_masks
from placement.services.cloud_cache import cloud_in
from placement.services.planner.gang import ClaimMember, Drafting, GangPlan
from placement.services.planner.questions import (
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
    changes: Changes | None = None,
) -> PlannerAnswer:
    """Find the best candidates for a planner request, in one snapshot.

    InvalidAt if something named does not exist, OutOfSteps if the search was cut off before it found anything.
    """
    overlay = overlay_of(tx, changes, overlay) if changes else overlay
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


CUT_OFF = "The search limit was reached; a placement may still exist."


class NoCandidate(Conflict):
    """The request has no candidate now.

    Not ``complete`` if a search was cut off. ``member`` is, in a gang, the uuid of the consumer without a place.
    """

    code = "placement.planner.no_room"

    def __init__(
        self, message: str, explained: Explained | None = None, *, complete: bool = True, member: str | None = None
    ) -> None:
        super().__init__(message)
        self.explained = explained
        self.complete = complete
        self.member = member


def shortage(tx: Transaction, members: Sequence[ClaimMember], overlay: Overlay) -> str | None:
    """Name a class of which all members want more than all providers have left, if any; then no search is needed."""
    requested: Counter[str] = Counter()
    for member in members:
        requested.update(member.request.requested)
    more: Counter[str] = Counter()
    for amounts in overlay.changes.values():
        more.subtract(amounts)
    ids = tx.names.classes.ids(tx.connection, set(requested))
    columns = cloud_in(tx).columns
    for name, amount in sorted(requested.items()):
        free = int(columns.left_in_trees(ids[name]).sum()) + more[name]
        if amount > free:
            return f"They want {amount} {name}, and {free} are left."
    return None


def is_without_place(drafting: Drafting, member: ClaimMember) -> bool:
    """Tell whether a member is known to have no place even alone."""
    name = "no place", *member.options.asked_for(member.request)
    return drafting.overlay.is_empty and bool(cloud_in(drafting.tx).reason_for_nothing(name))


def refusal(drafting: Drafting, placement: GangPlan, lacking: str | None, *, number: int) -> NoCandidate:
    """Return why a request or a gang was refused."""
    assert placement.stuck is not None
    if not placement.drafts:
        return _refusal_alone(drafting, placement.stuck, complete=placement.complete, is_gang=number > 1)
    uuid = placement.stuck.uuid
    if lacking is not None:
        return refusal_of_gang(number, lacking, complete=True, member=uuid)
    sentence = f"Consumer {uuid} found none beside {len(placement.drafts)} others."
    return refusal_of_gang(number, sentence, complete=placement.complete or placement.is_proven, member=uuid)


def refusal_of_gang(number: int, reason: str, *, complete: bool, member: str) -> NoCandidate:
    """Return a refusal of all members of a gang, with the reason in a sentence, and the uuid of the member to name."""
    sentence = f"No place was found for all {number} members together, so none of them was allocated. {reason}".rstrip()
    return NoCandidate(sentence if complete else f"{sentence} {CUT_OFF}", complete=complete, member=member)


def no_place_beside(
    drafting: Drafting, stuck: Sequence[tuple[GangPlan, Sequence[ClaimMember]]]
) -> dict[str, NoCandidate]:
    """Return by uuid why members, of each kind all those behind a stuck one, found no place beside others."""
    reasons: dict[str, NoCandidate] = {}
    for placement, members in stuck:
        number, complete = len(placement.drafts), placement.complete
        if number:
            sentence = f"No place was found beside {number} other member{'' if number == 1 else 's'}."
            reason = NoCandidate(sentence if complete else f"{sentence} {CUT_OFF}", complete=complete)
        else:
            reason = _refusal_alone(drafting, members[0], complete=complete, is_gang=False)
        reasons.update({member.uuid: reason for member in members})
    return reasons


def _refusal_alone(drafting: Drafting, member: ClaimMember, *, complete: bool, is_gang: bool) -> NoCandidate:
    tx, options, question, explained = drafting.tx, member.options, drafting.question(member), None
    is_known, uuid = complete and drafting.overlay.is_empty, member.uuid if is_gang else None
    if member.explains:
        explained = why_nothing(tx, question, options) if is_known else explained_plan(tx, question, options)
    if is_known:
        name = "no place", *options.asked_for(member.request)
        cloud_in(tx).note_nothing(name, reason=True, lasts=not options.profile.filters)
    if explained is None or (not complete and explained.explanation.cause is None):
        sentence = "No place was found, so nothing was allocated."
        return NoCandidate(sentence if complete else f"{sentence} {CUT_OFF}", explained, complete=complete, member=uuid)
    alone = f" Consumer {member.uuid} has no place even alone." if is_gang else ""
    left_out = " The trees to avoid were left out." if member.request.avoided_trees else ""
    return NoCandidate(f"Nothing was allocated.{alone} {why_not(explained)}{left_out}", explained, member=uuid)
