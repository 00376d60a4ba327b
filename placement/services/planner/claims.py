"""Plan and allocate: the use case behind POST /planner/v1/claims.

A claim is planned in one snapshot, for all its members, without a lock (``gang``). What was chosen is then locked,
checked and written (``allocating``). Where somebody else was faster it is planned again; it is refused only by a plan
that found nothing, which is true of the snapshot, and has locked nothing.
"""

import contextlib
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from placement.errors import ConcurrentUpdate
from placement.services.planner.allocating import Outdated, allocate
from placement.services.planner.composers import Composers
from placement.services.planner.drafting import Drafting
from placement.services.planner.gang import GangPlan, by_difficulty, one_by_one, together
from placement.services.planner.members import ClaimMember, Draft
from placement.services.planner.overlays import released
from placement.services.planner.records import is_held, written
from placement.services.planner.refusals import NoCandidate, refusal, shortage
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.consumers import consumer_generations
from placement.store.planner_claims import remembered_claims

__all__ = ["Gate", "NoCandidate", "Outcome", "claim"]

ATTEMPTS = 40
"""How often a claim is planned before it gives up. Each time it lost, somebody else has won."""

MOST_CHOICES = 16
"""Among so many of the best places at most is chosen after lost races."""

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.05
"""After a lost race a claim waits, by chance, up to the first of these; twice as long each time, up to the second."""

LONGEST_WAIT_S = 2.0
"""So long a claim waits for its turn at most: another one may be planning in a large cloud."""

Gate = Callable[[Transaction, Sequence[ClaimMember]], None]
"""Asked inside the snapshot before anything is planned; raises where a claim must not go on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The text for each member, by the uuid of its consumer; ``is_new`` is False where nothing was written now."""

    answers: Mapping[str, str]
    is_new: bool


def claim(
    database: Database,
    members: Sequence[ClaimMember],
    *,
    digest: str,
    gates: Collection[Gate] = (),
    dry_run: bool = False,
) -> Outcome:
    """Find the best place for each member and allocate it: all members or none.

    Args:
        database: the database.
        members: who wants what.
        digest: tells this claim from others; the same again gets the same answer while the consumers stand.
        gates: what else must agree.
        dry_run: whether only to plan: the answer is what a claim would get, and nothing is written or locked.

    Raises:
        NoCandidate: there was no place at an instant since this was called.
        ConcurrentUpdate: a consumer holds something else, or others were faster too often.
        InvalidAt: a request names something that does not exist.
    """
    composers = Composers()  # A claim is bounded as a whole, however often it is planned.
    for attempt in range(ATTEMPTS):
        with database.claim_turns.taken(longest_wait_s=LONGEST_WAIT_S):
            plan = _planned(
                database, members, digest, composers=composers, gates=gates, attempt=attempt, is_final=dry_run
            )
            if isinstance(plan, Outcome):
                return plan
            if dry_run:
                return Outcome({one.member.uuid: written(one.consumer, one.mappings) for one in plan}, is_new=False)
            with contextlib.suppress(Outdated):
                answers = allocate(database, plan, digest)
                database.claim_turns.note(was_in_vain=False)
                return Outcome(answers, is_new=True)
            database.claim_turns.note(was_in_vain=True)
        time.sleep(random.uniform(0, min(SHORTEST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S)))  # noqa: S311 - no secret
    raise ConcurrentUpdate("Other claims won the race each time; try again.")


@reads
def _planned(
    tx: Transaction,
    members: Sequence[ClaimMember],
    digest: str,
    *,
    composers: Composers,
    gates: Collection[Gate],
    attempt: int,
    is_final: bool,
) -> Outcome | Sequence[Draft]:
    """Return a place for each member in one snapshot, or what was answered to the same claim before.

    Args:
        tx: the snapshot.
        members: who wants what.
        digest: tells this claim from others.
        composers: those of the claim.
        gates: what else must agree.
        attempt: how often it has lost a race.
        is_final: whether nobody will write it, and see then what is wrong with it.

    Raises:
        NoCandidate: there is none.
        ConcurrentUpdate: a consumer is at another generation, or holds something else.
    """
    if (known := _known(tx, members, digest)) is not None:
        return Outcome(known, is_new=False)
    for gate in gates:
        gate(tx, members)
    overlay = released(tx, [member.uuid for member in members if member.replaces])
    doubt = 0 if is_final else max(attempt, int(tx.database.claim_turns.pressure))
    among, checks_units = min(2**doubt, MOST_CHOICES), is_final or attempt > 0
    drafting = Drafting(tx, composers, overlay, among=among, checks_units=checks_units)
    in_order = by_difficulty(members)
    placement = one_by_one(drafting, in_order)
    if placement.stuck is None:
        return placement.drafts
    lacking = shortage(tx, members, overlay)
    if placement.drafts and lacking is None:
        # The one that was stuck goes first now.
        first = placement.stuck
        search = together(drafting, [first, *[member for member in in_order if member is not first]])
        if search.stuck is None:
            return search.drafts
        placement = GangPlan(placement.drafts, first, search.complete)
    raise refusal(drafting, placement, lacking, of=len(members))


def _known(tx: Transaction, members: Sequence[ClaimMember], digest: str) -> dict[str, str] | None:
    """Return what was answered to the same claim before, if its consumers still hold just that.

    Raises:
        ConcurrentUpdate: a consumer is at another generation, or holds something else.
    """
    uuids = [member.uuid for member in members]
    generations = consumer_generations(tx, uuids)
    remembered = remembered_claims(tx, uuids) if generations else {}
    for member in members:
        uuid = member.uuid
        found, seen = remembered.get(uuid), generations.get(uuid)
        is_repeated = (
            found is not None and (found.digest, found.generation) == (digest, seen) and is_held(tx, uuid, found.answer)
        )
        if not is_repeated:
            _check_generations(members, generations)
            return None
    return {uuid: remembered[uuid].answer for uuid in uuids}


def _check_generations(members: Sequence[ClaimMember], generations: Mapping[str, int]) -> None:
    """Refuse a claim for a consumer that holds something already, unless that is to be replaced."""
    for member in members:
        seen, said = generations.get(member.uuid), member.consumer.consumer_generation
        if seen is not None and not member.replaces:
            raise ConcurrentUpdate(
                f"consumer generation conflict - consumer {member.uuid} is at generation {seen}, "
                "but not from this claim"
            )
        if seen != said:
            expected = "null" if seen is None else seen
            raise ConcurrentUpdate(f"consumer generation conflict - expected {expected} but got {said}")
