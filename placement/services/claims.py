"""Carry out claims within a unit of work: the only way in which allocations are written.

Everything that claims may change is locked before anything is read that decides about them, so claims are exact under
any load and never conflict by accident: claims on the same provider wait for each other. With ``[planner]
exclusive_for_all``, places that others hold exclusively are closed to plain allocations; whoever takes such a place
locks all providers below it, so this check in the writing transaction sees whoever came first.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from placement.domain.inventory import Claim, StockName, Supply, check_fit
from placement.domain.tree import Parents, PlaceLock, upwards
from placement.errors import ConcurrentUpdate, Conflict, Invalid
from placement.store import allocations as store
from placement.store.allocations import HeldKey, HeldRow, StockKey
from placement.store.connection.database import Transaction
from placement.store.connection.statements import MAX_PARAMETERS
from placement.store.consumers import (
    Consumer,
    ConsumerOwner,
    advance_consumers,
    delete_consumers,
    insert_consumers,
    lock_consumers,
    owner_ids,
)
from placement.store.locks import ExclusivePlace, held_around, pass_write_gate
from placement.store.names import UsedLocks
from placement.store.providers import LockedProvider, lock_providers, lock_providers_by_uuid, providers_by_uuid
from placement.store.search.names import named_providers, parents_in


@dataclass(frozen=True)
class Situation:
    """The locked state that a set of claims meets: consumers and providers by uuid, the ids of classes, all that exist.

    ``owners`` are the future ones of consumers that will hold something, ``held`` is what consumers hold now, of
    classes with the names ``held_classes``.
    """

    owners: dict[str, ConsumerOwner]
    consumers: dict[str, Consumer]
    held: list[HeldRow]
    held_classes: Mapping[int, str]
    providers: dict[str, LockedProvider]
    class_ids: dict[str, int]

    @cached_property
    def freed(self) -> Counter[StockName]:
        """What the consumers currently hold of the providers named in the claims."""
        uuids = {provider.id: provider.uuid for provider in self.providers.values()}
        freed: Counter[StockName] = Counter()
        for held in self.held:
            if held.provider_id in uuids:
                freed[uuids[held.provider_id], self.held_classes[held.class_id]] += held.used
        return freed

    @cached_property
    def generations(self) -> dict[str, int]:
        """The generations of consumers with allocations; one without any counts as nonexistent."""
        holders = {held.consumer_uuid for held in self.held}
        return {uuid: consumer.generation for uuid, consumer in self.consumers.items() if uuid in holders}


def meet(tx: Transaction, claims: Sequence[Claim], provider_uuids: Iterable[str] = ()) -> Situation:
    """Lock everything that claims may change, plus ``provider_uuids``, and return its state."""
    pass_write_gate(tx.connection)
    owners = _owners(tx, [claim for claim in claims if claim.allocations])
    consumer_uuids = [claim.consumer_uuid for claim in claims]
    consumers = lock_consumers(tx, consumer_uuids)
    # Every consumer with allocations has a row, so locking the rows freezes the allocations.
    held = store.held_by(tx, consumers)
    named = {*provider_uuids, *(uuid for claim in claims for uuid in claim.allocations)}
    extra_ids = {row.provider_id for row in held}
    if extra_ids or len(named) > MAX_PARAMETERS:
        ids = {uuid: provider.id for uuid, provider in providers_by_uuid(tx, named).items()}
        generations = lock_providers(tx, {*ids.values(), *extra_ids})
        locked = [LockedProvider(id_, uuid, generations[id_]) for uuid, id_ in ids.items() if id_ in generations]
        providers = {provider.uuid: provider for provider in locked}
    else:  # A single statement sorts by id and locks; several would each start again from the lowest id.
        providers = lock_providers_by_uuid(tx, named)
    class_ids = tx.names.classes.ids(tx.connection, {name for claim in claims for (_, name), _ in claim.portions()})
    held_classes = {id_: name for name, id_ in class_ids.items()}
    if unnamed := {row.class_id for row in held} - held_classes.keys():
        held_classes |= tx.names.classes.names(tx.connection, unnamed)
    return Situation(owners, consumers, held, held_classes, providers, class_ids)


def _owners(tx: Transaction, claims: Collection[Claim]) -> dict[str, ConsumerOwner]:
    if not claims:
        return {}
    types = [claim.consumer_type for claim in claims if claim.consumer_type is not None]
    ids = owner_ids(tx, (claim.project_id for claim in claims), (claim.user_id for claim in claims), types)
    return {
        claim.consumer_uuid: ConsumerOwner(
            ids.projects[claim.project_id],
            ids.users[claim.user_id],
            None if claim.consumer_type is None else ids.types[claim.consumer_type],
        )
        for claim in claims
    }


def check(claims: Sequence[Claim], situation: Situation) -> None:
    """Refuse claims on an outdated state (ConcurrentUpdate, which nova matches), or unknown names (Invalid)."""
    for claim in claims:
        actual = situation.generations.get(claim.consumer_uuid)
        if claim.checks_generation and claim.consumer_generation != actual:
            expected = "null" if actual is None else actual
            raise ConcurrentUpdate(
                f"consumer generation conflict - expected {expected} but got {claim.consumer_generation}"
            )
    for claim in claims:
        # Not a set difference, which would go over the providers of all claims once for each claim.
        for uuid in [uuid for uuid in claim.allocations if uuid not in situation.providers]:
            raise Invalid(f"Allocation for resource provider '{uuid}' that does not exist.")
    for claim in claims:
        for (_, name), _ in claim.portions():
            if name not in situation.class_ids:
                raise Invalid(
                    f"Unable to allocate inventory for consumer {claim.consumer_uuid}: No such resource class {name}."
                )


def supplies_and_locks(
    tx: Transaction, situation: Situation, locks: Sequence[PlaceLock] = ()
) -> tuple[dict[StockName, Supply], UsedLocks]:
    """Return the inventories of a situation's providers, with their usage before any claim.

    Beside them is which of some locks are in use anywhere in the cloud.
    """
    uuids = {provider.id: provider.uuid for provider in situation.providers.values()}
    stocks, used = store.supplies_with_locks(tx, uuids, locks)
    names = {class_id: name for name, class_id in situation.class_ids.items()}
    names |= tx.names.classes.names(tx.connection, {class_id for _, class_id in stocks} - names.keys())
    return {(uuids[provider], names[class_id]): supply for (provider, class_id), supply in stocks.items()}, used


def carry_out(
    tx: Transaction, claims: Sequence[Claim], situation: Situation, supplies: Mapping[StockName, Supply]
) -> None:
    """Replace what consumers hold by what they claim, and increment all generations; DoesNotFit if supplies forbid."""
    if new := {uuid: owner for uuid, owner in situation.owners.items() if uuid not in situation.consumers}:
        # Before the fit is checked: of several that create the same consumer, all but one have to fail because of that.
        insert_consumers(tx, new)
    check_fit([portion for claim in claims for portion in claim.portions()], supplies, situation.freed)
    amounts = {
        HeldKey(claim.consumer_uuid, situation.providers[uuid].id, situation.class_ids[name]): amount
        for claim in claims
        for (uuid, name), amount in claim.portions()
    }
    store.replace_allocations(tx, situation.held, amounts)
    store.advance_providers(tx, _touched(claims, situation))
    owners = [(held, situation.owners[uuid]) for uuid, held in situation.consumers.items() if uuid in situation.owners]
    if owners:  # A claim without a consumer type leaves the type as it is.
        types = [held.owner.type_id if owner.type_id is None else owner.type_id for held, owner in owners]
        kept = zip(owners, types, strict=True)
        advance_consumers(tx, [(held, replace(owner, type_id=type_id)) for (held, owner), type_id in kept])
    if gone := [consumer.id for uuid, consumer in situation.consumers.items() if uuid not in situation.owners]:
        delete_consumers(tx, gone)


def _touched(claims: Sequence[Claim], situation: Situation) -> set[int]:
    """Return whose generation changes: those named, and those of consumers that give up all, as in the reference."""
    cleared = {claim.consumer_uuid for claim in claims if not claim.allocations}
    named = {situation.providers[uuid].id for claim in claims for uuid in claim.allocations}
    return named | {held.provider_id for held in situation.held if held.consumer_uuid in cleared}


class HeldExclusively(Conflict):
    """A consumer takes something inside of a place that another one holds exclusively."""

    code = "placement.held_exclusively"


def refuse_held_places(tx: Transaction, claims: Sequence[Claim], situation: Situation, *, locks: UsedLocks) -> None:
    """Refuse claims, already carried out, that take from places that others hold exclusively: HeldExclusively.

    A consumer that was in such a place before it was held, and does not hold it, may keep what it has there, move it
    within the place, and pass it on to other consumers among the claims; only taking more is refused.
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
        _ConsumerChange(
            claim,
            {(ids[uuid], situation.class_ids[name]): amount for (uuid, name), amount in claim.portions()},
            before[claim.consumer_uuid],
        )
        for claim in claims
    ]
    for place in held:
        outsiders = [change for change in changes if not change.holds(place)]
        if taking := _first_that_takes_more(outsiders, place, parents):
            provider = named_providers(tx, [place.id])[place.id]
            raise HeldExclusively(
                f"Unable to allocate inventory for consumer {taking.claim.consumer_uuid}: resource provider "
                f"{provider.uuid} ({provider.name}) is held exclusively by another consumer."
            )


class _ConsumerChange(NamedTuple):
    claim: Claim
    now: Mapping[StockKey, int]
    before: Mapping[StockKey, int]

    def holds(self, place: ExclusivePlace) -> bool:
        """Tell whether the consumer is one of those that hold a place."""
        return place.used - self.now.get(place.lock, 0) < place.capacity


def _first_that_takes_more(
    outsiders: Sequence[_ConsumerChange], place: ExclusivePlace, parents: Parents
) -> _ConsumerChange | None:
    """Return the first that has more in a place than before, if all of them together have more."""
    now, before = Counter[int](), Counter[int]()
    first = None
    for change in outsiders:
        # Whoever has given up its lock of the place, or a part of it, counts as having had nothing there.
        gave_away = change.now.get(place.lock, 0) < change.before.get(place.lock, 0)
        own, own_before = (
            _inside(change.now, place, parents),
            _inside({} if gave_away else change.before, place, parents),
        )
        now, before = now + own, before + own_before
        first = first or (change if own - own_before else None)
    return first if now - before else None


def _inside(amounts: Mapping[StockKey, int], place: ExclusivePlace, parents: Parents) -> Counter[int]:
    inside: Counter[int] = Counter()
    for (provider, class_id), amount in amounts.items():
        if place.id in upwards(provider, parents):
            inside[class_id] += amount
    return inside
