"""The life cycle of a database's schema: create, adopt from the reference, upgrade, release.

Nothing here runs while requests are served.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, Table, column, func, inspect, select, table, text

from placement.store.checks.bad_rows import odd_rows
from placement.store.journal import triggers as journal
from placement.store.kept_usage import usage_triggers as kept_usage
from placement.store.lifecycle import reference_schema
from placement.store.lifecycle.health import known_revisions, migrations
from placement.store.lifecycle.maintenance import PATIENCE, Patience, Progress, exclusively, looking, silent
from placement.store.lifecycle.reference_schema import (
    SchemaRefused,
    providers_without_root,
    set_roots,
    sync_standard_names,
    wrong_roots,
)
from placement.store.tables import VERSION_TABLE, allocations, placement_former_names, placement_journal
from placement.store.trigger_set import TriggersRefused

if TYPE_CHECKING:
    from alembic.config import Config


@dataclass(frozen=True, slots=True)
class SchemaState:
    """What a database holds. A revision is None where that side has no schema."""

    kind: str
    reference_revision: str | None
    revision: str | None
    newest_revision: str
    keeps_usage: bool
    keeps_journal: bool

    @property
    def is_empty(self) -> bool:
        """Whether the database holds nothing of Placement yet."""
        return self.reference_revision is None and self.revision is None

    @property
    def is_up_to_date(self) -> bool:
        """Whether this server can serve it as is."""
        return self.revision == self.newest_revision

    @property
    def is_newer(self) -> bool:
        """Whether a later release has migrated the database."""
        return self.revision is not None and self.revision not in {self.newest_revision, *known_revisions()[1]}


def upgrade(
    engine: Engine, progress: Progress = silent, *, keep_journal: bool = True, patience: Patience = PATIENCE
) -> tuple[str, ...]:
    """Create, adopt or migrate a database; return notes for the operator, usually none.

    Safe to run in several processes at once: the first does the work, the others wait and find it done. Without
    ``keep_journal`` the journal's triggers are removed, but its rows stay.

    Raises:
        SchemaRefused: the database is in a state that must not be worked on; nothing was changed.
        Unavailable, MaintenanceFailed: as ``maintenance.exclusively``.
    """
    with exclusively(engine, patience) as connection:
        _refuse_newer(connection)
        reference_schema.bring_up_to_date(connection)
        if _revision(connection) != _newest():
            progress("Bringing the tables up to date", 0.1)
            from alembic import command  # noqa: PLC0415 - large

            command.upgrade(_alembic(connection), "head")
            if reference_schema.revision(connection) is None:
                reference_schema.stamp(connection, reference_schema.HEAD)
        sync_standard_names(connection)  # before there is a journal: what every database has is no change
        if providers_without_root(connection):
            progress("Giving a root to the providers of releases before Rocky", 0.4)
            set_roots(connection, wrong_roots(connection))
        notes = _with_triggers(connection, progress) + _with_journal(connection, wanted=keep_journal)
        return (*notes, *odd_rows(connection))


def release(engine: Engine, progress: Progress = silent) -> bool:
    """Remove everything of ours and so hand the database back to the reference; tell whether there was anything.

    Raises:
        SchemaRefused: a newer release of this server has upgraded the database.
        Unavailable, MaintenanceFailed: as ``maintenance.exclusively``.
    """
    with exclusively(engine) as connection:
        _refuse_newer(connection)
        if _revision(connection) is None:
            return False
        progress("Removing triggers and tables of this server", 0)
        from alembic import command  # noqa: PLC0415 - large

        command.downgrade(_alembic(connection), "base")
        connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")
        return True


def current(engine: Engine) -> SchemaState:
    """Return the state of a database."""
    with looking(engine) as connection:
        return SchemaState(
            kind=_kind(connection),
            reference_revision=reference_schema.revision(connection),
            revision=_revision(connection),
            newest_revision=_newest(),
            keeps_usage=kept_usage.triggers_in_place(connection),
            keeps_journal=journal.triggers_in_place(connection),
        )


def has_journal(engine: Engine) -> bool:
    """Return whether there is a journal that this release can read, even if nothing is written to it any more."""
    with looking(engine) as connection:
        return all(inspect(connection).has_table(table.name) for table in (placement_journal, placement_former_names))


def stamp(engine: Engine, revision: str) -> None:
    """Set the revision in the reference's version table, and nothing else."""
    with exclusively(engine) as connection:
        reference_schema.stamp(connection, revision)


def _with_triggers(connection: Connection, progress: Progress) -> tuple[str, ...]:
    if kept_usage.triggers_in_place(connection):
        return ()
    progress(f"Counting the usage of {_row_count(connection, allocations):,} allocations", 0.6)
    try:
        kept_usage.install(connection)
    except TriggersRefused as refused:
        return (refused.message,)
    return ()


def _with_journal(connection: Connection, *, wanted: bool) -> tuple[str, ...]:
    if not wanted:
        if journal.some_are_there(connection):
            journal.remove(connection)
    elif not journal.triggers_in_place(connection):
        try:
            journal.bring_up_to_date(connection)
        except TriggersRefused as refused:
            return (refused.message,)
    return ()


def _refuse_newer(connection: Connection) -> None:
    present = _revision(connection)
    newest, older = known_revisions()
    if present is not None and present not in {newest, *older}:
        raise SchemaRefused(
            f"The database was upgraded by a newer release of this server (revision {present}; this one knows "
            f"{_newest()}). Nothing was changed."
        )


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision: str | None = connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
    return revision


def _newest() -> str:
    return known_revisions()[0]


def _alembic(connection: Connection) -> "Config":
    """Return an Alembic configuration that needs no file."""
    from alembic.config import Config  # noqa: PLC0415 - large, and only needed for migrations

    config = Config()
    config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _kind(connection: Connection) -> str:
    if connection.dialect.name == "sqlite":
        return f"SQLite {connection.execute(text('SELECT sqlite_version()')).scalar_one()}"
    version = connection.execute(text("SELECT version()")).scalar_one()
    return str(version).split(" on ", maxsplit=1)[0]


def _row_count(connection: Connection, counted: Table) -> int:
    return connection.execute(select(func.count()).select_from(counted)).scalar_one()
