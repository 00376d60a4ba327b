"""Use cases of allocations: who holds what, replacing that, also together with the inventories it is taken from."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from placement.domain.inventory import (
    Claim,
    ConsumerAllocations,
    Inventory,
    ProviderAllocations,
    Share,
    StockName,
    Supply,
)
from placement.domain.tree import PlaceLock
from placement.errors import ConcurrentUpdate, Invalid, NotFound, ProviderNotFound
from placement.services import claims as claiming
from placement.services.claims import Situation, refuse_held_places
from placement.services.fair_share.gate import PlainGate
from placement.services.inventories import put_inventories
from placement.store import allocations as store
from placement.store.connection.database import Transaction, reads_once, writes
from placement.store.consumers import delete_consumers, lock_consumers
from placement.store.locks import pass_write_gate
from placement.store.names import locks_known
from placement.store.providers import lock_providers
from placement.store.resource_classes import claimed_class_ids


@reads_once
def consumer_allocations(tx: Transaction, consumer_uuid: str) -> ConsumerAllocations | None:
    """Return what a consumer holds, or None if it holds nothing."""
    rows = store.allocations_of_consumer(tx, consumer_uuid)
    if not rows:
        return None
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
    shares: dict[str, Share] = {}
    for row in rows:
        share = shares.setdefault(row.provider_uuid, Share(row.provider_generation, {}))
        share.resources[names[row.class_id]] = row.used
    return ConsumerAllocations(
        shares=shares,
        project_id=rows[0].project_id,
        user_id=rows[0].user_id,
        consumer_generation=rows[0].consumer_generation,
        consumer_type=rows[0].consumer_type,
        modified=max((row.modified for row in rows if row.modified), default=None),
    )


@reads_once
def provider_allocations(tx: Transaction, provider_uuid: str) -> ProviderAllocations:
    """Return the allocations from a provider."""
    rows = store.allocations_of_provider(tx, provider_uuid)
    if not rows:
        raise ProviderNotFound(provider_uuid)
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows if row.consumer_uuid is not None})
    shares: dict[str, Share] = {}
    for row in rows:
        if row.consumer_uuid is not None:
            share = shares.setdefault(row.consumer_uuid, Share(row.consumer_generation, {}))
            share.resources[names[row.class_id]] = row.used
    modified = max((row.modified for row in rows if row.modified and row.consumer_uuid is not None), default=None)
    return ProviderAllocations(rows[0].provider_generation, shares, modified)


@writes
def replace_allocations(
    tx: Transaction, claims: Sequence[Claim], gate: PlainGate | None = None, *, locks: Sequence[PlaceLock] = ()
) -> None:
    """Make each consumer hold exactly what it claims: all of them or none, and only if the gate finds that fair.

    ``locks`` are the locks of places: nobody takes from a place that another consumer holds exclusively.
    """
    situation = claiming.meet(tx, claims)
    claiming.check(claims, situation)
    with nullcontext() if gate is None else gate.watching(tx, [claim.consumer_uuid for claim in claims]):
        supplies, used = claiming.supplies_and_locks(tx, situation, locks)
        claiming.carry_out(tx, claims, situation, supplies)
        refuse_held_places(tx, claims, situation, locks=used)


@writes
def delete_allocations(tx: Transaction, consumer_uuid: str) -> None:
    """Delete a consumer's allocations. As in the reference, the providers' generations stay the same."""
    pass_write_gate(tx.connection)
    consumers = lock_consumers(tx, [consumer_uuid])
    held = store.held_by(tx, consumers)
    if not held:
        raise NotFound(f"No allocations for consumer '{consumer_uuid}'")
    lock_providers(tx, {row.provider_id for row in held})
    store.delete_allocations(tx, consumers)
    delete_consumers(tx, [consumer.id for consumer in consumers.values()])


@dataclass(frozen=True, slots=True)
class ReshapedInventories:
    """A provider's future inventories by class name, and the generation that the client has seen."""

    generation: int
    inventories: Mapping[str, Inventory]


@writes
def reshape(
    tx: Transaction,
    reshaped: Mapping[str, ReshapedInventories],
    claims: Sequence[Claim],
    *,
    locks: Sequence[PlaceLock] = (),
) -> None:
    """Replace the inventories of providers and the allocations of consumers, all or nothing.

    Claims are checked against the final inventories and ``locks``; what stays allocated keeps its inventory.
    """
    situation = claiming.meet(tx, claims, reshaped)
    for provider_uuid, new in reshaped.items():
        _check_provider(provider_uuid, new, situation)
    claiming.check(claims, situation)
    class_ids = _class_ids(tx, reshaped)
    supplies, _used = claiming.supplies_and_locks(tx, situation)
    claiming.carry_out(tx, claims, situation, _final(supplies, reshaped))
    for provider_uuid, new in reshaped.items():
        provider = situation.providers[provider_uuid]
        put_inventories(tx, provider, {class_ids[name]: inventory for name, inventory in new.inventories.items()})
        # The reference replaces inventories in two steps, and clients expect both increments of the generation.
        store.advance_providers(tx, [provider.id], steps=2 if new.inventories else 1)
    # Last, and by name: the new inventories may have created, enlarged or moved locks.
    refuse_held_places(tx, claims, situation, locks=locks_known(tx.names, tx.connection, locks))


def _check_provider(provider_uuid: str, new: ReshapedInventories, situation: Situation) -> None:
    provider = situation.providers.get(provider_uuid)
    if provider is None:
        raise Invalid(
            f"Resource provider {provider_uuid} in inventories not found: "
            f"No resource provider with uuid {provider_uuid} found",
            code="placement.resource_provider.not_found",
        )
    if provider.generation != new.generation:
        raise ConcurrentUpdate(
            f"resource provider generation conflict for provider {provider_uuid}: "
            f"actual: {provider.generation}, given: {new.generation}"
        )


def _class_ids(tx: Transaction, reshaped: Mapping[str, ReshapedInventories]) -> dict[str, int]:
    names = {name for new in reshaped.values() for name in new.inventories}
    ids = claimed_class_ids(tx, names)
    if unknown := sorted(names - ids.keys()):
        raise Invalid(f"malformed reshaper data: No such resource class {unknown[0]}.")
    return ids


def _final(
    supplies: Mapping[StockName, Supply], reshaped: Mapping[str, ReshapedInventories]
) -> dict[StockName, Supply]:
    """Return the final supplies. Dropped inventories are still included; their remaining usage is checked later."""
    final = dict(supplies)
    for provider_uuid, new in reshaped.items():
        for name, inventory in new.inventories.items():
            before = supplies.get((provider_uuid, name))
            final[provider_uuid, name] = Supply(inventory, before.used if before else 0)
    return final
