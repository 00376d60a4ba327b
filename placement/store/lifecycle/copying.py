"""Copy everything from one database into another, of any kind, and compare the two row by row."""

import math
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, zip_longest
from typing import Any

from sqlalchemy import Connection, Engine, Table, delete, func, insert, inspect, select, text

from placement.errors import PlacementError
from placement.store import kept_usage
from placement.store.journal import triggers as journal
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import Progress, exclusively, looking, silent
from placement.store.lifecycle.reference_schema import zero_is_an_id
from placement.store.tables import (
    metadata,
    placement_journal,
    provider_usages,
    resource_classes,
    resource_providers,
    traits,
)
from placement.store.trigger_set import TriggersRefused

ROWS_AT_ONCE = 1000
PRECISION = 1e-6
"""MariaDB stores allocation ratios with about six significant digits."""

_COPIED = tuple(table for table in metadata.sorted_tables if table is not provider_usages)
"""In order of foreign keys, targets first. Usage is not copied but counted."""
_FILLED_BY_UPGRADE = (resource_classes, traits, placement_journal)
_NOT_COPIED = placement_journal.c.commit_mark
"""Meaningful only on the server that assigned it (``store/journal/order.py``)."""


class CopyRefused(PlacementError):
    """The target is not empty, or holds something else than the source after the copy."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A table that was copied and verified, and its number of rows."""

    table: str
    rows: int


def copy(source: Engine, target: Engine, progress: Progress = silent) -> tuple[Copied, ...]:
    """Create the schema in an empty database, copy all rows of another into it, and compare the two.

    One snapshot of the source is copied in one transaction of the target (MariaDB commits earlier): on any failure the
    target is as empty as before. Ids are preserved. CopyRefused if the source has another schema, the target holds
    data, or the copy differs; else raises as ``maintenance.exclusively``.
    """
    state_of_source = schema.current(source)
    _refuse_other_schema(state_of_source)
    with looking(target) as connection:
        _refuse_data(connection)
    schema.upgrade(target)
    with looking(source) as origin, exclusively(target) as copied:
        _refuse_data(copied)
        keeps_usage = kept_usage.triggers_in_place(copied)
        kept_usage.remove(copied)  # usage is counted once at the end, not row by row
        journal.remove(copied)  # the journal is copied, rather than reporting every row as new
        for table in _FILLED_BY_UPGRADE:
            copied.execute(delete(table))
        # Each row is copied, and then compared.
        done = _RowsDone(progress, 2 * sum([_count(origin, table) for table in _COPIED]))
        for table in _COPIED:
            with zero_is_an_id(copied):
                rows = iter(_sent_rows(origin, copied, table))
                while chunk := list(islice(rows, ROWS_AT_ONCE)):
                    copied.execute(insert(table), chunk)
                    done.add(f"Copying {table.name}", len(chunk))
        _go_on_counting(copied)
        if keeps_usage:
            try:
                kept_usage.install(copied)
            except TriggersRefused as refused:
                raise CopyRefused(refused.message) from refused
        compared = tuple([_compared(origin, copied, table, done=done) for table in _COPIED])
        if state_of_source.keeps_journal:
            journal.resume(copied)
        return compared


def _refuse_other_schema(source: schema.SchemaState) -> None:
    if source.is_newer:
        raise CopyRefused(
            f"The source was upgraded by a newer release of this server (revision {source.revision}; this one "
            f"knows {source.newest_revision}): copy it with that release."
        )
    if not source.is_up_to_date:
        raise CopyRefused("The source has another schema than this release: run 'placement db upgrade' on it first.")


def _refuse_data(target: Connection) -> None:
    present = inspect(target).get_table_names()
    for table in _COPIED:
        if table.name not in present or table in _FILLED_BY_UPGRADE:
            continue
        if number := _count(target, table):
            raise CopyRefused(f"The target holds data already ({number} rows in {table.name}); nothing was copied.")

    if placement_journal.name in present and (number := journal.row_count(target)):
        raise CopyRefused(f"The target's journal holds {number} changes already; nothing was copied.")


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


class _RowsDone:
    """Tells which part of all rows is done."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def add(self, step: str, rows: int) -> None:
        """Count rows as done."""
        self._done += rows
        self._progress(step, min(1, self._done / max(1, self._total)))


def _sent_rows(origin: Connection, target: Connection, table: Table) -> Iterator[dict[str, Any]]:
    rows: Iterable[dict[str, Any]] = (row._asdict() for row in _rows(origin, table))
    if table is resource_providers:
        rows = _parents_first(list(rows))
    # MariaDB truncates timestamps to whole seconds, except for those of the journal.
    truncates = target.dialect.name == "mysql"
    for row in rows:
        if table is placement_journal:
            yield row | journal.mark_of_the_past(target)
        else:
            moments = {name: value for name, value in row.items() if truncates and isinstance(value, datetime)}
            yield row | {name: time.replace(microsecond=0) for name, time in moments.items()}


def _parents_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order providers so that each comes after its parent and its root, as foreign keys demand."""
    below: dict[int | None, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        below[row["parent_provider_id"]].append(row)
    ordered, waiting = [], deque(below[None])
    while waiting:
        row = waiting.popleft()
        ordered.append(row)
        waiting.extend(below[row["id"]])
    if len(ordered) < len(rows):
        raise CopyRefused("The trees of the source are damaged: run 'placement db check --repair' on it first.")
    return ordered


def _rows(connection: Connection, table: Table) -> Generator[Any, None, None]:
    copied = [column for column in table.c if column is not _NOT_COPIED]
    query = select(*copied).order_by(*table.primary_key.columns)
    with connection.execute(query, execution_options={"yield_per": ROWS_AT_ONCE}) as rows:
        yield from rows


def _go_on_counting(target: Connection) -> None:
    """Advance PostgreSQL's id sequences beyond the copied ids; the other databases do so by themselves."""
    if target.dialect.name != "postgresql":
        return
    for table in _COPIED:
        if "id" in table.c:
            highest = target.execute(select(func.max(table.c.id))).scalar()
            if highest is not None and highest > 0:
                statement = text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :highest)")
                target.execute(statement, {"table": table.name, "highest": highest})


def _compared(origin: Connection, target: Connection, table: Table, *, done: _RowsDone) -> Copied:
    """Compare a table on both sides; CopyRefused shows the first row that differs."""
    count = 0
    with closing(_rows(origin, table)) as before, closing(_rows(target, table)) as after:
        for old, new in zip_longest(before, after):
            if old is None or new is None or not all(map(_is_same, old, new)):
                raise CopyRefused(f"The copy of {table.name} differs: {_shown(old)} became {_shown(new)}.")
            count += 1
            if count % ROWS_AT_ONCE == 0:
                done.add(f"Comparing {table.name}", ROWS_AT_ONCE)
    done.add(f"Comparing {table.name}", count % ROWS_AT_ONCE)
    return Copied(table.name, count)


def _is_same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=PRECISION)
    if isinstance(old, datetime) and isinstance(new, datetime):
        return old == new or (0 in (old.microsecond, new.microsecond) and abs((old - new).total_seconds()) < 1)
    return bool(old == new)


def _shown(row: Any) -> str:
    return "nothing" if row is None else str(tuple(row))
