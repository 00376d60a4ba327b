"""Claims that wait in one worker at the same time, planned together in one snapshot by the thread of one of them.

Most of what a claim costs is planning: the trees that are read for one serve all. Each is then allocated by its own
thread in a transaction of its own, so that the journal has it as its own, and one's refusal is not another's. Nobody is
refused here: a claim that found nothing beside the others is planned alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from placement.domain.overlay import AS_IT_IS
from placement.errors import PlacementError
from placement.services.planner.allocating import Outdated, allocate
from placement.services.planner.composers import Composers
from placement.services.planner.drafting import Drafting, choices_after
from placement.services.planner.gang import Placing, by_difficulty
from placement.services.planner.members import ClaimMember, Draft
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.consumers import consumer_generations

TIMES = 3
"""So often a claim goes with others; one that has lost all these races is planned alone."""

LONGEST_WAIT_S = 2.0
"""So long a party waits for its turn at most: another claim may be planning in a large cloud."""


@dataclass(slots=True)
class SharedPlan:
    """A claim that is planned with others, and what they find for it.

    Args:
        members: who wants what; all or none of them.
        attempt: how often it has lost a race.
        drafts: where each member has a place; None where the claim is to be planned alone.
    """

    members: Sequence[ClaimMember]
    attempt: int = 0
    drafts: Sequence[Draft] | None = None


def claim_in_company(database: Database, members: Sequence[ClaimMember], digest: str) -> Mapping[str, str] | None:
    """Plan with those who claim at the same time, and allocate; return the answers, or None if nothing is decided.

    Args:
        database: the database.
        members: who wants what: all or none of them, and none replaces what it holds.
        digest: as of ``ClaimTerms``.

    Raises:
        ConcurrentUpdate: as ``claim``.
    """
    turns = database.claim_turns
    for attempt in range(TIMES):
        plan = SharedPlan(members, attempt)
        turn = turns.taken(longest_wait_s=LONGEST_WAIT_S)
        with database.claim_company.joined(plan, turn, partial(_plan_together, database)):
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


def _plan_together(database: Database, plans: Sequence[SharedPlan]) -> None:
    if len(plans) > 1:  # Alone it would be planned twice if there is no place.
        for plan, drafts in zip(plans, _drafts(database, plans), strict=True):
            plan.drafts = drafts


@reads
def _drafts(tx: Transaction, plans: Sequence[SharedPlan]) -> list[Sequence[Draft] | None]:
    """Return a place for each member of each claim, beside those of the claims before it."""
    doubt = max(int(tx.database.claim_turns.pressure), *[plan.attempt for plan in plans])
    drafting = Drafting(tx, Composers(), AS_IT_IS, among=choices_after(doubt), checks_units=doubt > 0)
    simple = [plan for plan in _of_new_consumers(tx, plans) if _is_possible(drafting, plan.members)]
    placing = Placing(drafting, [member for plan in simple for member in plan.members])
    drafts = {id(plan): _placed(placing, plan.members) for plan in simple}
    return [drafts.get(id(plan)) for plan in plans]


def _of_new_consumers(tx: Transaction, plans: Sequence[SharedPlan]) -> Iterator[SharedPlan]:
    """Yield the claims for consumers of which nobody knows anything yet; others are not as simple."""
    seen: set[str] = {*consumer_generations(tx, [member.uuid for plan in plans for member in plan.members])}
    for plan in plans:
        uuids = [member.uuid for member in plan.members]
        if seen.isdisjoint(uuids) and all(one.consumer.consumer_generation is None for one in plan.members):
            yield plan
        seen.update(uuids)


def _is_possible(drafting: Drafting, members: Sequence[ClaimMember]) -> bool:
    """Tell whether all names in what members want exist. Who names others is to learn that alone."""
    try:
        for member in members:
            drafting.ground(member)
    except PlacementError:
        return False
    return True


def _placed(placing: Placing, members: Sequence[ClaimMember]) -> Sequence[Draft] | None:
    """Place all members. Where one has no place, those before it still take theirs from others: these plan anew."""
    first = len(placing.drafts)
    if all(placing.has_placed(member) for member in by_difficulty(members)):
        return placing.drafts[first:]
    return None
