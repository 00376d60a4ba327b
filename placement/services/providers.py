"""Use cases of resource providers: listing them, their life cycle, and their place in the store."""

from placement.domain.inventory import Move, Provider, ProviderFilter
from placement.domain.tree import subtree
from placement.errors import DuplicateName, Invalid, ProviderHasChildren, ProviderInUse, ProviderNotFound
from placement.store import provider_list
from placement.store import providers as store
from placement.store.connection.database import Transaction, reads, reads_once, writes
from placement.store.provider_list import ProviderList
from placement.store.search.names import parents_in

NO_SUCH_PARENT = "parent provider UUID does not exist."


provider = reads_once(store.required_provider)


@reads
def providers(tx: Transaction, provider_filter: ProviderFilter) -> ProviderList:
    """Return the providers that pass a filter."""
    classes, traits = ids_in_filter(tx, provider_filter)
    return provider_list.providers_matching(tx, provider_filter, class_ids=classes, trait_ids=traits)


def ids_in_filter(tx: Transaction, provider_filter: ProviderFilter) -> tuple[dict[str, int], dict[str, int]]:
    """Return the ids of the resource classes and of the traits in a filter; Invalid if one does not exist."""
    classes = tx.names.classes.ids(tx.connection, provider_filter.resources.keys())
    if unknown := sorted(provider_filter.resources.keys() - classes.keys()):
        raise Invalid(f"Invalid resource class in resources parameter: No such resource class {unknown[0]}.")
    named = provider_filter.forbidden.union(*provider_filter.required)
    traits = tx.names.traits.ids(tx.connection, named)
    if missing := sorted(named - traits.keys()):
        raise Invalid(f'Invalid trait(s) in "required" parameter: No such trait(s): {", ".join(missing)}.')
    return classes, traits


@writes
def create_provider(tx: Transaction, *, uuid: str, name: str, parent_uuid: str | None = None) -> Provider:
    """Create a provider, below a parent or as the root of a new tree."""
    refusal = f'Unable to create resource provider "{name}", {uuid}: '
    if not name:
        raise Invalid(f"{refusal}name is required.")
    parent = None
    if parent_uuid is not None:
        if parent_uuid == uuid:
            raise Invalid(f"{refusal}parent provider UUID cannot be same as UUID. Leave it out if there is no parent.")
        parent = store.providers_in_locked_trees(tx, [parent_uuid]).get(parent_uuid)
        if parent is None:
            raise Invalid(refusal + NO_SUCH_PARENT)
    _refuse_duplicate(tx, name=name, uuid=uuid)
    return store.insert_provider(tx, uuid=uuid, name=name, parent=parent)


def _refuse_duplicate(tx: Transaction, *, name: str, uuid: str) -> None:
    """Refuse a uuid or name that is taken. Unless the message starts with the name, clients blame the uuid."""
    taken = store.same_name_or_uuid(tx, name=name, uuid=uuid)
    clashes = []
    if any(its_uuid == uuid for its_uuid, _ in taken):
        clashes.append(f"uuid: {uuid}")
    if any(its_uuid != uuid or its_name == name for its_uuid, its_name in taken):
        clashes.append(f"name: {name}")
    if clashes:
        raise DuplicateName(f"Conflicting resource provider {', '.join(clashes)} already exists.")


@writes
def update_provider(tx: Transaction, uuid: str, *, name: str, move: Move | None = None) -> Provider:
    """Rename a provider, and move it if ``move`` says so."""
    present = store.required_provider(tx, uuid)
    if move is not None and move.parent_uuid != present.parent_uuid:
        _move(tx, uuid, move)
    if name != present.name:
        if store.name_is_taken(tx, name, except_for=present.id):
            raise DuplicateName(f"Conflicting resource provider name: {name} already exists.")
        store.rename_provider(tx, present.id, name)
    return store.required_provider(tx, uuid)


def _move(tx: Transaction, uuid: str, move: Move) -> None:
    present = store.providers_in_locked_trees(tx, {uuid} if move.parent_uuid is None else {uuid, move.parent_uuid})
    if (moved := present.get(uuid)) is None:
        raise ProviderNotFound(uuid)
    parent = None if move.parent_uuid is None else present.get(move.parent_uuid)
    moving = subtree(parents_in(tx, [moved.root_id]), moved.id)
    if reason := _refusal(moved, move, parent=parent, moving=moving):
        raise Invalid(f"Unable to save resource provider {uuid}: {reason}")
    store.move_providers(tx, moving, to_root=parent.root_id if parent else moved.id)
    store.set_parent(tx, moved.id, parent.id if parent else None)


def _refusal(moved: Provider, move: Move, *, parent: Provider | None, moving: set[int]) -> str | None:
    if move.parent_uuid is not None and parent is None:
        return NO_SUCH_PARENT
    if moved.parent_uuid not in (None, move.parent_uuid) and not move.from_anywhere:
        deed = "re-parenting" if parent else "un-parenting"
        return f"{deed} a provider is not currently allowed."
    if parent is not None and parent.id in moving:
        return "creating loop in the provider tree is not allowed."
    return None


@writes
def delete_provider(tx: Transaction, uuid: str) -> None:
    """Delete a provider that has neither children nor allocations, with everything it has."""
    present = store.locked_provider(tx, uuid, purpose=" for delete")
    if store.has_children(tx, present.id):
        raise ProviderHasChildren(f"Unable to delete parent resource provider {uuid}: It has child resource providers.")
    if store.has_allocations(tx, present.id):
        raise ProviderInUse(f"Unable to delete resource provider {uuid}: Resource provider has allocations.")
    store.delete_providers(tx, [present.id])
