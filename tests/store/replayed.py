"""The journal applied to empty tables, which must give the contents of the database."""

import json
import math
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

Tables = dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]
"""Rows by table and key."""

_QUERIES = {
    "allocation": "SELECT id, resource_provider_id, resource_class_id, consumer_id, used FROM allocations",
    "inventory": "SELECT id, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, "
    "allocation_ratio FROM inventories",
    "trait": "SELECT trait_id, resource_provider_id FROM resource_provider_traits",
    "aggregate": "SELECT aggregate_id, resource_provider_id FROM resource_provider_aggregates",
    "provider": "SELECT id, uuid, name, parent_provider_id, root_provider_id, generation FROM resource_providers",
    "consumer": "SELECT id, uuid, generation, project_id, user_id, consumer_type_id FROM consumers",
}
_NOT_REPLAYED = ("journal", "class_name", "trait_name")
_KEY_LENGTH = {"allocation": 1, "inventory": 1, "trait": 2, "aggregate": 2, "provider": 1, "consumer": 1}
RAW = "SELECT * FROM placement_journal ORDER BY id"


def tables_of(connection: Connection) -> Tables:
    """Return the rows that the journal watches."""
    return {kind: _rows(connection, query, _KEY_LENGTH[kind]) for kind, query in _QUERIES.items()}


def _rows(connection: Connection, query: str, key_length: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {tuple(row[:key_length]): tuple(row[key_length:]) for row in connection.execute(text(query))}


def journal_rows(connection: Connection) -> list[Any]:
    """Return the journal's rows by id."""
    return list(connection.execute(text(RAW)))


def replayed(rows: Iterable[Any], tables: Tables | None = None) -> Tables:
    """Apply rows of the journal, in order, to the given tables, or to empty ones."""
    tables = {kind: {} for kind in _QUERIES} if tables is None else tables
    for row in rows:
        if row.kind not in _NOT_REPLAYED:
            _apply(row, tables)
    return tables


def _apply(row: Any, tables: Tables) -> None:
    kind = "provider" if row.kind == "generation" else row.kind
    key = (row.object_id, row.resource_provider_id)[: _KEY_LENGTH[kind]]
    if row.action == "deleted":
        del tables[kind][key]
        return
    assert (key in tables[kind]) == (row.action == "changed"), row
    tables[kind][key] = _VALUES[kind](row, tables[kind].get(key))


def _inventory(row: Any, _before: Any) -> tuple[Any, ...]:
    new = json.loads(row.new_row)
    return row.resource_provider_id, row.resource_class_id, *new.values()


def _provider(row: Any, before: Any) -> tuple[Any, ...]:
    place = before[1:4] if row.new_row is None else tuple(json.loads(row.new_row).values())
    return row.provider_uuid, *place, row.generation


_VALUES = {
    "allocation": lambda row, _: (
        row.resource_provider_id, row.resource_class_id, row.consumer_uuid, row.new_amount
    ),
    "inventory": _inventory,
    "trait": lambda _row, _: (),
    "aggregate": lambda _row, _: (),
    "provider": _provider,
    "consumer": lambda row, _: (
        row.consumer_uuid, row.generation, row.project_id, row.user_id, row.consumer_type_id
    ),
}  # fmt: skip


def assert_same(found: Tables, expected: Tables) -> None:
    """Compare row by row; MariaDB's ratios have about six digits."""
    for kind, rows in expected.items():
        assert found[kind].keys() == rows.keys(), kind
        for key, row in rows.items():
            assert all(map(_equal, found[kind][key], row)), (kind, key, found[kind][key], row)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6)
    return bool(one == other)
