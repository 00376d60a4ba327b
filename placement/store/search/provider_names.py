"""What providers are called, and how they are nested."""

from collections import defaultdict
from collections.abc import Collection
from functools import lru_cache

from sqlalchemy import select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import Extent, Scope, within
from placement.store.tables import resource_providers

_RP = resource_providers.c


def parents_in(tx: Transaction, extent: Extent) -> dict[int, int | None]:
    """Return the parent of each provider of some trees, None for roots."""
    return {} if extent.is_empty else dict(tx.tuples(_parents(extent.scope), extent.values))


def names_in(tx: Transaction, roots: Collection[int]) -> dict[int, dict[int, tuple[str, str | None]]]:
    """Return the uuid and the name, if it has one, of each provider of some trees, by root; others may be included."""
    found: dict[int, dict[int, tuple[str, str | None]]] = defaultdict(dict)
    extent = Extent.around(roots)
    for root, id_, uuid, name in tx.tuples(_names(extent.scope), extent.values):
        found[root][id_] = uuid, name
    return found


@lru_cache(maxsize=len(Scope))
def _parents(scope: Scope) -> PreparedStatement:
    return PreparedStatement(select(_RP.id, _RP.parent_provider_id).where(*within(_RP.root_provider_id, scope)))


@lru_cache(maxsize=len(Scope))
def _names(scope: Scope) -> PreparedStatement:
    columns = _RP.root_provider_id, _RP.id, _RP.uuid, _RP.name
    return PreparedStatement(select(*columns).where(*within(_RP.root_provider_id, scope)))
