"""Use cases of names: resource classes, traits and aggregates, and which of them providers have."""

from collections.abc import Collection

from placement.domain.names import is_custom, is_valid_custom
from placement.errors import Conflict, Invalid
from placement.store import marks as store
from placement.store import resource_classes as class_store
from placement.store.connection.database import Transaction, reads, reads_once, writes
from placement.store.marks import ProviderTraits, Trait
from placement.store.providers import advance_generation, locked_provider, locked_provider_at
from placement.store.resource_classes import ResourceClass

resource_classes = reads(class_store.all_classes)
resource_class = reads(class_store.required_class)
traits = reads(store.traits_matching)
trait = reads_once(store.required_trait)
provider_traits = reads_once(store.traits_of)
membership = reads_once(store.membership)


@writes
def create_class(tx: Transaction, name: str) -> None:
    """Create a custom resource class that must not exist yet."""
    if not class_store.insert_class(tx, name):
        raise Conflict(f"Conflicting resource class already exists: {name}")


@writes
def ensure_class(tx: Transaction, name: str) -> bool:
    """Create a custom resource class unless it exists; tell whether it was created."""
    return class_store.insert_class(tx, name)


@writes
def rename_class(tx: Transaction, name: str, new_name: str) -> ResourceClass:
    """Rename a custom resource class."""
    existing = class_store.required_class(tx, name)
    if not is_custom(name):
        raise Invalid(f"Cannot update standard resource class {name}")
    if new_name != name and class_store.class_named(tx, new_name):
        raise Conflict(f"Resource class already exists: {new_name}")
    class_store.rename_class(tx, existing.id, new_name)
    return class_store.required_class(tx, new_name)


@writes
def delete_class(tx: Transaction, name: str) -> None:
    """Delete a custom resource class that no inventory uses."""
    # Locked first, so that the check sees the inventories of transactions that had locked it, and the journal tells of
    # the last of them before it tells that the name is gone.
    existing = class_store.required_class(tx, name, locked=True)
    if not is_custom(name):
        raise Invalid(f"Error in delete resource class: Cannot delete standard resource class {name}.")
    if class_store.is_in_use(tx, existing.id):
        raise Conflict(f"Error in delete resource class: Class is in use in inventory: {name}")
    class_store.delete_class(tx, existing.id)


@writes
def ensure_trait(tx: Transaction, name: str) -> tuple[Trait, bool]:
    """Create a custom trait unless it exists; return it, and whether it was created."""
    if not is_valid_custom(name):
        raise Invalid(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
            '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    existing = store.trait_named(tx, name)
    if existing is not None:
        return existing, False
    is_new = store.insert_trait(tx, name)
    return store.required_trait(tx, name), is_new


@writes
def delete_trait(tx: Transaction, name: str) -> None:
    """Delete a custom trait that no provider has."""
    existing = store.required_trait(tx, name)
    if not is_custom(name):
        raise Invalid(f"Cannot delete standard trait {name}.")
    if store.is_in_use(tx, existing.id):
        raise Conflict(f"The trait {name} is in use by a resource provider.")
    store.delete_trait(tx, existing.id)


@writes
def replace_provider_traits(tx: Transaction, uuid: str, names: Collection[str], *, generation: int) -> ProviderTraits:
    """Make these exactly the traits of a provider at this generation; increment it if anything changes."""
    provider = locked_provider_at(tx, uuid, expected=generation)
    traits_wanted = sorted(store.traits_named(tx, names), key=lambda existing: (is_custom(existing.name), existing.id))
    if unknown := sorted(set(names) - {existing.name for existing in traits_wanted}):
        raise Invalid(f"No such trait {', '.join(unknown)}")
    if store.replace_provider_traits(tx, provider.id, [existing.id for existing in traits_wanted]):
        advance_generation(tx, provider.id, expected=generation)
        generation += 1
    return ProviderTraits(generation, traits_wanted)


@writes
def clear_provider_traits(tx: Transaction, uuid: str) -> None:
    """Remove all traits from a provider."""
    provider = locked_provider(tx, uuid)
    if store.replace_provider_traits(tx, provider.id, ()):
        advance_generation(tx, provider.id, expected=provider.generation)


@writes
def replace_aggregates(
    tx: Transaction, uuid: str, aggregates: Collection[str], *, generation: int | None = None
) -> int:
    """Make these exactly the aggregates of a provider, and return its new generation; None leaves that as it is."""
    if generation is None:
        provider = locked_provider(tx, uuid)
    else:
        provider = locked_provider_at(tx, uuid, expected=generation)
        advance_generation(tx, provider.id, expected=generation)
    store.replace_aggregates(tx, provider.id, aggregates)
    return provider.generation + (generation is not None)
