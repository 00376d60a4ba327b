"""The reference's part of a database: which revision its schema is at, and how to bring it up to date.

These are facts about openstack-placement's migrations, which are few and old: the last is from 2022.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import os_resource_classes
import os_traits
from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    distinct,
    func,
    insert,
    inspect,
    select,
    update,
)

from placement.domain.tree import true_roots
from placement.errors import PlacementError
from placement.store.connection.statements import insert_ignoring
from placement.store.tables import (
    REFERENCE_TABLES,
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    traits,
    users,
)

REVISIONS = ("b4ed3a175331", "611cd6dffd7b", "b5c396305c25", "422ece571366", "a082b8bb98d0")
HEAD = REVISIONS[-1]

_alembic_version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))

_OLD_INDEXES = {
    "inventories": ("inventories_resource_provider_id_idx", "inventories_resource_provider_resource_class_idx"),
    "placement_aggregates": ("ix_placement_aggregates_uuid",),
    "resource_providers": ("resource_providers_name_idx", "resource_providers_uuid_idx"),
}
"""Indexes that unique constraints have made redundant."""


class SchemaRefused(PlacementError):
    """The database is in a state that must not be worked on."""


def revision(connection: Connection) -> str | None:
    """Return the revision in the reference's version table, or None."""
    if not inspect(connection).has_table(_alembic_version.name):
        return None
    return connection.execute(select(_alembic_version.c.version_num)).scalar()


def has_tables(connection: Connection) -> bool:
    """Tell whether the reference's tables exist, judging by one of them."""
    return inspect(connection).has_table(resource_providers.name)


def stamp(connection: Connection, prefix: str) -> None:
    """Write a revision into the reference's version table, named by itself, a prefix or ``head``; or SchemaRefused."""
    matches = (
        [HEAD]
        if prefix == "head"
        else [candidate for candidate in REVISIONS if prefix and candidate.startswith(prefix)]
    )
    if len(matches) != 1:
        raise SchemaRefused(f"Can't locate revision identified by '{prefix}'; there are {', '.join(REVISIONS)}.")
    _alembic_version.create(connection, checkfirst=True)
    connection.execute(_alembic_version.delete())
    connection.execute(insert(_alembic_version), {"version_num": matches[0]})


def bring_up_to_date(connection: Connection) -> None:
    """Migrate the reference's tables to the newest revision.

    SchemaRefused if the revision is unknown, rows have to be migrated first, or a table is another application's.
    """
    present = revision(connection)
    if present is None:
        if has_tables(connection):
            raise SchemaRefused(
                "The database has Placement's tables, but no revision in alembic_version. If they were made by "
                f"openstack-placement, run 'placement-manage db stamp {HEAD}' (or the revision that they have) first."
            )
        _refuse_foreign(connection)
        return
    if present not in REVISIONS:
        raise SchemaRefused(
            f"The database is at the revision {present}, which this server does not know: it knows the schema of "
            f"openstack-placement up to {HEAD}. Nothing was changed."
        )
    if present != HEAD:
        if providers_without_root(connection) or incomplete_consumers(connection):
            raise SchemaRefused(
                "There are providers without a root provider or allocations without a consumer. Run 'placement-manage "
                "db online_data_migrations' first, then this again."
            )
        _migrate(connection)
        stamp(connection, HEAD)


def _refuse_foreign(connection: Connection) -> None:
    inspector = inspect(connection)
    for table in REFERENCE_TABLES:
        if inspector.has_table(table.name):
            present = {column["name"] for column in inspector.get_columns(table.name)}
            if not present.issuperset(table.columns.keys()):
                raise SchemaRefused(
                    f"The database has a table {table.name} of another application: Placement needs a database of its "
                    "own. Nothing was changed."
                )


def _migrate(connection: Connection) -> None:
    """Make every change that is still missing: on MariaDB an earlier attempt may have stopped halfway."""
    # Imported late: large, and not needed once the reference's newest release has been at work.
    from alembic.migration import MigrationContext  # noqa: PLC0415
    from alembic.operations import Operations  # noqa: PLC0415

    operations = Operations(MigrationContext.configure(connection))
    inspector = inspect(connection)
    consumer_types.create(connection, checkfirst=True)
    if "consumer_type_id" not in {column["name"] for column in inspector.get_columns("consumers")}:
        link = ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey")
        with operations.batch_alter_table("consumers") as consumers:
            consumers.add_column(Column("consumer_type_id", Integer, link))
        operations.create_index("consumers_consumer_type_id_idx", "consumers", ["consumer_type_id"])
    for table, names in _OLD_INDEXES.items():
        present = {index["name"] for index in inspector.get_indexes(table)}
        for name in names:
            if name in present:
                operations.drop_index(name, table_name=table)


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
    row_id = connection.execute(query).scalar()
    if row_id is None:
        connection.execute(insert(table), {"external_id": external_id})
        row_id = connection.execute(query).scalar_one()
    return int(row_id)


def has_standard_names(connection: Connection) -> bool:
    """Tell whether all standard names are present."""
    return set(os_resource_classes.STANDARDS) <= _names_in(connection, resource_classes) and (
        set(os_traits.get_traits()) <= _names_in(connection, traits)
    )


def sync_standard_names(connection: Connection) -> None:
    """Add missing standard names. Safe to run in several processes at once; nothing is written twice."""
    classes = [{"id": place, "name": name} for place, name in enumerate(os_resource_classes.STANDARDS)]
    with zero_is_an_id(connection):
        _add_names(connection, resource_classes, classes)
    _add_names(connection, traits, [{"name": name} for name in sorted(os_traits.get_traits())])


def _add_names(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    present = _names_in(connection, table)
    if missing := [row for row in rows if row["name"] not in present]:
        connection.execute(insert_ignoring(connection.dialect.name, table), missing)


def _names_in(connection: Connection, table: Table) -> set[str]:
    return set(connection.execute(select(table.c.name)).scalars())


@contextmanager
def zero_is_an_id(connection: Connection) -> Iterator[None]:
    """Let MariaDB store 0, the id of VCPU, which it otherwise takes as a request for the next number."""
    if connection.dialect.name != "mysql":
        yield
        return
    mode = connection.exec_driver_sql("SELECT @@SESSION.sql_mode").scalar_one()
    connection.exec_driver_sql("SET SESSION sql_mode = CONCAT(%s, ',NO_AUTO_VALUE_ON_ZERO')", (mode,))
    try:
        yield
    finally:
        connection.exec_driver_sql("SET SESSION sql_mode = %s", (mode,))
