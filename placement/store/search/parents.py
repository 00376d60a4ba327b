"""How the providers of trees are nested."""

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


@lru_cache(maxsize=len(Scope))
def _parents(scope: Scope) -> PreparedStatement:
    return PreparedStatement(select(_RP.id, _RP.parent_provider_id).where(*within(_RP.root_provider_id, scope)))
