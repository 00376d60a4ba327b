"""Places that somebody holds exclusively are closed to everybody: what plain allocations are held to.

``[planner] exclusive_for_all``. Who takes a place alone locks all providers below it, and plain allocations lock those
that they take from; so this, which is asked in the transaction that writes, sees whoever was first.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from placement.domain.allocation import Claim
from placement.domain.ancestry import Parents, upwards
from placement.errors import Conflict
from placement.services.claims import Situation
from placement.store.allocations import HeldRow, StockKey
from placement.store.connection.unit_of_work import Transaction
from placement.store.locks import ExclusivePlace, UsedLocks, held_around, parents_in
from placement.store.search.facts import named_providers


class HeldExclusively(Conflict):
    """A consumer takes something inside of a place that another one holds exclusively."""

    code = "placement.held_exclusively"


def refuse_held_places(
    tx: Transaction,
    claims: Sequence[Claim],
    situation: Situation,
    *,
    locks: UsedLocks,
    kept: Sequence[HeldRow] = (),
) -> None:
    """Refuse claims that have been carried out if they take from places that others hold.

    Args:
        tx: the transaction, in which the providers are locked.
        claims: the claims.
        situation: what they met.
        locks: the locks that there are.
        kept: what consumers held before and may keep: who takes nothing more inside of a place, and did not hold it,
            is let be.

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
    before: dict[str, dict[StockKey, int]] = defaultdict(dict)
    for row in kept:
        before[row.consumer_uuid][row.provider_id, row.class_id] = row.used
    for claim in claims:
        own = {(ids[uuid], situation.class_ids[name]): amount for (uuid, name), amount in claim.portions()}
        for uuid in claim.allocations:
            for place in [place for above in upwards(ids[uuid], parents) for place in places[above]]:
                if place.used - own.get((place.id, place.class_id), 0) >= place.capacity and not _stays(
                    own, before[claim.consumer_uuid], place, parents
                ):
                    raise _refusal(tx, claim, place)


def _stays(
    own: Mapping[StockKey, int], before: Mapping[StockKey, int], place: ExclusivePlace, parents: Parents
) -> bool:
    """Tell whether a consumer takes no more inside of a place than before, and has not given it away."""
    lock = (place.id, place.class_id)
    now, then = _inside(own, place, parents), _inside(before, place, parents)
    return own.get(lock, 0) >= before.get(lock, 0) and all(then[name] >= amount for name, amount in now.items())


def _inside(amounts: Mapping[StockKey, int], place: ExclusivePlace, parents: Parents) -> Counter[int]:
    """Return how much of each class lies in a place or below it."""
    inside: Counter[int] = Counter()
    for (provider, class_id), amount in amounts.items():
        if place.id in upwards(provider, parents):
            inside[class_id] += amount
    return inside


def _refusal(tx: Transaction, claim: Claim, place: ExclusivePlace) -> HeldExclusively:
    found = named_providers(tx, [place.id])[place.id]
    return HeldExclusively(
        f"Unable to allocate inventory for consumer {claim.consumer_uuid}: resource provider {found.uuid} "
        f"({found.name}) is held exclusively by another consumer."
    )
