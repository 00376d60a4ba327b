"""Close exclusively held places to plain allocations: ``[planner] exclusive_for_all``.

Whoever takes a place exclusively locks all providers below it, and plain allocations lock those they take from. This
check runs in the writing transaction, so it sees whoever came first.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from placement.domain.allocation import Claim
from placement.domain.places import Parents, upwards
from placement.errors import Conflict
from placement.services.claims import Situation
from placement.store.allocations import StockKey
from placement.store.connection.unit_of_work import Transaction
from placement.store.locks import ExclusivePlace, UsedLocks, held_around
from placement.store.search.names import named_providers, parents_in


class HeldExclusively(Conflict):
    """A consumer takes something inside of a place that another one holds exclusively."""

    code = "placement.held_exclusively"


def refuse_held_places(tx: Transaction, claims: Sequence[Claim], situation: Situation, *, locks: UsedLocks) -> None:
    """Refuse claims, already carried out, that take from places that others hold exclusively.

    A consumer that was in such a place before it was held, and does not hold it, may keep what it has there, move it
    within the place, and pass it on to other consumers among the claims; only taking more is refused.

    Args:
        tx: the transaction, which has locked the providers.
        claims: the claims.
        situation: the state that they met.
        locks: the locks in use.

    Raises:
        HeldExclusively: with the place's name.
    """
    ids = {uuid: situation.providers[uuid].id for claim in claims for uuid in claim.allocations}
    held = held_around(tx, locks, [*ids.values()]) if locks and ids else []
    if not held:
        return
    parents = parents_in(tx, {place.root for place in held})
    before: dict[str, dict[StockKey, int]] = defaultdict(dict)
    for row in situation.held:
        before[row.consumer_uuid][row.provider_id, row.class_id] = row.used
    changes = [
        _Change(
            claim,
            {(ids[uuid], situation.class_ids[name]): amount for (uuid, name), amount in claim.portions()},
            before[claim.consumer_uuid],
        )
        for claim in claims
    ]
    for place in held:
        outsiders = [one for one in changes if not one.holds(place)]
        if taking := _first_that_takes_more(outsiders, place, parents):
            raise _refusal(tx, taking.claim, place)


class _Change(NamedTuple):
    """What a consumer holds after its claim, and what it held before."""

    claim: Claim
    now: Mapping[StockKey, int]
    before: Mapping[StockKey, int]

    def holds(self, place: ExclusivePlace) -> bool:
        """Tell whether the consumer is one of those that hold a place."""
        return place.used - self.now.get(place.lock, 0) < place.capacity

    def gave_away(self, place: ExclusivePlace) -> bool:
        """Tell whether the consumer has given up its lock of a place, or a part of it."""
        return self.now.get(place.lock, 0) < self.before.get(place.lock, 0)


def _first_that_takes_more(outsiders: Sequence[_Change], place: ExclusivePlace, parents: Parents) -> _Change | None:
    """Return the first that has more in a place than before, if all of them together have more."""
    now, before = Counter[int](), Counter[int]()
    first = None
    for one in outsiders:
        mine = _inside(one.now, place, parents)
        mine_before = Counter[int]() if one.gave_away(place) else _inside(one.before, place, parents)
        now, before = now + mine, before + mine_before
        first = first or (one if mine - mine_before else None)
    return first if now - before else None


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
