"""The revisions of our migrations, read from their files without importing Alembic, which is large.

This is all a server needs of them if its database is up to date.
"""

import functools
import re
from pathlib import Path

import placement

_REVISION = re.compile(r'^(?P<name>revision|down_revision)(?:: [^=]+)? = (?:"(?P<value>\w+)"|None)$', re.MULTILINE)


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
