"""Plan and allocate in one unit of work: the use case behind POST /planner/v1/claims.

A claim goes through the trees, best first (``placing``), for one member after the other (``gang``). It is refused only
by a plan of one snapshot that finds nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from placement.errors import ConcurrentUpdate, Conflict
from placement.services.explain import Explained, explanation_now
from placement.services.planner.candidates import why_not
from placement.services.planner.composers import Composers
from placement.services.planner.gang import ClaimedByConsumer, Stuck, by_difficulty, may_fit, one_by_one, together
from placement.services.planner.placing import TRIES_IN_A_TREE, ClaimMember, Overtaken
from placement.services.planner.planning import Planning
from placement.services.planner.records import FIRST_GENERATION, is_held, written
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads, writes
from placement.store.consumers import lock_consumers
from placement.store.kept_usage.write_gate import pass_write_gate
from placement.store.planner_claims import (
    RememberedClaim,
    remember_claims,
    remembered_claims,
    sweep_now_and_then,
)

__all__ = ["Gate", "NoCandidate", "Outcome", "claim"]

ATTEMPTS = 40
"""How often a claim is planned before it gives up. Each time it lost, somebody else has won."""


CUT_OFF = "The search limit was reached; a placement may still exist."


class NoCandidate(Conflict):
    """There is no place for the request now.

    ``complete`` is False if not everything was tried.
    """

    def __init__(self, message: str, explained: Explained | None = None, *, complete: bool = True) -> None:
        super().__init__(message)
        self.explained = explained
        self.complete = complete


Gate = Callable[[Transaction, Sequence[ClaimMember]], None]
"""Asked inside the unit of work before anything is planned; raises where a claim must not go on."""

Way = Callable[[Transaction, Sequence[ClaimMember], Composers], ClaimedByConsumer]
"""A way to place all members, in the order given."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The text for each member, by the uuid of its consumer; ``is_new`` is False where they had been claimed before."""

    answers: Mapping[str, str]
    is_new: bool


def claim(
    database: Database,
    members: Sequence[ClaimMember],
    *,
    digest: str,
    gates: Collection[Gate] = (),
) -> Outcome:
    """Find the best place for each member and allocate it: all members or none.

    Args:
        database: the database.
        members: who wants what.
        digest: tells this claim from others; the same again gets the same answer while the consumers stand.
        gates: what else must agree.

    Raises:
        NoCandidate: there was no place at an instant since this was called.
        ConcurrentUpdate: a consumer holds something else, or others were faster too often.
        InvalidAt: a request names something that does not exist.
    """
    _catch_up(database, members)
    way: Way = one_by_one
    composers = Composers()  # A claim is bounded as a whole, however often it is tried.
    in_order = by_difficulty(members)
    for attempt in range(ATTEMPTS):
        try:
            return _claimed(database, in_order, digest, way=way, composers=composers, gates=gates)
        except Overtaken:
            continue
        except Stuck as stuck:
            if len(members) == 1:
                if _is_final(database, members[0], stuck, attempt, composers=composers):
                    raise _refusal(database, members[0], complete=stuck.complete) from None
            elif stuck.contended and not composers.budget.is_used_up:
                way = one_by_one  # There is something else now; going back costs much.
            elif way is together or composers.budget.is_used_up or not may_fit(database, members):
                raise _refusal_of_gang(members, complete=stuck.complete and not stuck.contended) from None
            else:
                way, in_order = together, _with_first(stuck.member, in_order)
    raise ConcurrentUpdate("Other claims won the race each time; try again.")


def _catch_up(database: Database, members: Sequence[ClaimMember]) -> None:
    """Let who judges devices see what has changed: in a transaction that writes it cannot be noted as seen."""
    for packer in {member.options.packer for member in members}:
        if packer is not None:
            packer.catch_up(database)


def _is_final(database: Database, member: ClaimMember, stuck: Stuck, attempt: int, *, composers: Composers) -> bool:
    """Tell whether it is of no use to try again: in one snapshot there is nothing."""
    if not stuck.complete and (not stuck.contended or composers.budget.is_used_up):
        return True  # The search would be cut off again.
    if not stuck.contended and attempt + 1 >= TRIES_IN_A_TREE:
        return True  # What is proposed does not keep to the unit rules of an inventory.
    return not _fits_now(database, member, composers)


def _with_first(first: ClaimMember, members: Sequence[ClaimMember]) -> list[ClaimMember]:
    return [first, *[member for member in members if member is not first]]


def _refusal_of_gang(members: Sequence[ClaimMember], *, complete: bool) -> NoCandidate:
    together = f"No place was found for all {len(members)} members together, so none of them was allocated."
    if complete:
        return NoCandidate(together)
    return NoCandidate(f"{together} {CUT_OFF}", complete=False)


def _refusal(database: Database, member: ClaimMember, *, complete: bool) -> NoCandidate:
    request = member.request
    explained = None if request.paths else explanation_now(database, request.plain)
    if not complete and (explained is None or explained.explanation.cause is None):
        return NoCandidate(f"No place was found, so nothing was allocated. {CUT_OFF}", explained, complete=False)
    if explained is None:
        return NoCandidate(
            "In no provider tree is there room for the groups as they are nested; nothing was allocated."
        )
    return NoCandidate(f"Nothing was allocated: {why_not(explained)}", explained)


@reads
def _fits_now(tx: Transaction, member: ClaimMember, composers: Composers) -> bool:
    """Tell whether there is any candidate, in one snapshot."""
    planning = Planning(tx, member.request, member.options, composers)
    return next(planning.proposals(), None) is not None or not planning.complete


@writes
def _claimed(
    tx: Transaction,
    members: Sequence[ClaimMember],
    digest: str,
    *,
    way: Way,
    composers: Composers,
    gates: Collection[Gate],
) -> Outcome:
    pass_write_gate(tx.connection)
    if (known := _known(tx, members, digest)) is not None:
        return Outcome(known, is_new=False)
    for gate in gates:
        gate(tx, members)
    answers = {uuid: written(claimed) for uuid, claimed in way(tx, members, composers).items()}
    remember_claims(
        tx, [RememberedClaim(uuid, digest, FIRST_GENERATION, text) for uuid, text in sorted(answers.items())]
    )
    sweep_now_and_then(tx)
    return Outcome(answers, is_new=True)


def _known(tx: Transaction, members: Sequence[ClaimMember], digest: str) -> dict[str, str] | None:
    """Return what was answered to the same claim before, if its consumers still hold just that.

    Raises:
        ConcurrentUpdate: a consumer is at another generation, or holds something else.
    """
    uuids = [member.consumer.consumer_uuid for member in members]
    consumers = lock_consumers(tx, uuids)
    if not consumers:
        _check_generations(members)
        return None
    remembered = remembered_claims(tx, uuids)
    for uuid in uuids:
        found, consumer = remembered.get(uuid), consumers.get(uuid)
        seen = consumer.generation if consumer else None
        if found is None or (found.digest, found.generation) != (digest, seen) or not is_held(tx, uuid, found.answer):
            raise ConcurrentUpdate(
                f"consumer generation conflict - consumer {uuid} is at generation {seen}, but not from this claim"
            )
    return {uuid: remembered[uuid].answer for uuid in uuids}


def _check_generations(members: Sequence[ClaimMember]) -> None:
    for member in members:
        if member.consumer.consumer_generation is not None:
            expected = member.consumer.consumer_generation
            raise ConcurrentUpdate(f"consumer generation conflict - expected null but got {expected}")
