"""Plan and allocate in one unit of work: the use case behind POST /planner/v1/claims.

Planners would all choose the best tree and take it from each other. So a claim locks the root of the tree it plans in,
best first; a tree that somebody else is planning in is passed over as long as there is another. Inside a locked tree
the plan is made again from what is there now. Only plain writers can still be faster; what they took shows when the
providers are locked, as for every allocation, and the claim goes on to the next best.

A claim is refused only by a plan of one snapshot that finds nothing.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from placement.candidates.planner.proposals import Proposal
from placement.domain.allocation import Claim
from placement.domain.capacity import DoesNotFit, check_fit
from placement.domain.planner_request import PlannerRequest
from placement.errors import ConcurrentUpdate, Conflict
from placement.services import claims as claiming
from placement.services.explain import Explained, explanation_now
from placement.services.planner.candidates import why_not
from placement.services.planner.planning import PlannerOptions, Planning
from placement.services.planner.records import FIRST_GENERATION, Claimed, is_held, written
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
from placement.store.providers import lock_if_free, lock_providers

__all__ = ["ClaimMember", "Gate", "NoCandidate", "Outcome", "claim"]

ATTEMPTS = 40
"""How often a claim is planned before it gives up. Each time it lost, somebody else has won."""

TRIES_IN_A_TREE = 3


class NoCandidate(Conflict):
    """There is no place for the request now."""

    def __init__(self, message: str, explained: Explained | None = None) -> None:
        super().__init__(message)
        self.explained = explained


@dataclass(frozen=True, slots=True)
class ClaimMember:
    """One consumer that is to hold something.

    Args:
        consumer: whose it is; its allocations are not known yet.
        request: what it wants.
        options: the operator's, for this request.
    """

    consumer: Claim
    request: PlannerRequest
    options: PlannerOptions


Gate = Callable[[Transaction, Sequence[ClaimMember]], None]
"""Asked inside the unit of work before anything is planned; raises where a claim must not go on."""


class _Overtaken(Exception):
    """The consumer has been claimed for meanwhile, perhaps by the same claim: roll back and look."""


class _Lost(Exception):
    """There is nothing left, or somebody else was faster everywhere: roll back and look again.

    ``contended`` tells that others were at work.
    """

    def __init__(self, *, contended: bool) -> None:
        super().__init__()
        self.contended = contended


@dataclass(frozen=True, slots=True)
class Outcome:
    """The texts for the members, in order; ``is_new`` is False where they had been claimed before."""

    answers: tuple[str, ...]
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
    for attempt in range(ATTEMPTS):
        try:
            return _claimed(database, members, digest, gates)
        except _Overtaken:
            continue
        except _Lost as lost:
            if _is_final(database, members, lost, attempt):
                raise _refusal(database, members) from None
    raise ConcurrentUpdate("Other claims were faster each time; try again.")


def _is_final(database: Database, members: Sequence[ClaimMember], lost: _Lost, attempt: int) -> bool:
    """Tell whether it is of no use to try again: in one snapshot there is nothing."""
    if not lost.contended and (len(members) > 1 or attempt + 1 >= TRIES_IN_A_TREE):
        # What is proposed does not keep to the unit rules of an inventory.
        return True
    return len(members) == 1 and not _fits_now(database, members[0])


def _refusal(database: Database, members: Sequence[ClaimMember]) -> NoCandidate:
    if len(members) > 1:
        together = f"No place was found for all {len(members)} members together, so none of them was allocated."
        return NoCandidate(together)
    request = members[0].request
    if request.paths:
        return NoCandidate(
            "In no provider tree is there room for the groups as they are nested; nothing was allocated."
        )
    explained = explanation_now(database, request.plain)
    return NoCandidate(f"Nothing was allocated: {why_not(explained)}", explained)


@reads
def _fits_now(tx: Transaction, member: ClaimMember) -> bool:
    """Tell whether there is any candidate, in one snapshot."""
    planning = Planning(tx, member.request, member.options)
    return next(planning.proposals(), None) is not None or not planning.complete


@writes
def _claimed(tx: Transaction, members: Sequence[ClaimMember], digest: str, gates: Collection[Gate]) -> Outcome:
    pass_write_gate(tx.connection)
    if (known := _known(tx, members, digest)) is not None:
        return Outcome(known, is_new=False)
    for gate in gates:
        gate(tx, members)
    claimed: dict[str, Claimed] = {}
    # What is hard to place comes first; who waits for room must not find it crumbled.
    for member in sorted(members, key=_size, reverse=True):
        claimed[member.consumer.consumer_uuid] = _Placing(tx, member).place()
    answers = {uuid: written(one) for uuid, one in claimed.items()}
    remember_claims(
        tx, [RememberedClaim(uuid, digest, FIRST_GENERATION, text) for uuid, text in sorted(answers.items())]
    )
    sweep_now_and_then(tx)
    return Outcome(tuple([answers[member.consumer.consumer_uuid] for member in members]), is_new=True)


def _size(member: ClaimMember) -> int:
    return sum(member.request.requested.values()) + sum(member.request.paths.values())


def _known(tx: Transaction, members: Sequence[ClaimMember], digest: str) -> tuple[str, ...] | None:
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
                f"consumer generation conflict - consumer {uuid} is at generation {seen}, and not by this claim"
            )
    return tuple([remembered[uuid].answer for uuid in uuids])


def _check_generations(members: Sequence[ClaimMember]) -> None:
    for member in members:
        if member.consumer.consumer_generation is not None:
            expected = member.consumer.consumer_generation
            raise ConcurrentUpdate(f"consumer generation conflict - expected null but got {expected}")


class _Placing:
    """Finds a place for one member and allocates it, inside one unit of work."""

    def __init__(self, tx: Transaction, member: ClaimMember) -> None:
        self._tx = tx
        self._member = member
        self._planning = Planning(tx, member.request, member.options)

    def place(self) -> Claimed:
        """Allocate the best that is there.

        Raises:
            _Lost: nothing was found.
        """
        busy = []
        for root in self._planning.roots():
            if not lock_if_free(self._tx, root):
                busy.append(root)
            elif (found := self._in_tree(root)) is not None:
                return found
        if busy:
            # Everything else is full: wait for one of those that others are planning in. Not all for the same one.
            root = random.choice(busy)  # noqa: S311 - spreads load, keeps no secret
            lock_providers(self._tx, [root])
            if (found := self._in_tree(root)) is not None:
                return found
        raise _Lost(contended=bool(busy))

    def _in_tree(self, root: int) -> Claimed | None:
        """Allocate the best in a tree that is locked, None if nothing fits there any more."""
        for _try in range(TRIES_IN_A_TREE):
            proposals = list(islice(self._planning.proposals(only=root), 1))
            if not proposals:
                return None
            try:
                return self._allocated(proposals[0])
            except DoesNotFit:
                continue
        return None

    def _allocated(self, proposal: Proposal) -> Claimed:
        """Allocate a proposal.

        Raises:
            DoesNotFit: a plain writer was faster; nothing has been written.
            _Overtaken: somebody else has made the consumer.
        """
        members = self._planning.summaries.members
        allocations = {members[provider].uuid: amounts for provider, amounts in proposal.amounts.items()}
        wanted = replace(self._member.consumer, allocations=allocations)
        alone = self._planning.inside([lock.provider for lock in proposal.locks])
        situation = claiming.meet(self._tx, [wanted], alone)
        if situation.consumers:
            raise _Overtaken
        claiming.check([wanted], situation)
        supplies = claiming.supplies(self._tx, situation)
        for place, supply in supplies.items():
            if place[0] in alone and supply.used:
                raise DoesNotFit(place, "'{1}' of resource provider '{0}' is in use.")
        check_fit(wanted.portions(), supplies, {})
        claiming.carry_out(self._tx, [wanted], situation, supplies)
        mappings = {
            suffix: tuple([members[provider].uuid for provider in providers])
            for suffix, providers in proposal.mappings.items()
        }
        return Claimed(wanted, mappings)
