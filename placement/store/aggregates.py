"""Aggregates, sets of providers. An aggregate comes into being when the first provider is put into it."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, delete, select

from placement.store.connection.prepared import PreparedInsert, PreparedStatement, chunks
from placement.store.connection.unit_of_work import Transaction, insert_unless_exists
from placement.store.tables import placement_aggregates, resource_provider_aggregates, resource_providers

AGGREGATE = placement_aggregates.c
MEMBER = resource_provider_aggregates.c

# One statement tells an unknown provider (no row) from one in no aggregate (one row with a null).
_MEMBERSHIP = PreparedStatement(
    select(resource_providers.c.generation, AGGREGATE.uuid)
    .select_from(
        resource_providers.outerjoin(
            resource_provider_aggregates, MEMBER.resource_provider_id == resource_providers.c.id
        ).outerjoin(placement_aggregates, AGGREGATE.id == MEMBER.aggregate_id)
    )
    .where(resource_providers.c.uuid == bindparam("uuid"))
    .order_by(MEMBER.aggregate_id)
)
_IDS = PreparedStatement(
    select(AGGREGATE.uuid, AGGREGATE.id).where(AGGREGATE.uuid.in_(bindparam("uuids", expanding=True)))
)
_IDS_OF_PROVIDER = PreparedStatement(
    select(MEMBER.aggregate_id).where(MEMBER.resource_provider_id == bindparam("provider_id"))
)
_INSERT = PreparedInsert(resource_provider_aggregates, MEMBER.resource_provider_id, MEMBER.aggregate_id)
_DELETE = PreparedStatement(
    delete(resource_provider_aggregates).where(
        MEMBER.resource_provider_id == bindparam("provider_id"),
        MEMBER.aggregate_id.in_(bindparam("left", expanding=True)),
    )
)


@dataclass(frozen=True, slots=True)
class Membership:
    """The aggregates of a provider, and its generation."""

    generation: int
    aggregates: list[str]


def membership(tx: Transaction, uuid: str) -> Membership | None:
    """Return the aggregates of the provider with this uuid, or None if there is no such provider."""
    rows = tx.tuples(_MEMBERSHIP, {"uuid": uuid})
    if not rows:
        return None
    return Membership(rows[0][0], [aggregate for _, aggregate in rows if aggregate is not None])


def hosts_in(tx: Transaction, aggregates: Collection[str]) -> dict[str, list[int]]:
    """Map each aggregate to the roots of the trees that have a provider in it."""
    query = (
        select(AGGREGATE.uuid, resource_providers.c.root_provider_id)
        .select_from(
            placement_aggregates.join(resource_provider_aggregates, MEMBER.aggregate_id == AGGREGATE.id).join(
                resource_providers, resource_providers.c.id == MEMBER.resource_provider_id
            )
        )
        .where(AGGREGATE.uuid.in_(sorted(aggregates)))
        .distinct()
    )
    roots_of: dict[str, list[int]] = {}
    for uuid, root in tx.tuples(query) if aggregates else ():
        roots_of.setdefault(uuid, []).append(root)
    return roots_of


def roots_in(aggregates: Collection[str]) -> Select[tuple[int]]:
    """Return a query for the roots of the trees that have a provider in any of these aggregates."""
    # Aliased, because the enclosing statement may select from the same table.
    member = resource_providers.alias("member")
    source = placement_aggregates.join(resource_provider_aggregates, MEMBER.aggregate_id == AGGREGATE.id)
    return (
        select(member.c.root_provider_id)
        .select_from(source.join(member, member.c.id == MEMBER.resource_provider_id))
        .where(AGGREGATE.uuid.in_(sorted(aggregates)))
    )


def replace_aggregates(tx: Transaction, provider_id: int, uuids: Collection[str]) -> None:
    """Make these exactly the aggregates of a provider, whose row the caller has locked."""
    wanted = _aggregate_ids(tx, sorted(set(uuids)))
    present = {id_ for (id_,) in tx.tuples(_IDS_OF_PROVIDER, {"provider_id": provider_id})}
    if left := present - wanted:
        tx.change(_DELETE, {"provider_id": provider_id, "left": sorted(left)})
    if joined := wanted - present:
        tx.insert(_INSERT, [{"resource_provider_id": provider_id, "aggregate_id": id_} for id_ in sorted(joined)])


def _aggregate_ids(tx: Transaction, uuids: list[str]) -> set[int]:
    """Return the ids of aggregates, creating missing ones."""
    ids = _existing_ids(tx, uuids)
    if new := [uuid for uuid in uuids if uuid not in ids]:
        insert_unless_exists(tx, placement_aggregates, [{"uuid": uuid} for uuid in new], key="uuid")
        ids.update(_existing_ids(tx, new))
    return set(ids.values())


def _existing_ids(tx: Transaction, uuids: list[str]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for chunk in chunks(uuids):
        ids.update(tx.tuples(_IDS, {"uuids": chunk}))
    return ids
