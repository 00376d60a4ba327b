"""The use case of moving inventories between providers together with what is allocated of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.domain.allocation import Claim, Place
from placement.domain.capacity import Supply
from placement.domain.inventory import Inventory
from placement.domain.place_lock import PlaceLock
from placement.errors import ConcurrentUpdate, Invalid, InventoryInUse
from placement.services import claims as claiming
from placement.services.claims import Situation
from placement.services.held_places import refuse_held_places
from placement.store import inventories as store
from placement.store.allocations import advance_providers
from placement.store.connection.unit_of_work import Transaction, writes
from placement.store.locks import locks_known
from placement.store.providers import LockedProvider
from placement.store.resource_classes import claimed_class_ids


@dataclass(frozen=True, slots=True)
class ReshapedInventories:
    """What a provider is to have from now on, by name of the class, and the generation the client knows."""

    generation: int
    inventories: Mapping[str, Inventory]


@writes
def reshape(
    tx: Transaction,
    wanted: Mapping[str, ReshapedInventories],
    claims: Sequence[Claim],
    *,
    locks: Sequence[PlaceLock] = (),
) -> None:
    """Replace the inventories of providers and the allocations of consumers, all or nothing.

    Claims are judged by the final picture. An inventory may only go when the claims leave nothing of it allocated.
    ``locks`` are what places have as locks: nobody takes more from a place of which another one holds all of it.
    """
    situation = claiming.meet(tx, claims, wanted)
    for provider_uuid, new in wanted.items():
        _check_provider(provider_uuid, new, situation)
    claiming.check(claims, situation)
    class_ids = _class_ids(tx, wanted)
    supplies = claiming.supplies(tx, situation)
    claiming.carry_out(tx, claims, situation, _final(supplies, wanted))
    for provider_uuid, new in wanted.items():
        provider = situation.providers[provider_uuid]
        _replace(tx, provider, {class_ids[name]: inventory for name, inventory in new.inventories.items()})
    # Last, and by name: a lock may have come, grown or moved with the inventories.
    refuse_held_places(tx, claims, situation, locks=locks_known(tx, locks))


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


def _class_ids(tx: Transaction, wanted: Mapping[str, ReshapedInventories]) -> dict[str, int]:
    names = {name for new in wanted.values() for name in new.inventories}
    ids = claimed_class_ids(tx, names)
    if unknown := sorted(names - ids.keys()):
        raise Invalid(f"malformed reshaper data: No such resource class {unknown[0]}.")
    return ids


def _final(supplies: Mapping[Place, Supply], wanted: Mapping[str, ReshapedInventories]) -> dict[Place, Supply]:
    """Return the supplies as they will be. Those that go are still there: what is left of them is looked at later."""
    final = dict(supplies)
    for provider_uuid, new in wanted.items():
        for name, inventory in new.inventories.items():
            before = supplies.get((provider_uuid, name))
            final[provider_uuid, name] = Supply(inventory, before.used if before else 0)
    return final


def _replace(tx: Transaction, provider: LockedProvider, inventories: Mapping[int, Inventory]) -> None:
    present = store.inventories_by_class(tx, provider.id)
    if used := store.classes_in_use(tx, provider.id, present.keys() - inventories.keys()):
        raise InventoryInUse(
            f"update conflict: Inventory for '{', '.join(used)}' on resource provider '{provider.uuid}' in use."
        )
    store.replace_inventories(tx, provider.id, inventories, present=present)
    # The reference replaces inventories twice, first by what was and will be; clients know the sum of its steps.
    advance_providers(tx, [provider.id], steps=2 if inventories else 1)
