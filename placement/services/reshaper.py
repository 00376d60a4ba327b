"""The use case of moving inventories between providers together with their allocations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.domain.allocation import Claim, StockName
from placement.domain.inventory import Inventory, Supply
from placement.domain.places import PlaceLock
from placement.errors import ConcurrentUpdate, Invalid, InventoryInUse
from placement.services import claims as claiming
from placement.services.claims import Situation, refuse_held_places
from placement.store import inventories as store
from placement.store.allocations import advance_providers
from placement.store.connection.database import Transaction, writes
from placement.store.locks import locks_known
from placement.store.providers import LockedProvider
from placement.store.resource_classes import claimed_class_ids


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

    Claims are checked against the final inventories; one may only be dropped if nothing stays allocated from it. Nobody
    takes more from a place that another consumer holds exclusively, as ``locks`` say.
    """
    situation = claiming.meet(tx, claims, reshaped)
    for provider_uuid, new in reshaped.items():
        _check_provider(provider_uuid, new, situation)
    claiming.check(claims, situation)
    class_ids = _class_ids(tx, reshaped)
    supplies = claiming.supplies(tx, situation)
    claiming.carry_out(tx, claims, situation, _final(supplies, reshaped))
    for provider_uuid, new in reshaped.items():
        provider = situation.providers[provider_uuid]
        _replace(tx, provider, {class_ids[name]: inventory for name, inventory in new.inventories.items()})
    # Last, and by name: the new inventories may have created, enlarged or moved locks.
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


def _replace(tx: Transaction, provider: LockedProvider, inventories: Mapping[int, Inventory]) -> None:
    present = store.inventories_by_class(tx, provider.id)
    if used := store.classes_in_use(tx, provider.id, present.keys() - inventories.keys()):
        raise InventoryInUse(
            f"update conflict: Inventory for '{', '.join(used)}' on resource provider '{provider.uuid}' in use."
        )
    store.replace_inventories(tx, provider.id, inventories, present=present)
    # The reference replaces inventories in two steps, and clients expect both increments of the generation.
    advance_providers(tx, [provider.id], steps=2 if inventories else 1)
