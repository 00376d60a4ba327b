"""Count rows that very old releases left incomplete, and complete them in batches."""

from collections.abc import Mapping

from sqlalchemy import Connection, Table, bindparam, distinct, func, insert, select, update

from placement.domain.places import true_roots
from placement.store.tables import allocations, consumers, projects, resource_providers, users

_ORPHANED = allocations.outerjoin(consumers, allocations.c.consumer_id == consumers.c.uuid)


def providers_without_root(connection: Connection) -> int:
    """Count the providers without a root."""
    query = select(func.count()).where(resource_providers.c.root_provider_id.is_(None))
    return connection.execute(query).scalar_one()


def incomplete_consumers(connection: Connection) -> int:
    """Count the consumers that hold allocations but have no row of their own."""
    query = select(func.count(distinct(allocations.c.consumer_id))).select_from(_ORPHANED)
    return connection.execute(query.where(consumers.c.id.is_(None))).scalar_one()


def wrong_roots(connection: Connection) -> dict[int, int | None]:
    """Map each provider with a wrong root or none to the right one, or to None where there is none."""
    columns = resource_providers.c
    rows = connection.execute(select(columns.id, columns.parent_provider_id, columns.root_provider_id)).all()
    named = {id_: root for id_, _, root in rows}
    right = true_roots({id_: parent for id_, parent, _ in rows})
    return {id_: root for id_, root in right.items() if root is None or named[id_] != root}


def set_roots(connection: Connection, roots: Mapping[int, int | None]) -> int:
    """Give providers the roots that are known; return how many."""
    changes = [{"wrong": id_, "root": root} for id_, root in roots.items() if root is not None]
    if changes:
        statement = update(resource_providers).where(resource_providers.c.id == bindparam("wrong"))
        connection.execute(statement.values(root_provider_id=bindparam("root")), changes)
    return len(changes)


def set_root_provider_ids(connection: Connection, limit: int) -> int:
    """Make providers without a root their own root, at most ``limit``; return how many."""
    missing = select(resource_providers.c.id).where(resource_providers.c.root_provider_id.is_(None)).limit(limit)
    # MariaDB allows LIMIT, and the updated table, only in a doubly nested subquery.
    ids = select(missing.subquery().c.id)
    change = update(resource_providers).where(resource_providers.c.id.in_(ids))
    return connection.execute(change.values(root_provider_id=resource_providers.c.id)).rowcount


def create_incomplete_consumers(connection: Connection, limit: int, *, project_id: str, user_id: str) -> int:
    """Create missing consumers of allocations, at most ``limit``, for a project and user; return how many."""
    query = (
        select(allocations.c.consumer_id)
        .select_from(_ORPHANED)
        .where(consumers.c.id.is_(None))
        .group_by(allocations.c.consumer_id)
        .limit(limit)
    )
    uuids = list(connection.execute(query).scalars())
    if uuids:
        owner = {"project_id": _owner(connection, projects, project_id), "user_id": _owner(connection, users, user_id)}
        connection.execute(insert(consumers), [{"uuid": uuid, "generation": 0, **owner} for uuid in uuids])
    return len(uuids)


def _owner(connection: Connection, table: Table, external_id: str) -> int:
    """Return the id of a project or user, creating it if necessary."""
    query = select(table.c.id).where(table.c.external_id == external_id)
    found = connection.execute(query).scalar()
    if found is None:
        connection.execute(insert(table), {"external_id": external_id})
        found = connection.execute(query).scalar_one()
    return int(found)
