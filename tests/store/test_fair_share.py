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
    return (
        totals(tx, CLASSES, aggregate),
        sorted(usage_by_owner(tx, UsageScope("project", CLASSES, aggregate)), key=repr),
        sorted(usage_by_owner(tx, UsageScope("consumer_type", CLASSES, aggregate)), key=repr),
        sorted(holdings(tx, UsageScope("consumer_type", CLASSES, aggregate), class_ids=[MEMORY_MB])),
    )


def test_all_providers_count_each_rounded_as_for_claims(database: Database) -> None:
    filled(database)
    found = seen(database, None)
    owned = [(VCPU, 3), (MEMORY_MB, 64)]
    assert found[0] == {VCPU: 10 + 10}
    assert found[1] == [("p", *owned[0]), ("p", *owned[1]), (None, VCPU, 4)]
    assert found[2] == [("JOB", *owned[0]), ("JOB", *owned[1]), (None, VCPU, 4)]
    assert found[3] == [("c", "JOB", class_id, amount) for class_id, amount in owned]
    assert {type(row[-1]) for rows in found[1:] for row in rows} == {int}


def test_an_aggregate_is_a_part_of_it_and_one_that_does_not_exist_has_nothing(database: Database) -> None:
    filled(database)
    found = seen(database, "agg")
    assert found[0] == {VCPU: 0}
    assert found[1] == [("p", VCPU, 1), ("p", MEMORY_MB, 64)]
    assert found[3] == [("c", "JOB", VCPU, 1), ("c", "JOB", MEMORY_MB, 64)]
    assert seen(database, "other") == ({}, [], [], [])


OF_P = [("p", VCPU, 3), ("p", MEMORY_MB, 64)]


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
