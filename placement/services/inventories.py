"""Use cases of inventories and of what is used of them.

Each write of inventories locks the provider and, if it succeeds, increments its generation.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from placement.domain.inventory import Inventory, ProviderUsage, TypeUsage
from placement.domain.quantities import ResourceAmounts
from placement.errors import ConcurrentUpdate, Invalid, InventoryInUse, NotFound, ProviderNotFound
from placement.store import allocations
from placement.store import inventories as store
from placement.store.connection.database import Transaction, reads, reads_once, writes
from placement.store.providers import LockedProvider, advance_generation, advance_provider, locked_provider
from placement.store.resource_classes import claimed_class_ids


@dataclass(frozen=True, slots=True)
class NewInventories:
    """Inventories to be written, by class name, and whether all of one may be reserved."""

    by_class: Mapping[str, Inventory]
    may_be_all_reserved: bool

    def fault(self, provider_uuid: str) -> str | None:
        """Say what is wrong with the first inventory that leaves nothing to allocate; None if all are fine."""
        for name, inventory in self.by_class.items():
            if inventory.capacity < 0 or (inventory.capacity == 0 and not self.may_be_all_reserved):
                excess = "greater than" if self.may_be_all_reserved else "greater than or equal to"
                return (
                    f"Invalid inventory for '{name}' on resource provider '{provider_uuid}'. "
                    f"The reserved value is {excess} total."
                )
        return None


stock = reads_once(store.stock)


@reads_once
def inventory(tx: Transaction, uuid: str, class_name: str) -> tuple[Inventory, int, datetime | None]:
    """Return a provider's inventory of one class, the provider's generation, and when the inventory was changed."""
    stocked = store.stock(tx, uuid)
    if class_name not in stocked.inventories:
        raise NotFound(f"No inventory of class {class_name} for {uuid}")
    return stocked.inventories[class_name], stocked.generation, stocked.modified[class_name]


@writes
def add_inventory(tx: Transaction, uuid: str, new: NewInventories) -> int:
    """Add inventory of a class that the provider does not have yet; return its new generation."""
    provider = locked_provider(tx, uuid)
    refusal = f"Unable to create inventory for resource provider {uuid}: "
    if fault := new.fault(uuid):
        raise Invalid(refusal + fault)
    added = _by_class_id(tx, new, refusal=refusal)
    if store.class_ids_of(tx, provider.id) & added.keys():
        raise ConcurrentUpdate(f"Update conflict: resource provider {uuid} has inventory of this class already.")
    store.insert_inventories(tx, provider.id, added)
    advance_generation(tx, provider.id, expected=provider.generation)
    return provider.generation + 1


@writes
def change_inventory(tx: Transaction, uuid: str, new: NewInventories, *, generation: int) -> int:
    """Change a provider's inventory of one class; return its new generation."""
    provider = advance_provider(tx, uuid, expected=generation)
    if fault := new.fault(uuid):
        raise Invalid(f"Unable to update inventory for resource provider {uuid}: {fault}")
    ids = claimed_class_ids(tx, new.by_class.keys())
    present = store.class_ids_of(tx, provider.id)
    for name in new.by_class:
        if name not in ids:
            raise NotFound(f"No such resource class {name}.")
        if ids[name] not in present:
            raise Invalid(
                f"No inventory record with resource class for resource provider {uuid}: "
                f"No inventory of class {name} found."
            )
    store.update_inventories(tx, provider.id, {ids[name]: changed for name, changed in new.by_class.items()})
    return provider.generation


@writes
def replace_inventories(tx: Transaction, uuid: str, new: NewInventories, *, generation: int) -> int:
    """Make these exactly the inventories of a provider; return its new generation."""
    provider = advance_provider(tx, uuid, expected=generation)
    if fault := new.fault(uuid):
        raise Invalid(f"Unable to update inventory for resource provider {uuid}: {fault}")
    target = _by_class_id(tx, new, refusal=f"Unknown resource class in inventory for resource provider {uuid}: ")
    put_inventories(tx, provider, target)
    return provider.generation


def put_inventories(tx: Transaction, provider: LockedProvider, target: Mapping[int, Inventory]) -> None:
    """Make these, by class id, exactly the inventories of a locked provider, whose generation stays as it is."""
    present = store.inventories_by_class(tx, provider.id)
    _refuse_in_use(tx, provider, present.keys() - target.keys(), said_before="update conflict: ")
    store.replace_inventories(tx, provider.id, target, present=present)


@writes
def clear_inventories(tx: Transaction, uuid: str) -> None:
    """Delete all inventories of a provider."""
    provider = locked_provider(tx, uuid)
    present = store.inventories_by_class(tx, provider.id)
    _refuse_in_use(tx, provider, present.keys())
    store.replace_inventories(tx, provider.id, {}, present=present)
    advance_generation(tx, provider.id, expected=provider.generation)


@writes
def delete_inventory(tx: Transaction, uuid: str, class_name: str) -> None:
    """Delete a provider's inventory of one class."""
    provider = locked_provider(tx, uuid)
    ids = set(claimed_class_ids(tx, [class_name]).values())
    if store.classes_in_use(tx, provider.id, ids):
        raise ConcurrentUpdate(
            f"Unable to delete inventory of class {class_name}: "
            f"Inventory for '{class_name}' on resource provider '{uuid}' in use."
        )
    if not store.delete_inventories(tx, provider.id, ids):
        raise NotFound(f"No inventory of class {class_name} found for delete on resource provider {uuid}.")
    advance_generation(tx, provider.id, expected=provider.generation)


def _by_class_id(tx: Transaction, new: NewInventories, *, refusal: str) -> dict[int, Inventory]:
    ids = claimed_class_ids(tx, new.by_class.keys())
    for name in new.by_class:
        if name not in ids:
            raise Invalid(f"{refusal}No such resource class {name}.")
    return {ids[name]: inventory for name, inventory in new.by_class.items()}


def _refuse_in_use(
    tx: Transaction, provider: LockedProvider, class_ids: Collection[int], *, said_before: str = ""
) -> None:
    if names := store.classes_in_use(tx, provider.id, class_ids):
        listed = ", ".join(names)
        raise InventoryInUse(f"{said_before}Inventory for '{listed}' on resource provider '{provider.uuid}' in use.")


@reads_once
def provider_usage(tx: Transaction, provider_uuid: str) -> ProviderUsage:
    """Return the usage of each class that a provider has inventory of."""
    rows = allocations.usage_of_provider(tx, provider_uuid)
    if not rows:
        raise ProviderNotFound(provider_uuid)
    used = {class_id: amount for _generation, class_id, amount in rows if class_id is not None}
    names = tx.names.classes.names(tx.connection, used)
    return ProviderUsage(rows[0][0], {names[class_id]: amount for class_id, amount in used.items()})


@reads
def project_usage(tx: Transaction, project_id: str, user_id: str | None = None) -> ResourceAmounts:
    """Return everything that a project, or one of its users, holds."""
    rows = allocations.usage_of_project(tx, project_id, user_id)
    names = tx.names.classes.names(tx.connection, {class_id for _, class_id, _ in rows})
    amounts: Counter[str] = Counter()
    for _, class_id, amount in rows:
        amounts[names[class_id]] += amount
    return amounts


@reads
def project_usage_by_type(tx: Transaction, project_id: str, user_id: str | None = None) -> dict[str | None, TypeUsage]:
    """Return the same by consumer type; None stands for consumers without one."""
    rows = allocations.usage_of_project(tx, project_id, user_id)
    counts = allocations.consumers_of_project(tx, project_id, user_id)
    names = tx.names.classes.names(tx.connection, {class_id for _, class_id, _ in rows})
    by_type: dict[str | None, dict[str, int]] = defaultdict(dict)
    for type_, class_id, amount in rows:
        by_type[type_][names[class_id]] = amount
    return {type_: TypeUsage(amounts, counts[type_]) for type_, amounts in by_type.items()}
