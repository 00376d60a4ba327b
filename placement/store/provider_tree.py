"""Restructure trees of resource providers, so that two requests cannot make a cycle or a wrong root together.

Whoever adds a provider to a tree or moves one locks the roots of all trees involved first, and reads the trees only
then.
"""

from collections.abc import Collection

from sqlalchemy import bindparam, update

from placement.domain.provider import Provider
from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import RP, lock_providers, providers_by_uuid
from placement.store.tables import resource_providers

_SET_ROOT = (
    update(resource_providers)
    .where(RP.id.in_(bindparam("ids", expanding=True)))
    .values(root_provider_id=bindparam("new_root"))
)
_SET_PARENT = (
    update(resource_providers)
    .where(RP.id == bindparam("provider_id"))
    .values(parent_provider_id=bindparam("new_parent"))
)


def providers_in_locked_trees(tx: Transaction, uuids: Collection[str]) -> dict[str, Provider]:
    """Lock the roots of the trees of some providers, then return those of the providers that exist, by uuid.

    While it waits for a lock, another transaction may move a provider to a tree that then has to be locked as well.
    """
    found = providers_by_uuid(tx, uuids)
    while True:
        roots = {provider.root_id for provider in found.values()}
        lock_providers(tx, roots)
        found = providers_by_uuid(tx, uuids)
        if roots >= {provider.root_id for provider in found.values()}:
            return found


def move_providers(tx: Transaction, ids: Collection[int], *, to_root: int) -> None:
    """Assign providers to the tree of another root."""
    tx.execute(_SET_ROOT, {"ids": sorted(ids), "new_root": to_root})


def set_parent(tx: Transaction, provider_id: int, parent_id: int | None) -> None:
    """Put a provider directly below another, or below none."""
    tx.execute(_SET_PARENT, {"provider_id": provider_id, "new_parent": parent_id})
