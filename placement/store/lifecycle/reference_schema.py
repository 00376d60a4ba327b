"""The reference's part of a database: which revision its schema is at, and how to bring it up to date.

These are facts about openstack-placement's migrations, which are few and old: the last is from 2022.
"""

from sqlalchemy import Column, Connection, ForeignKey, Integer, MetaData, String, Table, insert, inspect, select

from placement.errors import PlacementError
from placement.store.lifecycle.data_migrations import incomplete_consumers, providers_without_root
from placement.store.tables import REFERENCE_TABLES, consumer_types, resource_providers

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


def stamp(connection: Connection, wanted: str) -> None:
    """Write a revision into the reference's version table: a revision, an unambiguous prefix of one, or ``head``.

    Raises:
        SchemaRefused: no revision matches, or several do.
    """
    matches = [HEAD] if wanted == "head" else [known for known in REVISIONS if wanted and known.startswith(wanted)]
    if len(matches) != 1:
        raise SchemaRefused(f"Can't locate revision identified by '{wanted}'; there are {', '.join(REVISIONS)}.")
    _alembic_version.create(connection, checkfirst=True)
    connection.execute(_alembic_version.delete())
    connection.execute(insert(_alembic_version), {"version_num": matches[0]})


def bring_up_to_date(connection: Connection) -> None:
    """Migrate the reference's tables from an older revision to the newest.

    Raises:
        SchemaRefused: the revision is unknown, rows have to be migrated first, or a table is another application's.
    """
    present = revision(connection)
    if present is None:
        _refuse_unnamed(connection)
        _refuse_foreign(connection)
        return
    if present not in REVISIONS:
        raise SchemaRefused(
            f"The database is at the revision {present}, which this server does not know: it knows the schema of "
            f"openstack-placement up to {HEAD}. Nothing was changed."
        )
    if present != HEAD:
        _refuse_unmigrated_rows(connection)
        _migrate(connection)
        stamp(connection, HEAD)


def _refuse_unnamed(connection: Connection) -> None:
    if has_tables(connection):
        raise SchemaRefused(
            "The database has Placement's tables, but no revision in alembic_version. If they were made by "
            f"openstack-placement, run 'placement-manage db stamp {HEAD}' (or the revision that they have) first."
        )


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


def _refuse_unmigrated_rows(connection: Connection) -> None:
    if providers_without_root(connection) or incomplete_consumers(connection):
        raise SchemaRefused(
            "There are providers without a root provider or allocations without a consumer. Run 'placement-manage db "
            "online_data_migrations' first, then this again."
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
