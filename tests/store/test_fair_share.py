"""The inputs of fair shares on each kind of database: plain integers, even where nobody owns anything."""

import pytest
from sqlalchemy import text

from placement.store.connection.database import Database, Transaction, reads
from placement.store.fair_share import UsageScope, holdings, totals, usage_by_owner
from tests.store.rows import MEMORY_MB, VCPU, add_providers, allocate, run

INVENTORY = (
    "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, "
    "allocation_ratio) VALUES (:provider, :class_, :total, :reserved, 1, 100, 1, :ratio)"
)
CLASSES = (VCPU, MEMORY_MB)


def filled(database: Database) -> None:
    """Three providers, the third in an aggregate; p has allocations on two, as does a consumer without a row."""
    shapes = [(1, 10, 3, 1.5), (2, 10, 3, 1.5), (3, 5, 9, 1.0)]
    with database.engine.begin() as connection:
        add_providers(connection, 3)
        rows = [
            {"provider": id_, "class_": VCPU, "total": total, "reserved": reserved, "ratio": ratio}
            for id_, total, reserved, ratio in shapes
        ]
        connection.execute(text(INVENTORY), rows)
        run(
            connection,
            "INSERT INTO projects (id, external_id) VALUES (1, 'p')",
            "INSERT INTO consumer_types (id, name) VALUES (1, 'JOB')",
            "INSERT INTO consumers (uuid, project_id, user_id, consumer_type_id) VALUES ('c', 1, 1, 1)",
            "INSERT INTO placement_aggregates (id, uuid) VALUES (7, 'agg')",
            "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) VALUES (3, 7)",
        )
        allocate(connection, "c", {(1, VCPU): 2, (3, VCPU): 1, (3, MEMORY_MB): 64})
        allocate(connection, "nobody", {(2, VCPU): 4})


@reads
def seen(tx: Transaction, aggregate: str | None) -> tuple[object, ...]:
    by_type = UsageScope("consumer_type", CLASSES, aggregate)
    return (
        totals(tx, CLASSES, aggregate),
        sorted(usage_by_owner(tx, UsageScope("project", CLASSES, aggregate)), key=repr),
        sorted(usage_by_owner(tx, by_type), key=repr),
        sorted(holdings(tx, by_type, class_ids=[MEMORY_MB])),
    )


def owned_by(name: str | None, vcpus: int, memory: int = 0) -> list[tuple[object, ...]]:
    return [(name, class_id, amount) for class_id, amount in ((VCPU, vcpus), (MEMORY_MB, memory)) if amount]


@pytest.mark.parametrize(
    ("aggregate", "capacity", "vcpus", "others"),
    [(None, {VCPU: 10 + 10}, 3, owned_by(None, 4)), ("agg", {VCPU: 0}, 1, []), ("other", {}, 0, [])],
)
def test_all_providers_or_those_of_an_aggregate_count_each_rounded_as_for_claims(
    database: Database, aggregate: str | None, capacity: dict[int, int], vcpus: int, others: list
) -> None:
    filled(database)
    memory = 64 if vcpus else 0
    held = [("c", *row) for row in owned_by("JOB", vcpus, memory)]
    expected = (capacity, owned_by("p", vcpus, memory) + others, owned_by("JOB", vcpus, memory) + others, held)
    found = seen(database, aggregate)
    assert found == expected
    assert {type(row[-1]) for rows in found[1:] for row in rows} <= {int}


OF_P = owned_by("p", 3, 64)


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"types": ["JOB"]}, OF_P),
        ({"types": ["unknown"]}, [(None, VCPU, 4)]),
        ({"types": ["OTHER"]}, []),
        ({"consumers": ["c", "d"]}, OF_P),
        ({"consumers": ["c"], "types": ["unknown"]}, []),
    ],
)
def test_only_some_consumers_or_types_of_them_may_count(database: Database, only, expected) -> None:
    filled(database)
    usage = reads(usage_by_owner)(database, UsageScope("project", CLASSES, **only))
    assert sorted(usage, key=repr) == expected
