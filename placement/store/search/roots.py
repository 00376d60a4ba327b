"""The roots of trees, by their aggregates and providers."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import bindparam, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import HAS_ROOT
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


def roots_by_aggregate(tx: Transaction) -> Mapping[str, frozenset[int]]:
    """Map each aggregate to the roots of the trees that have a provider in it."""
    roots_of: dict[str, set[int]] = defaultdict(set)
    for root, uuid in tx.tuples(_MEMBERS):
        roots_of[uuid].add(root)
    return {uuid: frozenset(roots) for uuid, roots in roots_of.items()}


def roots_of_providers(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return the root of the tree of each provider that exists."""
    return dict(tx.tuples(_ROOTS_OF, {"uuids": sorted(uuids)})) if uuids else {}
