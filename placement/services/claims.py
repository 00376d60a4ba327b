"""Carrying out claims inside a unit of work: the one way in which allocations are written.

Everything a set of claims may change is locked before anything is read that decides about it, so claims are exact
under any load and never conflict by accident: claims on one provider wait for each other.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from placement.domain.allocation import Claim, Place
from placement.domain.capacity import Supply, check_fit
from placement.domain.place_lock import PlaceLock
from placement.errors import ConcurrentUpdate, Invalid
from placement.store import allocations as store
from placement.store.allocations import HeldRow
from placement.store.connection.chunks import MOST_PARAMETERS
from placement.store.connection.unit_of_work import Transaction
from placement.store.consumers import (
    Consumer,
    ConsumerOwner,
    advance_consumers,
    delete_consumers,
    insert_consumers,
    lock_consumers,
)
from placement.store.kept_usage.write_gate import pass_write_gate
from placement.store.locks import UsedLocks
from placement.store.owners import owner_ids
from placement.store.providers import LockedProvider, lock_providers, lock_providers_by_uuid, providers_by_uuid


@dataclass(frozen=True)
class Situation:
    """What a set of claims meets, locked.

    Args:
        owners: the owner to be of each consumer that is to hold something.
        consumers: the consumers that exist, by uuid.
        held: what they hold.
        providers: the providers that the claims name and that exist, by uuid.
        class_ids: the ids of the resource classes that the claims name and that exist.
    """

    owners: dict[str, ConsumerOwner]
    consumers: dict[str, Consumer]
    held: list[HeldRow]
    providers: dict[str, LockedProvider]
    class_ids: dict[str, int]

    @cached_property
    def freed(self) -> Counter[Place]:
        """What the consumers hold now of the providers and classes that the claims name."""
        uuids = {provider.id: provider.uuid for provider in self.providers.values()}
        names = {id_: name for name, id_ in self.class_ids.items()}
        freed: Counter[Place] = Counter()
        for held in self.held:
            if held.provider_id in uuids and held.class_id in names:
                freed[uuids[held.provider_id], names[held.class_id]] += held.used
        return freed

    @cached_property
    def generations(self) -> dict[str, int]:
        """The generations of the consumers that hold something; one that holds nothing is as good as none."""
        holders = {held.consumer_uuid for held in self.held}
        return {uuid: consumer.generation for uuid, consumer in self.consumers.items() if uuid in holders}


def meet(tx: Transaction, claims: Sequence[Claim], provider_uuids: Iterable[str] = ()) -> Situation:
    """Lock everything that claims may change, and ``provider_uuids`` besides, and return what is there."""
    pass_write_gate(tx.connection)
    owners = _owners(tx, [claim for claim in claims if claim.allocations])
    consumer_uuids = [claim.consumer_uuid for claim in claims]
    consumers = lock_consumers(tx, consumer_uuids)
    # Whoever holds something has a row of consumers.
    held = store.held_by(tx, consumers)
    named = {*provider_uuids, *(uuid for claim in claims for uuid in claim.allocations)}
    providers = _locked(tx, named, {row.provider_id for row in held})
    class_ids = tx.names.classes.ids(tx.connection, {name for claim in claims for (_, name), _ in claim.portions()})
    return Situation(owners, consumers, held, providers, class_ids)


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


def _locked(tx: Transaction, named: Collection[str], others: Collection[int]) -> dict[str, LockedProvider]:
    if not others and len(named) <= MOST_PARAMETERS:
        # One statement orders them by id and locks them; several would each begin again.
        return lock_providers_by_uuid(tx, named)
    ids = {uuid: provider.id for uuid, provider in providers_by_uuid(tx, named).items()}
    generations = lock_providers(tx, {*ids.values(), *others})
    return {uuid: LockedProvider(id_, uuid, generations[id_]) for uuid, id_ in ids.items() if id_ in generations}


def check(claims: Sequence[Claim], situation: Situation) -> None:
    """Refuse claims whose client knows an older state, and those that name what does not exist.

    Raises:
        ConcurrentUpdate: a consumer is at another generation. nova looks for the sentence.
        Invalid: there is no such provider or resource class.
    """
    for claim in claims:
        _check_generation(claim, situation.generations.get(claim.consumer_uuid))
    for claim in claims:
        # Not by the difference of both: that looks at all providers of all claims, for each of them.
        for uuid in [one for one in claim.allocations if one not in situation.providers]:
            raise Invalid(f"Allocation for resource provider '{uuid}' that does not exist.")
    for claim in claims:
        for (_, name), _ in claim.portions():
            if name not in situation.class_ids:
                raise Invalid(
                    f"Unable to allocate inventory for consumer {claim.consumer_uuid}: No such resource class {name}."
                )


def _check_generation(claim: Claim, actual: int | None) -> None:
    if claim.checks_generation and claim.consumer_generation != actual:
        expected = "null" if actual is None else actual
        raise ConcurrentUpdate(
            f"consumer generation conflict - expected {expected} but got {claim.consumer_generation}"
        )


def supplies(tx: Transaction, situation: Situation) -> dict[Place, Supply]:
    """Return the inventories of the providers of a situation, with their usage before any claim."""
    return supplies_and_locks(tx, situation, ())[0]


def supplies_and_locks(
    tx: Transaction, situation: Situation, locks: Sequence[PlaceLock]
) -> tuple[dict[Place, Supply], UsedLocks]:
    """Return the same, and which of some locks there are in the cloud."""
    uuids = {provider.id: provider.uuid for provider in situation.providers.values()}
    found, used = store.supplies_with_locks(tx, uuids, locks)
    names = tx.names.classes.names(tx.connection, {class_id for _, class_id in found})
    return {(uuids[provider], names[class_id]): supply for (provider, class_id), supply in found.items()}, used


def carry_out(tx: Transaction, claims: Sequence[Claim], situation: Situation, supplies: Mapping[Place, Supply]) -> None:
    """Replace what the consumers hold by what they claim, and move the generations of all concerned on.

    Raises:
        DoesNotFit: the supplies do not allow it.
    """
    if new := {uuid: owner for uuid, owner in situation.owners.items() if uuid not in situation.consumers}:
        # Before anything else is refused: of many that make one consumer, all but one are to learn just that.
        insert_consumers(tx, new)
    check_fit([portion for claim in claims for portion in claim.portions()], supplies, situation.freed)
    _replace(tx, claims, situation)
    store.advance_providers(tx, _touched(claims, situation))
    _settle_consumers(tx, situation)


def _replace(tx: Transaction, claims: Sequence[Claim], situation: Situation) -> None:
    if situation.held:
        store.delete_allocations(tx, {held.consumer_uuid for held in situation.held})
    rows = [
        HeldRow(claim.consumer_uuid, situation.providers[provider_uuid].id, situation.class_ids[name], amount)
        for claim in claims
        for (provider_uuid, name), amount in claim.portions()
    ]
    if rows:
        store.insert_allocations(tx, rows)


def _touched(claims: Sequence[Claim], situation: Situation) -> set[int]:
    """Return the providers whose generation moves: those named, and those of consumers that give up everything.

    A provider that a consumer merely moves away from stays at its generation, as in the reference.
    """
    cleared = {claim.consumer_uuid for claim in claims if not claim.allocations}
    named = {situation.providers[uuid].id for claim in claims for uuid in claim.allocations}
    return named | {held.provider_id for held in situation.held if held.consumer_uuid in cleared}


def _settle_consumers(tx: Transaction, situation: Situation) -> None:
    kept = [consumer for uuid, consumer in situation.consumers.items() if uuid in situation.owners]
    if kept:
        advance_consumers(tx, [(consumer, _owner_of(consumer, situation)) for consumer in kept])
    if gone := [consumer.id for uuid, consumer in situation.consumers.items() if uuid not in situation.owners]:
        delete_consumers(tx, gone)


def _owner_of(consumer: Consumer, situation: Situation) -> ConsumerOwner:
    """Return the owner a consumer is to have; a client that names no type leaves it as it is."""
    wanted = situation.owners[consumer.uuid]
    return wanted if wanted.type_id is not None else replace(wanted, type_id=consumer.owner.type_id)
