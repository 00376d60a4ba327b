"""Clouds as rows, with healthy hosts and, beside them, whatever the schema allows in a row."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    insert,
    update,
)

from placement.store.tables import (
    REFERENCE_TABLES,
    allocations,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)

HEALTHY, ODD = (1, 2), (11, 12, 13)
"""The ids of the roots of healthy trees, and of the providers whose rows are odd."""
SHARER = 21
VCPU, MEMORY_MB, DISK_GB, PGPU = 0, 1, 2, 12
ADDED = 70_000
"""Ids from this one on are those of added names."""
NOWHERE = 987_654_321
"""An id that no row has."""

WHOLE = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31))
RATIOS = (0.0, -1.0, 1e-300, 1e10, 4294967299.0, 3.4e38, 1e308, float("inf"), float("-inf"), float("nan"))
DATES = (datetime(1, 1, 1), datetime(1969, 12, 31, 23), datetime(9999, 12, 31, 23, 59, 59))
TEXTS = ("", " ", "x" * 36, "\u00e9\U0001f4a9", "<b>&\"'%s{}", "not-a-uuid", "CUSTOM_X")
LINKS = {"resource_provider_id", "root_provider_id", "parent_provider_id", "resource_class_id", "trait_id"}
LINKS |= {"aggregate_id", "project_id", "user_id", "consumer_type_id"}

DATED = ("created_at", "updated_at")
NAMES = (projects, users, consumer_types, placement_aggregates, resource_classes, traits)
OFTEN = (resource_providers, inventories, inventories, allocations, consumers)

Row = dict[str, Any]


def uuid_of(id_: int) -> str:
    """Return the uuid of the provider with an id, and of the consumer that holds it."""
    return str(uuid5(NAMESPACE_URL, f"odd {id_}"))


@dataclass
class OddCloud:
    """The rows of a cloud by table, and what is odd about them."""

    rows: dict[Table, list[Row]] = field(default_factory=dict)
    oddities: list[str] = field(default_factory=list)
    touched = False

    def store(self, connection: Connection) -> None:
        """Insert all rows; providers first without their links, which may be circular."""
        links = ("root_provider_id", "parent_provider_id")
        for table in REFERENCE_TABLES:
            rows = self.rows.get(table, ())
            for row in rows:
                now = {name: None if name in links else value for name, value in row.items()}
                connection.execute(insert(table), now)
            for row in rows if table is resource_providers else ():
                of_row = update(table).where(table.c.id == row["id"])
                connection.execute(of_row.values({name: row[name] for name in links}))


def healthy_cloud(trait_ids: dict[str, int]) -> OddCloud:
    """Return two healthy hosts, a sharing pool, and a third host that is healthy as well."""
    cloud = OddCloud({table: [] for table in REFERENCE_TABLES})
    cloud.rows[projects] = [{"id": 1, "external_id": "project"}]
    cloud.rows[users] = [{"id": 1, "external_id": "user"}]
    cloud.rows[consumer_types] = [{"id": 1, "name": "INSTANCE"}]
    cloud.rows[placement_aggregates] = [{"id": 1, "uuid": uuid_of(901)}, {"id": 2, "uuid": uuid_of(902)}]
    for root in HEALTHY:
        _add(cloud, root, root, None, {VCPU: 8, MEMORY_MB: 4096})
        _add(cloud, root + 100, root, root, {PGPU: 4})
    for number, id_ in enumerate(ODD):
        _add(
            cloud, id_, ODD[0], ODD[number - 1] if number else None, ({VCPU: 8, MEMORY_MB: 4096}, {PGPU: 4}, {})[number]
        )
    _add(cloud, SHARER, SHARER, None, {DISK_GB: 1000})
    for id_ in (*HEALTHY, ODD[0], SHARER):
        cloud.rows[resource_provider_aggregates].append({"resource_provider_id": id_, "aggregate_id": 1})
    for id_, name in ((SHARER, "MISC_SHARES_VIA_AGGREGATE"), (1, "HW_CPU_X86_VMX"), (ODD[0], "HW_CPU_X86_VMX")):
        cloud.rows[resource_provider_traits].append({"resource_provider_id": id_, "trait_id": trait_ids[name]})
    for number, (holder, class_id) in enumerate(((1, VCPU), (ODD[0], VCPU), (ODD[0], MEMORY_MB), (ODD[1], PGPU))):
        _hold(cloud, number + 1, holder, class_id)
    return cloud


def _add(cloud: OddCloud, id_: int, root: int, parent: int | None, stocks: dict[int, int]) -> None:
    row = {"id": id_, "uuid": uuid_of(id_), "name": f"provider {id_}", "generation": 1}
    cloud.rows[resource_providers].append({**row, "root_provider_id": root, "parent_provider_id": parent})
    for class_id, total in stocks.items():
        amounts = {"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}
        where = {"resource_provider_id": id_, "resource_class_id": class_id}
        cloud.rows[inventories].append({**where, **amounts, "allocation_ratio": 1.0})


def _hold(cloud: OddCloud, id_: int, provider: int, class_id: int) -> None:
    uuid = uuid_of(1000 + id_)
    named = {"project_id": 1, "user_id": 1, "consumer_type_id": 1, "generation": 1}
    cloud.rows[consumers].append({"id": id_, "uuid": uuid, **named})
    where = {"resource_provider_id": provider, "resource_class_id": class_id}
    cloud.rows[allocations].append({"id": id_, **where, "consumer_id": uuid, "used": 1})


def make_odd(cloud: OddCloud, random: Random, *, is_strict: bool) -> None:
    """Change some columns of rows of the odd host, or add rows.

    Args:
        cloud: a healthy cloud.
        random: decides which.
        is_strict: whether the database enforces foreign keys and has all numbers, as PostgreSQL does; SQLite does not.
    """
    for _ in range(random.choice((1, 1, 2, 4))):
        table = random.choice(OFTEN if random.random() < 0.8 else REFERENCE_TABLES)
        row = _chosen_row(cloud, table, random)
        columns = [column for column in table.columns if column.name not in ("id", *DATED)]
        for column in random.sample(columns, min(len(columns), random.choice((1, 1, 2, 3)))):
            _change(row, column, random, is_strict=is_strict)
        if random.random() < 0.2:
            _change(row, table.c[random.choice(DATED)], random, is_strict=is_strict)
        cloud.oddities.append(f"{table.name}: {row}")
    _drop_duplicates(cloud)


def leave_out(cloud: OddCloud) -> None:
    """Leave out whatever may be NULL in rows of the odd host, except its root, without which it is passed over."""
    for table, rows in cloud.rows.items():
        empty = {column.name: None for column in table.columns if column.nullable and column.name != "root_provider_id"}
        for row in _of_odd_host(table, rows):
            row.update(empty)


def lose_classes(cloud: OddCloud) -> None:
    """Let all allocations of the odd host be of a class that does not exist."""
    for row in _of_odd_host(allocations, cloud.rows[allocations]):
        row["resource_class_id"] = NOWHERE


def _change(row: Row, column: Column[Any], random: Random, *, is_strict: bool) -> None:
    if values := list(_values(column, is_strict=is_strict)):
        row[column.name] = random.choice(values)


def _chosen_row(cloud: OddCloud, table: Table, random: Random) -> Row:
    """Return a row of the odd host, or a new one."""
    if table in NAMES:
        name = {"name": "CUSTOM_ODD", "external_id": "odd", "uuid": uuid_of(NOWHERE)}
        row: Row = {"id": ADDED + len(cloud.rows[table]), **{key: name[key] for key in name if key in table.c}}
        cloud.rows[table].append(row)
        return row
    return random.choice(_of_odd_host(table, cloud.rows[table]))


def _of_odd_host(table: Table, rows: list[Row]) -> list[Row]:
    if table is consumers:
        return rows[1:]
    return [row for row in rows if row.get("resource_provider_id", row.get("id")) in ODD]


def _values(column: Column[Any], *, is_strict: bool) -> Iterator[Any]:
    """Yield what a column may contain."""
    if column.nullable:
        yield None
    if column.name in LINKS:
        # SQLite does not enforce foreign keys, but whoever writes here relies on the others doing so.
        yield from () if column.foreign_keys else (NOWHERE, -1, 2**31 - 1)
    elif column.name == "consumer_id":
        yield from (*TEXTS, uuid_of(NOWHERE))
    elif isinstance(column.type, Integer):
        yield from WHOLE
    elif isinstance(column.type, Float):
        yield from RATIOS if is_strict else RATIOS[:-1]
    elif isinstance(column.type, DateTime):
        yield from DATES
    elif isinstance(column.type, String):
        yield from TEXTS


def _drop_duplicates(cloud: OddCloud) -> None:
    """Drop rows that unique constraints forbid."""
    for table, rows in cloud.rows.items():
        unique = [one for one in table.constraints if isinstance(one, UniqueConstraint | PrimaryKeyConstraint)]
        seen: set[tuple[Any, ...]] = set()
        kept = []
        for row in rows:
            keys = [(one.name, *(row.get(column.name) for column in one.columns)) for one in unique]
            keys = [key for key in keys if None not in key[1:]]
            if not seen.intersection(keys):
                kept.append(row)
                seen.update(keys)
        cloud.rows[table] = kept
