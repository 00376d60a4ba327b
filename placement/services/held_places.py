"""Places that somebody holds exclusively are closed to everybody: what plain allocations are held to.

``[planner] exclusive_for_all``. Who takes a place alone locks all providers below it, and plain allocations lock those
that they take from; so this, which is asked in the transaction that writes, sees whoever was first.
"""

from collections import defaultdict
from collections.abc import Sequence

from placement.domain.allocation import Claim
from placement.domain.ancestry import upwards
from placement.errors import Conflict
from placement.services.claims import Situation
from placement.store.connection.unit_of_work import Transaction
from placement.store.locks import ExclusivePlace, UsedLocks, held_around, parents_in
from placement.store.search.facts import named_providers


class HeldExclusively(Conflict):
    """A consumer takes something inside of a place that another one holds exclusively."""

    code = "placement.held_exclusively"


def refuse_held_places(tx: Transaction, claims: Sequence[Claim], situation: Situation, *, locks: UsedLocks) -> None:
    """Refuse claims that have been carried out if they take from places that others hold.

    Args:
        tx: the transaction, in which the providers are locked.
        claims: the claims.
        situation: what they met.
        locks: the locks that there are.

    Raises:
        HeldExclusively: with the place's name.
    """
    ids = {uuid: situation.providers[uuid].id for claim in claims for uuid in claim.allocations}
    held = held_around(tx, locks, [*ids.values()]) if locks and ids else []
    if not held:
        return
    places: dict[int, list[ExclusivePlace]] = defaultdict(list)
    for place in held:
        places[place.id].append(place)
    parents = parents_in(tx, {place.root for place in held})
    for claim in claims:
        own = {(ids[uuid], situation.class_ids[name]): amount for (uuid, name), amount in claim.portions()}
        for uuid in claim.allocations:
            for place in [place for above in upwards(ids[uuid], parents) for place in places[above]]:
                if place.used - own.get((place.id, place.class_id), 0) >= place.capacity:
                    raise _refusal(tx, claim, place)


def _refusal(tx: Transaction, claim: Claim, place: ExclusivePlace) -> HeldExclusively:
    found = named_providers(tx, [place.id])[place.id]
    return HeldExclusively(
        f"Unable to allocate inventory for consumer {claim.consumer_uuid}: resource provider {found.uuid} "
        f"({found.name}) is held exclusively by another consumer."
    )
