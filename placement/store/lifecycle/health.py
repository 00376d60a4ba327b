"""What a database must have before a server may use it: this release's schema or a later one, and standard names.

The revisions of the migrations are read from their files without importing Alembic, which is large.
"""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import column, inspect, select, table, text

import placement
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.completeness import TriggersFound, triggers_found
from placement.store.tables import VERSION_TABLE, metadata, resource_classes

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
        "mariadb": "SELECT @@max_connections",
    }.get(tx.dialect)
    return None if query is None else int(tx.execute(text(query)).scalar_one())


def _is_enough(revisions: Sequence[str]) -> bool:
    """Tell whether a database is at our newest revision, or at one that only a later release knows.

    Later releases expand the schema before they contract it, so both releases can share a database during an upgrade.
    """
    newest, older = known_revisions()
    return newest in revisions or any(revision not in older for revision in revisions)


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
        found = {match["name"]: match["value"] for match in _REVISION.finditer(path.read_text(encoding="utf-8"))}
        every.add(found["revision"])
        before.add(found["down_revision"])
    (newest,) = every - before
    assert newest is not None, "a migration has no revision"
    return newest, frozenset(name for name in before if name is not None)
