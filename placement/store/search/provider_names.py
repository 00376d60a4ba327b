"""What providers are called, how they are nested, and in which trees they are."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import HAS_ROOT, Extent, Scope, within
from placement.store.tables import placement_aggregates, resource_provider_aggregates, resource_providers

_RP = resource_providers.c
_IN = resource_provider_aggregates.c

_MEMBERS = PreparedStatement(
    select(_RP.root_provider_id, placement_aggregates.c.uuid)
    .join(resource_provider_aggregates, _IN.resource_provider_id == _RP.id)
    .join(placement_aggregates, placement_aggregates.c.id == _IN.aggregate_id)
    .where(HAS_ROOT)
    .distinct()
)
_ROOTS_OF = PreparedStatement(
    select(_RP.uuid, _RP.root_provider_id).where(_RP.uuid.in_(bindparam("uuids", expanding=True)), HAS_ROOT)
)


class Named(NamedTuple):
    """A provider with its uuids and name, as shown to people."""

    id: int
    uuid: str
    name: str
    root_uuid: str


def named_providers(tx: Transaction, ids: Iterable[int]) -> dict[int, Named]:
    """Return the names of some providers."""
    wanted = sorted(set(ids))
    return {row[0]: Named(*row) for row in tx.tuples(_NAMED, {"ids": wanted})} if wanted else {}


def parents_in(tx: Transaction, extent: Extent) -> dict[int, int | None]:
    """Return the parent of each provider of some trees, None for roots."""
    return {} if extent.is_empty else dict(tx.tuples(_parents(extent.scope), extent.values))


def names_in(tx: Transaction, roots: Collection[int]) -> dict[int, dict[int, tuple[str, str | None]]]:
    """Return the uuid and the name, if it has one, of each provider of some trees, by root; others may be included."""
    names: dict[int, dict[int, tuple[str, str | None]]] = defaultdict(dict)
    extent = Extent.around(roots)
    for root, id_, uuid, name in tx.tuples(_names(extent.scope), extent.values):
        names[root][id_] = uuid, name
    return names


@lru_cache(maxsize=len(Scope))
def _parents(scope: Scope) -> PreparedStatement:
    return PreparedStatement(select(_RP.id, _RP.parent_provider_id).where(*within(_RP.root_provider_id, scope)))


@lru_cache(maxsize=len(Scope))
def _names(scope: Scope) -> PreparedStatement:
    columns = _RP.root_provider_id, _RP.id, _RP.uuid, _RP.name
    return PreparedStatement(select(*columns).where(*within(_RP.root_provider_id, scope)))


_ROOT = resource_providers.alias("root")
_NAMED = PreparedStatement(
    select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        func.coalesce(resource_providers.c.name, resource_providers.c.uuid),
        func.coalesce(_ROOT.c.uuid, resource_providers.c.uuid),
    )
    .outerjoin(_ROOT, _ROOT.c.id == _RP.root_provider_id)
    .where(_RP.id.in_(bindparam("ids", expanding=True)))
)


def roots_by_aggregate(tx: Transaction) -> Mapping[str, frozenset[int]]:
    """Map each aggregate to the roots of the trees that have a provider in it."""
    roots_of: dict[str, set[int]] = defaultdict(set)
    for root, uuid in tx.tuples(_MEMBERS):
        roots_of[uuid].add(root)
    return {uuid: frozenset(roots) for uuid, roots in roots_of.items()}


def roots_of_providers(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return the root of the tree of each provider that exists."""
    return dict(tx.tuples(_ROOTS_OF, {"uuids": sorted(uuids)})) if uuids else {}
