"""Plan and allocate: the use case behind POST /planner/v1/claims.

A claim is planned for all its members in one snapshot, without locks (``gang``). What was chosen is then locked,
checked and written (``allocating``). If somebody else was faster, the claim is planned again; it is only refused by a
plan that found nothing, which is true of its snapshot and needed no lock.

Claims that wait in one worker are planned together, by the thread of one of them: most of the cost of a claim is
search, and the trees read for one serve all. Each is then allocated by its own thread in its own transaction, so that
the journal attributes it correctly and refusals do not spread. Nobody is refused there: a claim that finds nothing
beside the others is planned alone.
"""

import contextlib
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from placement.domain.overlay import AS_IT_IS
from placement.domain.planner_request import ANYWHERE, GangRules
from placement.errors import ConcurrentUpdate, Conflict, PlacementError
from placement.services.cloud_cache import cloud_in
from placement.services.explain import Explained
from placement.services.planner.allocating import Outdated, allocate, known_answers, written
from placement.services.planner.changes import released
from placement.services.planner.fabric import placed_by_rules
from placement.services.planner.gang import (
    ClaimMember,
    Draft,
    Drafting,
    GangPlan,
    Placing,
    as_many_as_fit,
    by_difficulty,
    choices_after,
    one_by_one,
    together,
)
from placement.services.planner.questions import Composers
from placement.services.planner.refusals import (
    no_place_beside,
    refusal,
    refusal_alone,
    shortage,
)
from placement.store.connection.database import Database, Transaction, reads
from placement.store.consumers import consumer_generations

ATTEMPTS = 40
"""How often a claim is planned before it gives up. Each time it loses, somebody else has won."""

MIN_PAUSE_S, MAX_PAUSE_S = 0.002, 0.05
"""The bound of the random pause after a lost race: starts at the first, doubles each time, ends at the second."""

MAX_LOST_RACES = 3
"""How many races a claim may lose in batches before it is planned alone."""

MAX_WAIT_S = 2.0
"""How long a batch waits for its turn at most: another claim may search in a large cloud."""

PORTION = 250
"""How many members are allocated in one transaction where they need not all be allocated together."""


@dataclass(frozen=True, slots=True)
class ClaimTerms:
    """The terms of a claim.

    Args:
        digest: identifies the claim; a repetition gets the same answer while its consumers are unchanged.
        refused: why members get no place, by uuid, unless they have one from an earlier run of the same claim.
        dry_run: only plan: return what a claim would get, without writing or locking anything.
        whole: whether either all members get a place or none.
        gang: how the members have to lie on the fabric.
    """

    digest: str
    refused: Mapping[str, Conflict] = field(default_factory=dict)
    dry_run: bool = False
    whole: bool = True
    gang: GangRules = ANYWHERE


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of each member, by consumer uuid.

    Args:
        answers: the answers for those that have a place.
        is_new: whether any of these was written just now.
        refused: the reasons why others have none.
    """

    answers: Mapping[str, str]
    is_new: bool
    refused: Mapping[str, Conflict] = field(default_factory=dict)


class _ClaimPlan(NamedTuple):
    """What to write, what an earlier run of the same claim has written, and who is left out."""

    drafts: Sequence[Draft] = ()
    answers: Mapping[str, str] = {}
    refused: Mapping[str, Conflict] = {}


def claim_what_fits(database: Database, members: Sequence[ClaimMember], terms: ClaimTerms) -> Iterator[Outcome]:
    """Find the best places for as many members as fit, the largest first, and allocate them in portions.

    Yields:
        The outcome of each portion, once it is committed.

    Raises:
        InvalidAt: a request names something that does not exist.
        Unavailable: the database cannot be reached; portions already yielded stay.
    """
    terms = replace(terms, whole=False)
    in_order = by_difficulty(members)
    size = len(members) if terms.dry_run else PORTION
    for start in range(0, len(members), size):
        yield claim(database, in_order[start : start + size], terms)


def claim(database: Database, members: Sequence[ClaimMember], terms: ClaimTerms) -> Outcome:
    """Find the best place for each member and allocate them, in one transaction.

    Raises:
        NoCandidate: all members were to have a place, and at some moment since the call there was none for one of them.
        ConcurrentUpdate: all were to have one, and a consumer holds something else or others were faster too often.
        InvalidAt: a request names something that does not exist.
    """
    is_plain = terms.whole and terms.gang.are_none and not (terms.dry_run or terms.refused)
    if is_plain and not any(member.replaces for member in members):
        answers = claim_in_batch(database, members, terms.digest)
        if answers is not None:
            return Outcome(answers, is_new=True)
    composers = Composers()  # Shared by all attempts: the budget is for the claim as a whole.
    for attempt in range(ATTEMPTS):
        with database.claim_turns.taken(longest_wait_s=MAX_WAIT_S):
            plan = _planned(database, members, terms, composers=composers, attempt=attempt)
            if terms.dry_run or not plan.drafts:
                answers = {draft.member.uuid: written(draft.consumer, draft.mappings) for draft in plan.drafts}
                return Outcome({**plan.answers, **answers}, is_new=False, refused=plan.refused)
            with contextlib.suppress(Outdated):
                answers = allocate(database, plan.drafts, terms.digest)
                database.claim_turns.note(was_in_vain=False)
                return Outcome({**plan.answers, **answers}, is_new=True, refused=plan.refused)
            database.claim_turns.note(was_in_vain=True)
        time.sleep(random.uniform(0, min(MIN_PAUSE_S * 2**attempt, MAX_PAUSE_S)))  # noqa: S311 - no secret
    lost = ConcurrentUpdate("Other claims won the race each time; try again.")
    if terms.whole:
        raise lost
    return Outcome({}, is_new=False, refused={member.uuid: lost for member in members})


@reads
def _planned(
    tx: Transaction, members: Sequence[ClaimMember], terms: ClaimTerms, *, composers: Composers, attempt: int
) -> _ClaimPlan:
    """Return a place for each member in one snapshot, or the earlier answer to the same claim.

    Raises:
        NoCandidate: there is no place.
        ConcurrentUpdate: a consumer is at another generation, or holds something else.
    """
    uuids = [member.uuid for member in members]
    generations = consumer_generations(tx, uuids)
    answers = known_answers(tx, generations, terms.digest) if generations else {}
    if len(answers) == len(members):
        return _ClaimPlan(answers=answers)
    refused = _refused([member for member in members if terms.whole or member.uuid not in answers], terms, generations)
    if terms.whole and refused:
        raise next(iter(refused.values()))
    giving_back = [member.uuid for member in members if member.replaces]
    overlay = released(tx, giving_back) if giving_back else AS_IT_IS
    # A dry run has no race to lose, so it takes the best; and no write will check the units for it.
    doubt = 0 if terms.dry_run else max(attempt, int(tx.database.claim_turns.pressure))
    among, checks_units = choices_after(doubt), terms.dry_run or attempt > 0
    drafting = Drafting(tx, composers, overlay, among=among, checks_units=checks_units)
    if terms.whole:
        if terms.gang.are_none:
            return _ClaimPlan(_all_or_none(drafting, by_difficulty(members)))
        return _ClaimPlan(placed_by_rules(drafting, members, terms.gang))
    wanting = [member for member in members if member.uuid not in answers and member.uuid not in refused]
    placement, stuck = as_many_as_fit(drafting, wanting)
    return _ClaimPlan(placement, answers, {**refused, **no_place_beside(drafting, stuck)})


def _all_or_none(drafting: Drafting, in_order: Sequence[ClaimMember]) -> Sequence[Draft]:
    hardest = in_order[0]
    if hardest.explains and (no_place := _known_reason(drafting, hardest)):
        raise refusal_alone(hardest, no_place, is_gang=len(in_order) > 1)
    if _is_without_place(drafting, hardest):
        raise refusal(drafting, GangPlan(stuck=hardest), None, number=len(in_order))
    placement = one_by_one(drafting, in_order)
    if placement.stuck is None:
        return placement.drafts
    # A member that has no place even alone is explained by itself.
    lacking = shortage(drafting.tx, in_order, drafting.overlay) if placement.drafts else None
    if placement.drafts and lacking is None and not placement.is_proven:
        # Retry with the stuck member first.
        first = placement.stuck
        search = together(drafting, [first, *[member for member in in_order if member is not first]])
        if search.stuck is None:
            return search.drafts
        placement = GangPlan(placement.drafts, first, search.complete)
    raise refusal(drafting, placement, lacking, number=len(in_order))


def _known_reason(drafting: Drafting, member: ClaimMember) -> Explained | None:
    """Return why a member has no place even alone, if that was found out before and no tree has changed since."""
    explained: Explained | None = _remembered(drafting, member, "place")
    return explained


def _is_without_place(drafting: Drafting, member: ClaimMember) -> bool:
    """Tell whether a member is known to have no place even alone, whatever the reason is by now."""
    return bool(_remembered(drafting, member, "no place"))


def _remembered(drafting: Drafting, member: ClaimMember, kind: str) -> Any:
    if not drafting.overlay.is_empty:
        return None
    drafting.question(member)  # Checks the names.
    return cloud_in(drafting.tx).reason_for_nothing((kind, *member.options.asked_for(member.request)))


def _refused(
    members: Sequence[ClaimMember], terms: ClaimTerms, generations: Mapping[str, int]
) -> Mapping[str, Conflict]:
    """Return, by uuid, why members get no place whatever there is; first the conflicts with what they hold."""
    conflicts = {member.uuid: conflict for member in members if (conflict := _conflict(member, generations))}
    uuids = [member.uuid for member in members if member.uuid not in conflicts]
    return {**conflicts, **{uuid: terms.refused[uuid] for uuid in uuids if uuid in terms.refused}}


def _conflict(member: ClaimMember, generations: Mapping[str, int]) -> ConcurrentUpdate | None:
    """Return the conflict if a consumer holds something that is not to be replaced, or is at another generation."""
    actual, stated = generations.get(member.uuid), member.consumer.consumer_generation
    if actual is not None and not member.replaces:
        return ConcurrentUpdate(
            f"consumer generation conflict - consumer {member.uuid} is at generation {actual}, but not from this claim"
        )
    if actual != stated:
        expected = "null" if actual is None else actual
        return ConcurrentUpdate(f"consumer generation conflict - expected {expected} but got {stated}")
    return None


@dataclass(slots=True)
class BatchedPlan:
    """A claim planned with others, and the result.

    Args:
        members: who wants what; either all get a place or none.
        attempt: how many races it has lost.
        drafts: a place for each member, or None if the claim has to be planned alone.
    """

    members: Sequence[ClaimMember]
    attempt: int = 0
    drafts: Sequence[Draft] | None = None


def claim_in_batch(database: Database, members: Sequence[ClaimMember], digest: str) -> Mapping[str, str] | None:
    """Plan with the claims of the same moment, and allocate; return the answers, or None if the claim is undecided.

    Raises:
        ConcurrentUpdate: as ``claim``.
    """
    turns = database.claim_turns
    for attempt in range(MAX_LOST_RACES):
        plan = BatchedPlan(members, attempt)
        turn = turns.taken(longest_wait_s=MAX_WAIT_S)
        with database.claim_batches.joined(plan, turn, partial(_plan_together, database)):
            if plan.drafts is None:
                return None
            try:
                answers = allocate(database, plan.drafts, digest)
            except Outdated:
                turns.note(was_in_vain=True)
                continue
            turns.note(was_in_vain=False)
            return answers
    return None


def _plan_together(database: Database, plans: Sequence[BatchedPlan]) -> None:
    if len(plans) > 1:  # A single claim without a place would be planned twice.
        for plan, drafts in zip(plans, _drafts(database, plans), strict=True):
            plan.drafts = drafts


@reads
def _drafts(tx: Transaction, plans: Sequence[BatchedPlan]) -> list[Sequence[Draft] | None]:
    """Return places for the members of each claim, beside those of the claims before it."""
    doubt = max(int(tx.database.claim_turns.pressure), *[plan.attempt for plan in plans])
    drafting = Drafting(tx, Composers(), AS_IT_IS, among=choices_after(doubt), checks_units=doubt > 0)
    simple = [plan for plan in _of_new_consumers(tx, plans) if _is_possible(drafting, plan.members)]
    placing = Placing(drafting, [member for plan in simple for member in plan.members])
    drafts = {id(plan): _placed(placing, plan.members) for plan in simple}
    return [drafts.get(id(plan)) for plan in plans]


def _of_new_consumers(tx: Transaction, plans: Sequence[BatchedPlan]) -> Iterator[BatchedPlan]:
    """Yield the claims whose consumers are all new: the only ones simple enough to be planned together."""
    earlier: set[str] = {*consumer_generations(tx, [member.uuid for plan in plans for member in plan.members])}
    for plan in plans:
        uuids = [member.uuid for member in plan.members]
        if earlier.isdisjoint(uuids) and all(member.consumer.consumer_generation is None for member in plan.members):
            yield plan
        earlier.update(uuids)


def _is_possible(drafting: Drafting, members: Sequence[ClaimMember]) -> bool:
    """Tell whether all names in the members' requests exist. If not, only that claim should get the error."""
    try:
        for member in members:
            drafting.question(member)
    except PlacementError:
        return False
    return True


def _placed(placing: Placing, members: Sequence[ClaimMember]) -> Sequence[Draft] | None:
    """Place all members. On failure those placed already still take from others, which are merely planned again."""
    first = len(placing.drafts)
    if all(placing.has_placed(member) for member in by_difficulty(members)):
        return placing.drafts[first:]
    return None
