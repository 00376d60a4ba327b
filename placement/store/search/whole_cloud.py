"""Read a whole cloud, for requests about all of it, in a fixed number of statements whatever the request."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import lru_cache

from sqlalchemy import BigInteger, bindparam, cast, literal_column, select, union_all

from placement.domain.search_plan import NamedIds
from placement.domain.whole_cloud import WholeCloud
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import HAS_ROOT
from placement.store.stock import STEP_SIZE, StockSource
from placement.store.tables import (
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c
_IN = resource_provider_aggregates.c
_OF_TRAITS, _OF_AGGREGATES = 0, 1

_PROVIDERS = PreparedStatement(select(_RP.id, _RP.parent_provider_id, _RP.root_provider_id).where(HAS_ROOT))
_MARKS = PreparedStatement(
    union_all(
        select(literal_column(str(_OF_TRAITS)), _HAS.trait_id, _HAS.resource_provider_id).where(
            _HAS.trait_id.in_(bindparam("traits", expanding=True))
        ),
        select(literal_column(str(_OF_AGGREGATES)), _IN.aggregate_id, _IN.resource_provider_id).where(
            _IN.aggregate_id.in_(bindparam("aggregates", expanding=True))
        ),
    )
)
_SHARER = resource_provider_aggregates.alias("sharer")
_SHARED = PreparedStatement(
    select(_SHARER.c.resource_provider_id, _RP.root_provider_id)
    .join(resource_provider_traits, _HAS.resource_provider_id == _SHARER.c.resource_provider_id)
    .join(resource_provider_aggregates, _IN.aggregate_id == _SHARER.c.aggregate_id)
    .join(resource_providers, _RP.id == _IN.resource_provider_id)
    .where(_HAS.trait_id == bindparam("sharing_trait"), HAS_ROOT)
    .distinct()
)
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


def whole_cloud(tx: Transaction, ids: NamedIds, *, with_aggregates: bool = False) -> WholeCloud:
    """Return all providers with everything named. At most five statements.

    Args:
        tx: the transaction.
        ids: the named classes, traits and aggregates.
        with_aggregates: whether to read the aggregates of the trees.
    """
    classes = {"classes": sorted(ids.classes.values())}
    shares: dict[int, list[int]] = defaultdict(list)
    for provider, root in tx.tuples(_SHARED, {"sharing_trait": ids.sharing_trait}) if ids.shares else ():
        shares[provider].append(root)
    bits, marks = _marks(tx, ids)
    return WholeCloud(
        providers=tx.tuples(_PROVIDERS),
        holdings=tx.tuples(_holdings(keeps_usage=tx.database.keeps_usage), classes),
        classes=ids.classes,
        marks=marks,
        bits=bits,
        roots=ids.roots,
        shares=shares,
        aggregates=roots_by_aggregate(tx) if with_aggregates else {},
    )


def roots_by_aggregate(tx: Transaction) -> Mapping[str, frozenset[int]]:
    """Map each aggregate to the roots of the trees that have a provider in it."""
    found: dict[str, set[int]] = defaultdict(set)
    for root, uuid in tx.tuples(_MEMBERS):
        found[uuid].add(root)
    return {uuid: frozenset(roots) for uuid, roots in found.items()}


def roots_of_providers(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return the root of the tree of each provider that exists."""
    return dict(tx.tuples(_ROOTS_OF, {"uuids": sorted(uuids)})) if uuids else {}


def _marks(tx: Transaction, ids: NamedIds) -> tuple[dict[str, int], dict[int, int]]:
    """Return the bit of each named trait and aggregate, and the combined bits of each provider."""
    named = [(_OF_TRAITS, id_, name) for name, id_ in ids.traits.items()]
    named += [(_OF_AGGREGATES, id_, uuid) for uuid, id_ in ids.aggregates.items()]
    bits = {name: 1 << number for number, (_of, _id, name) in enumerate(sorted(named))}
    bit_of = {(of, id_): bits[name] for of, id_, name in named}
    values = {"traits": sorted(ids.traits.values()), "aggregates": sorted(ids.aggregates.values())}
    marks: dict[int, int] = {}
    for of, id_, provider in tx.tuples(_MARKS, values) if named else ():
        marks[provider] = marks.get(provider, 0) | bit_of[of, id_]
    return bits, marks


@lru_cache(maxsize=2)
def _holdings(*, keeps_usage: bool) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    amounts = (cast(stock.usable_capacity, BigInteger), stock.used, _INV.min_unit, _INV.max_unit, STEP_SIZE)
    return PreparedStatement(
        select(_INV.resource_provider_id, _INV.resource_class_id, *amounts)
        .select_from(stock.rows)
        .where(_INV.resource_class_id.in_(bindparam("classes", expanding=True)))
    )
