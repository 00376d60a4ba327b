"""The life cycle of a database's schema: create, adopt from the reference, upgrade, release.

None of that runs while requests are served, except for the look at a database's health. The revisions of the migrations
are read from their files without importing Alembic, which is large.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, Engine, column, func, inspect, select, table, text

import placement
from placement.store import kept_usage
from placement.store.checks.audit import odd_rows
from placement.store.connection.database import Transaction
from placement.store.journal import triggers as journal
from placement.store.journal.triggers import TriggersFound, triggers_found
from placement.store.lifecycle import reference_schema
from placement.store.lifecycle.maintenance import PATIENCE, Patience, Progress, exclusively, looking, silent
from placement.store.lifecycle.reference_schema import (
    SchemaRefused,
    providers_without_root,
    set_roots,
    sync_standard_names,
    wrong_roots,
)
from placement.store.tables import (
    VERSION_TABLE,
    allocations,
    metadata,
    placement_former_names,
    placement_journal,
    resource_classes,
)
from placement.store.trigger_set import TriggersRefused

if TYPE_CHECKING:
    from alembic.config import Config

NEEDED = frozenset({VERSION_TABLE, *metadata.tables})
NO_SCHEMA = "the database holds no tables of this server: run 'placement db upgrade'"
OLD_SCHEMA = "the schema is older than this release needs: run 'placement db upgrade'"
NO_NAMES = "the standard resource classes are missing: run 'placement db upgrade'"


_REVISION = re.compile(r'^(?P<name>revision|down_revision)(?:: [^=]+)? = (?:"(?P<value>\w+)"|None)$', re.MULTILINE)


class Health(NamedTuple):
    """What is wrong with a database, if anything, and else its triggers."""

    problem: str | None
    triggers: TriggersFound | None = None


def health(tx: Transaction) -> Health:
    """Check the schema revision, the standard names and the triggers, with a few small queries."""
    if not set(inspect(tx.connection).get_table_names()) >= NEEDED:
        return Health(NO_SCHEMA)
    revisions = tx.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalars().all()
    if not _is_enough(revisions):
        return Health(OLD_SCHEMA)
    if tx.execute(select(resource_classes.c.id).limit(1)).first() is None:
        return Health(NO_NAMES)
    return Health(None, triggers_found(tx))


def connection_limit(tx: Transaction) -> int | None:
    """Return the database server's limit on connections, or None for SQLite."""
    query = {
        "postgresql": "SELECT current_setting('max_connections')::int"
        " - current_setting('superuser_reserved_connections')::int",
        "mysql": "SELECT @@max_connections",
    }.get(tx.dialect)
    return None if query is None else int(tx.execute(text(query)).scalar_one())


def _is_enough(revisions: Sequence[str]) -> bool:
    """Tell whether a database is at our newest revision, or at one that only a later release knows.

    Later releases expand the schema before they contract it, so both releases can share a database during an upgrade.
    """
    _newest, older = known_revisions()
    return any(revision not in older for revision in revisions)


def migrations() -> Path:
    """Return the directory of the migrations: inside the package if installed, beside it in a checkout."""
    package = Path(placement.__file__).parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


@functools.cache
def known_revisions() -> tuple[str, frozenset[str]]:
    """Return the newest revision of this release, and all earlier ones."""
    before: set[str | None] = set()
    every: set[str | None] = set()
    for path in (migrations() / "versions").glob("*.py"):
        declared = {match["name"]: match["value"] for match in _REVISION.finditer(path.read_text(encoding="utf-8"))}
        every.add(declared["revision"])
        before.add(declared["down_revision"])
    (newest,) = every - before
    assert newest is not None, "a migration has no revision"
    return newest, frozenset(name for name in before if name is not None)


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
        return _is_later(self.revision)


def upgrade(
    engine: Engine, progress: Progress = silent, *, keep_journal: bool = True, patience: Patience = PATIENCE
) -> tuple[str, ...]:
    """Create, adopt or migrate a database; return notes for the operator, usually none. SchemaRefused changes nothing.

    Safe to run in several processes at once: the first does the work, the others wait and find it done. Without
    ``keep_journal`` the journal's triggers are removed, but its rows stay. Raises as ``maintenance.exclusively``.
    """
    with exclusively(engine, patience) as connection:
        _refuse_newer(connection)
        reference_schema.bring_up_to_date(connection)
        if _revision(connection) != known_revisions()[0]:
            progress("Bringing the tables up to date", 0.1)
            from alembic import command  # noqa: PLC0415 - large

            command.upgrade(_alembic(connection), "head")
            if reference_schema.revision(connection) is None:
                reference_schema.stamp(connection, reference_schema.HEAD)
        sync_standard_names(connection)  # before there is a journal: what every database has is no change
        if providers_without_root(connection):
            progress("Giving a root to the providers of releases before Rocky", 0.4)
            set_roots(connection, wrong_roots(connection))
        notes = _with_triggers(connection, progress) + _with_journal(connection, is_kept=keep_journal)
        return (*notes, *odd_rows(connection))


def release(engine: Engine, progress: Progress = silent) -> bool:
    """Hand the database back to the reference, without anything of ours; tell whether there was anything.

    SchemaRefused if a newer release has upgraded it; else raises as ``maintenance.exclusively``.
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
            newest_revision=known_revisions()[0],
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
    count = connection.execute(select(func.count()).select_from(allocations)).scalar_one()
    progress(f"Counting the usage of {count:,} allocations", 0.6)
    try:
        kept_usage.install(connection)
    except TriggersRefused as refused:
        return (refused.message,)
    return ()


def _with_journal(connection: Connection, *, is_kept: bool) -> tuple[str, ...]:
    if not is_kept:
        if journal.some_are_there(connection):
            journal.remove(connection)
    elif not journal.triggers_in_place(connection):
        try:
            journal.bring_up_to_date(connection)
        except TriggersRefused as refused:
            return (refused.message,)
    return ()


def _is_later(revision: str | None) -> bool:
    """Tell whether a revision is one of a later release."""
    newest, older = known_revisions()
    return revision is not None and revision not in {newest, *older}


def _refuse_newer(connection: Connection) -> None:
    if _is_later(present := _revision(connection)):
        raise SchemaRefused(
            f"The database was upgraded by a newer release of this server (revision {present}; this one knows "
            f"{known_revisions()[0]}). Nothing was changed."
        )


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision: str | None = connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
    return revision


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
