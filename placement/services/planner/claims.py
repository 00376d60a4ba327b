"""Plan and allocate: the use case behind POST /planner/v1/claims.

A claim is planned for all its members in one snapshot, without locks (``gang``). Every provider that was chosen is then
locked, in the order of ids, as for any allocation; either everything still fits, or nothing is written. If somebody
else was faster, the claim is planned again. It is only refused by a plan that found nothing, which is true of its
snapshot and needed no lock.

Claims that wait in one worker are planned together, by the thread of one of them: most of the cost of a claim is
search, and the trees read for one serve all. Each is then allocated by its own thread in its own transaction, so that
the journal attributes it correctly and refusals do not spread. Nobody is refused there: a claim that finds nothing
beside the others is planned alone.
"""

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from placement.candidates.planner.question import wanted_of
from placement.domain.inventory import Claim, DoesNotFit, check_fit
from placement.domain.planner_request import ANYWHERE, GangRules
from placement.domain.search_plan import plan_for
from placement.domain.tree import AS_IT_IS
from placement.errors import ConcurrentUpdate, Conflict, PlacementError
from placement.services import claims as claiming
from placement.services.claims import Situation
from placement.services.planner.candidates import is_without_place, no_place_beside, refusal, shortage
from placement.services.planner.fabric import placed_by_rules
from placement.services.planner.gang import (
    ClaimMember,
    Draft,
    Drafting,
    GangPlan,
    Placing,
    as_many_as_fit,
    by_difficulty,
    one_by_one,
    together,
)
from placement.services.planner.questions import Composers, released
from placement.store.allocations import held_by
from placement.store.connection.database import Database, Transaction, reads, writes
from placement.store.consumers import consumer_generations
from placement.store.planner_rows import RememberedClaim, remember_claims, remembered_claims, sweep_now_and_then
from placement.store.search.names import named_providers

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

    A claim of the same ``digest`` gets the same answer while its consumers are unchanged. ``refused`` says why members
    get no place, unless they have one from such a claim. ``dry_run`` neither writes nor locks; ``whole`` is all or
    none.
    """

    digest: str
    refused: Mapping[str, Conflict] = field(default_factory=dict)
    dry_run: bool = False
    whole: bool = True
    gang: GangRules = ANYWHERE


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answers for members that have a place, by consumer uuid, some new perhaps, and why others have none."""

    answers: Mapping[str, str]
    is_new: bool
    refused: Mapping[str, Conflict] = field(default_factory=dict)


class _ClaimPlan(NamedTuple):
    drafts: Sequence[Draft] = ()
    answers: Mapping[str, str] = {}
    refused: Mapping[str, Conflict] = {}


def claim_what_fits(database: Database, members: Sequence[ClaimMember], terms: ClaimTerms) -> Iterator[Outcome]:
    """Find the best places for as many members as fit, the largest first; yield each portion once it is committed.

    InvalidAt if a request names something that does not exist, Unavailable if the database cannot be reached.
    """
    terms = replace(terms, whole=False)
    in_order = by_difficulty(members)
    size = len(members) if terms.dry_run else PORTION
    for start in range(0, len(members), size):
        yield claim(database, in_order[start : start + size], terms)


def claim(database: Database, members: Sequence[ClaimMember], terms: ClaimTerms) -> Outcome:
    """Find the best place for each member and allocate them, in one transaction.

    If all are to have one: NoCandidate where, at some moment since the call, there was none; ConcurrentUpdate where a
    consumer holds something else, or others were faster too often. InvalidAt if something named does not exist.
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
                answers = {draft.member.uuid: answer_text(draft.consumer, draft.mappings) for draft in plan.drafts}
                return Outcome({**plan.answers, **answers}, is_new=False, refused=plan.refused)
            if new_answers := _allocated(database, plan.drafts, terms.digest):
                return Outcome({**plan.answers, **new_answers}, is_new=True, refused=plan.refused)
        time.sleep(random.uniform(0, min(MIN_PAUSE_S * 2**attempt, MAX_PAUSE_S)))  # noqa: S311 - no secret
    lost = ConcurrentUpdate("Other claims won the race each time; try again.")
    if terms.whole:
        raise lost
    return Outcome({}, is_new=False, refused={member.uuid: lost for member in members})


@reads
def _planned(
    tx: Transaction, members: Sequence[ClaimMember], terms: ClaimTerms, *, composers: Composers, attempt: int
) -> _ClaimPlan:
    """Return a place for each member in one snapshot, or the earlier answer to the same claim; raise as ``claim``."""
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
    drafting = Drafting(tx, composers, overlay, doubt=doubt, checks_units=terms.dry_run or attempt > 0)
    if terms.whole:
        if terms.gang.are_none:
            return _ClaimPlan(_all_or_none(drafting, by_difficulty(members)))
        return _ClaimPlan(placed_by_rules(drafting, members, terms.gang))
    wanting = [member for member in members if member.uuid not in answers and member.uuid not in refused]
    placement, stuck = as_many_as_fit(drafting, wanting)
    return _ClaimPlan(placement, answers, {**refused, **no_place_beside(drafting, stuck)})


def _all_or_none(drafting: Drafting, in_order: Sequence[ClaimMember]) -> Sequence[Draft]:
    hardest = in_order[0]
    drafting.question(hardest)  # Checks the names.
    if is_without_place(drafting, hardest):
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
    """A claim of all members or none, planned with others, and how many races it has lost.

    ``drafts`` are a place for each member, or None if the claim has to be planned alone.
    """

    members: Sequence[ClaimMember]
    attempt: int = 0
    drafts: Sequence[Draft] | None = None

    def is_possible(self, drafting: Drafting) -> bool:
        """Tell whether all names in the requests exist. If not, only this claim should get the error."""
        try:
            for member in self.members:
                drafting.question(member)
        except PlacementError:
            return False
        return True


def claim_in_batch(database: Database, members: Sequence[ClaimMember], digest: str) -> Mapping[str, str] | None:
    """Plan with the claims of the same moment, and allocate; return the answers, or None if the claim is undecided."""
    for attempt in range(MAX_LOST_RACES):
        plan = BatchedPlan(members, attempt)
        turn = database.claim_turns.taken(longest_wait_s=MAX_WAIT_S)
        with database.claim_batches.joined(plan, turn, partial(_plan_together, database)):
            if plan.drafts is None:
                return None
            if answers := _allocated(database, plan.drafts, digest):
                return answers
    return None


def _plan_together(database: Database, plans: Sequence[BatchedPlan]) -> None:
    if len(plans) > 1:  # A single claim without a place would be planned twice.
        _draft_together(database, plans)


@reads
def _draft_together(tx: Transaction, plans: Sequence[BatchedPlan]) -> None:
    """Find places for the members of each claim whose consumers are all new, beside those of the claims before it."""
    doubt = max(int(tx.database.claim_turns.pressure), *[plan.attempt for plan in plans])
    drafting, simple = Drafting(tx, Composers(), AS_IT_IS, doubt=doubt, checks_units=doubt > 0), list[BatchedPlan]()
    earlier = {*consumer_generations(tx, [member.uuid for plan in plans for member in plan.members])}
    for plan in plans:
        plan.drafts, uuids = None, [member.uuid for member in plan.members]
        is_new = all(member.consumer.consumer_generation is None for member in plan.members)
        if is_new and earlier.isdisjoint(uuids) and plan.is_possible(drafting):
            simple.append(plan)
        earlier.update(uuids)
    placing = Placing(drafting, [member for plan in simple for member in plan.members])
    for plan in simple:
        first = len(placing.drafts)
        are_placed = all(placing.has_placed(member) for member in by_difficulty(plan.members))
        # On failure those placed already still take from others, which are merely planned again.
        plan.drafts = placing.drafts[first:] if are_placed else None


class Outdated(Exception):
    """The plan is stale: somebody else has taken from it, or claimed for one of its consumers. Nothing was written."""


def _allocated(database: Database, drafts: Sequence[Draft], digest: str) -> Mapping[str, str] | None:
    """Allocate drafts, learn what work to expect, and return the answers by consumer; None for a stale plan.

    ConcurrentUpdate if a consumer to be replaced is at another generation.
    """
    try:
        answers = _written(database, drafts, digest)
    except Outdated:
        database.claim_turns.note(was_in_vain=True)
        return None
    database.claim_turns.note(was_in_vain=False)
    for draft in drafts:
        judge, request = draft.member.options.judge, draft.member.request
        if judge is not None and not draft.member.replaces:
            if not request.paths:
                judge.note_asked(wanted_of(request, plan_for(request.plain)))
            judge.note_allocated(draft.consumer.allocations.values())
    return answers


@writes
def _written(tx: Transaction, drafts: Sequence[Draft], digest: str) -> dict[str, str]:
    claims = [draft.consumer for draft in drafts]
    alone = frozenset[str]().union(*[draft.alone for draft in drafts])
    situation = claiming.meet(tx, claims, alone)
    _check_names(drafts, situation)
    claiming.check(claims, situation)
    supplies, _used = claiming.supplies_and_locks(tx, situation)
    if any(supply.used > situation.freed[stock] for stock, supply in supplies.items() if stock[0] in alone):
        raise Outdated  # Somebody else uses what a member wants exclusively.
    try:
        check_fit([portion for claim in claims for portion in claim.portions()], supplies, situation.freed)
    except DoesNotFit as reason:
        raise Outdated from reason
    claiming.carry_out(tx, claims, situation, supplies)
    answers = {draft.member.uuid: answer_text(draft.consumer, draft.mappings) for draft in drafts}
    in_order = sorted(drafts, key=lambda draft: draft.member.uuid)
    remember_claims(
        tx,
        [
            RememberedClaim(uuid := draft.member.uuid, digest, new_generation(draft.consumer), answers[uuid])
            for draft in in_order
        ],
    )
    sweep_now_and_then(tx)
    return answers


def _check_names(drafts: Sequence[Draft], situation: Situation) -> None:
    """Refuse drafts if one of their consumers has been created since, or a provider or class deleted."""
    new = [draft.member.uuid for draft in drafts if not draft.member.replaces]
    named = [name for draft in drafts for name, _amount in draft.consumer.portions()]
    are_there = all(uuid in situation.providers and name in situation.class_ids for uuid, name in named)
    if not (are_there and situation.consumers.keys().isdisjoint(new)):
        raise Outdated


def new_generation(consumer: Claim) -> int:
    """Return a consumer's generation once it holds what it claims: 1 with its first allocations."""
    return (consumer.consumer_generation or 0) + 1


def answer_text(consumer: Claim, mappings: Mapping[str, tuple[str, ...]]) -> str:
    """Return the answer for one consumer as JSON: its owner, and what PUT /allocations takes."""
    document = {
        "consumer": {
            "uuid": consumer.consumer_uuid,
            "project_id": consumer.project_id,
            "user_id": consumer.user_id,
            "consumer_type": consumer.consumer_type,
            "consumer_generation": new_generation(consumer),
        },
        "allocations": {provider: {"resources": dict(amounts)} for provider, amounts in consumer.allocations.items()},
        "mappings": mappings,
    }
    return json.dumps(document)


def known_answers(tx: Transaction, generations: Mapping[str, int], digest: str) -> dict[str, str]:
    """Return the earlier answers to a claim, for consumers that hold exactly that; they may be new ones."""
    remembered = remembered_claims(tx, generations)
    claims = [claim for claim in remembered.values() if claim.digest == digest]
    same = [claim for claim in claims if claim.generation == generations[claim.consumer_uuid]]
    held = held_by(tx, [claim.consumer_uuid for claim in same]) if same else []
    providers = named_providers(tx, {row.provider_id for row in held})
    names = tx.names.classes.names(tx.connection, {row.class_id for row in held})
    now: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: {"resources": {}}))
    for row in held:
        now[row.consumer_uuid][providers[row.provider_id].uuid]["resources"][names[row.class_id]] = row.used
    return {
        claim.consumer_uuid: claim.answer
        for claim in same
        if json.loads(claim.answer)["allocations"] == now[claim.consumer_uuid]
    }
