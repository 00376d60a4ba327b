"""Compares a few random trees of the cached cloud with the tables, again and again.

Caches follow the journal, so whoever writes past its triggers leaves them wrong. One wrong tree is enough to drop
everything. Kept usage that is wrong shows as well, since nothing that triggers write is compared with.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from placement.cloud.columns import CloudColumns
from placement.errors import PlacementError
from placement.services.cloud_cache import cache_of
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database, Transaction, reads
from placement.store.journal.triggers import doubt_usage
from placement.store.search.cloud_rows import cloud_rows, newest_root, rows_from_tables

LOG = logging.getLogger(__name__)

TREES = 5
"""How many to compare at once, besides the newest."""

EVERY_S = 1.0

EXAMPLES = 3
"""How many rows to log of each side."""

Shown = Sequence[tuple[float, ...]]


class Difference(NamedTuple):
    """The rows of some trees that only the columns or only the tables have, and whether kept usage differs."""

    cached: Shown
    stored: Shown
    is_of_usage: bool


def cloud_check(database: Database) -> BackgroundWork:
    """Return the work of comparing what a worker has cached."""
    return BackgroundWork(lambda: compare_some(database), name="cloud check", first_s=EVERY_S, every_s=EVERY_S)


def compare_some(database: Database) -> None:
    """Compare a few trees of a database and of its standby; at the first difference, drop all that is cached of it."""
    for checked in (database, *([database.standby.database] if database.standby else [])):
        if checked.cloud_cache is None:
            continue
        try:
            difference = _difference(checked)
        except PlacementError as error:
            LOG.info("Cached trees could not be compared with the tables: %s", error.message)
            continue
        if difference is not None:
            _drop(checked, difference)


def _drop(database: Database, difference: Difference) -> None:
    LOG.error(
        "What is cached of some provider trees is not what the tables hold: %s instead of %s. Somebody may write past "
        "the triggers. All that is cached is dropped%s; run 'placement db check'.",
        difference.cached[:EXAMPLES],
        difference.stored[:EXAMPLES],
        ", and usage is summed" if difference.is_of_usage else "",
    )
    if difference.is_of_usage:
        doubt_usage(database)
    cache_of(database).history.drop()
    database.note_drop("difference")


@reads
def _difference(tx: Transaction) -> Difference | None:
    history = cache_of(tx.database).history
    version, newest = history.version(tx), newest_root(tx)
    sample = version and history.random_trees(version, TREES, also=() if newest is None else (newest,))
    if not sample:
        return None
    columns, roots = sample
    summed = columns.summed  # Requests sum further classes meanwhile.
    cached = columns.shown(roots, summed)
    stored = CloudColumns.from_rows(rows_from_tables(tx, roots)).shown(roots, summed)
    if cached == stored:
        return None
    kept = CloudColumns.from_rows(cloud_rows(tx, roots)).shown(roots, summed)
    return Difference(_without(cached, stored), _without(stored, cached), kept != stored)


def _without(rows: Shown, excluded: Shown) -> Shown:
    return [row for row in rows if row not in excluded]
