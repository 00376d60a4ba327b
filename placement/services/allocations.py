"""Use cases of allocations."""

from collections.abc import Sequence
from contextlib import nullcontext

from placement.domain.allocation import Claim, ConsumerAllocations, ConsumerShare, ProviderAllocations, ProviderShare
from placement.domain.places import PlaceLock
from placement.errors import NotFound, ProviderNotFound
from placement.services import claims as claiming
from placement.services.claims import refuse_held_places
from placement.services.fair_share.gate import PlainGate
from placement.store import allocations as store
from placement.store.connection.database import Transaction, reads_once, writes
from placement.store.consumers import delete_consumers, lock_consumers
from placement.store.locks import pass_write_gate
from placement.store.providers import lock_providers


@reads_once
def consumer_allocations(tx: Transaction, consumer_uuid: str) -> ConsumerAllocations | None:
    """Return what a consumer holds, or None if it holds nothing."""
    rows = store.allocations_of_consumer(tx, consumer_uuid)
    if not rows:
        return None
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
    shares: dict[str, ProviderShare] = {}
    for row in rows:
        share = shares.setdefault(row.provider_uuid, ProviderShare(row.provider_generation, {}))
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
    shares: dict[str, ConsumerShare] = {}
    for row in rows:
        if row.consumer_uuid is not None:
            share = shares.setdefault(row.consumer_uuid, ConsumerShare(row.consumer_generation, {}))
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
