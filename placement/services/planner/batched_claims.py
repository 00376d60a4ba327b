"""Plan claims that wait in one worker together, in one snapshot, by the thread of one of them.

Most of the cost of a claim is search, and the trees read for one serve all. Each claim is then allocated by its own
thread in its own transaction, so that the journal attributes it correctly and refusals do not spread. Nobody is refused
here: a claim that finds nothing beside the others is planned alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from placement.domain.overlay import AS_IT_IS
from placement.errors import PlacementError
from placement.services.planner.allocating import Outdated, allocate
from placement.services.planner.composers import Composers
from placement.services.planner.drafting import ClaimMember, Draft, Drafting, choices_after
from placement.services.planner.gang import Placing, by_difficulty
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.consumers import consumer_generations

MAX_LOST_RACES = 3
"""How many races a claim may lose in batches before it is planned alone."""

MAX_WAIT_S = 2.0
"""How long a batch waits for its turn at most: another claim may be search in a large cloud."""


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

    Args:
        database: the database.
        members: who wants what: all or none, and none replaces what it holds.
        digest: as in ``ClaimTerms``.

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
    seen: set[str] = {*consumer_generations(tx, [member.uuid for plan in plans for member in plan.members])}
    for plan in plans:
        uuids = [member.uuid for member in plan.members]
        if seen.isdisjoint(uuids) and all(one.consumer.consumer_generation is None for one in plan.members):
            yield plan
        seen.update(uuids)


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
