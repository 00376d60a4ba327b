"""Use cases of resource classes."""

from placement.allocators.entries import WILDCARD
from placement.candidates.ranking import Ranking
from placement.domain.names import is_custom
from placement.errors import Conflict, Invalid, NotFound
from placement.store import resource_classes as store
from placement.store.connection.database import Transaction, reads, writes
from placement.store.resource_classes import ResourceClass

resource_classes = reads(store.all_classes)


@writes
def create_class(tx: Transaction, name: str) -> None:
    """Create a custom resource class that must not exist yet."""
    if not store.insert_class(tx, name):
        raise Conflict(f"Conflicting resource class already exists: {name}")


@writes
def ensure_class(tx: Transaction, name: str) -> bool:
    """Create a custom resource class unless it exists; tell whether it was created."""
    return store.insert_class(tx, name)


@writes
def rename_class(tx: Transaction, name: str, new_name: str) -> ResourceClass:
    """Rename a custom resource class."""
    existing = _existing(tx, name)
    if not is_custom(name):
        raise Invalid(f"Cannot update standard resource class {name}")
    if new_name != name and store.class_named(tx, new_name):
        raise Conflict(f"Resource class already exists: {new_name}")
    store.rename_class(tx, existing.id, new_name)
    return _existing(tx, new_name)


@writes
def delete_class(tx: Transaction, name: str) -> None:
    """Delete a custom resource class that no inventory uses."""
    # Locked first, so that the check sees the inventories of transactions that had locked it, and the journal tells of
    # the last of them before it tells that the name is gone.
    existing = store.locked_class(tx, name)
    if existing is None:
        raise _unknown(name)
    if not is_custom(name):
        raise Invalid(f"Error in delete resource class: Cannot delete standard resource class {name}.")
    if store.is_in_use(tx, existing.id):
        raise Conflict(f"Error in delete resource class: Class is in use in inventory: {name}")
    store.delete_class(tx, existing.id)


def _existing(tx: Transaction, name: str) -> ResourceClass:
    existing = store.class_named(tx, name)
    if existing is None:
        raise _unknown(name)
    return existing


resource_class = reads(_existing)


def _unknown(name: str) -> NotFound:
    return NotFound(f"No such resource class {name}.")


def classes_in_families(tx: Transaction, ranking: Ranking) -> list[str]:
    """Return all classes if the profile names scarce ones by family; otherwise none, since none is needed."""
    strategy = ranking.profile.strategy
    named = [*(strategy.sra.resources if strategy.sra else ())]
    named += strategy.proportional.reserve if strategy.proportional else ()
    return [class_.name for class_ in store.all_classes(tx)] if any(name.endswith(WILDCARD) for name in named) else []
