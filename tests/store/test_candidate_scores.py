"""Total capacity and usage of trees, compared with sums computed in Python."""

import random
from collections import defaultdict
from dataclasses import replace

import pytest
from sqlalchemy import insert, text

from placement.cloud.columns import CloudColumns
from placement.domain.inventory import Inventory
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.cloud_rows import cloud_rows
from placement.store.tables import inventories
from tests.store.rows import DISK_GB, MEMORY_MB, VCPU, add_providers, allocate

CLASSES = (VCPU, MEMORY_MB, None)
# Halves and the like: MariaDB's FLOAT has single precision, so 0.9 is displayed as 0.9 but counts as 0.89999998.
RATIOS = (0.75, 1.0, 1.5, 16.0, 0.0)


@reads
def sums(tx: Transaction, classes, others) -> list[tuple[int, ...]]:
    return CloudColumns.from_rows(cloud_rows(tx)).sum_rows(classes, others)


def written(database: Database, chance: random.Random) -> dict[int, dict[str, dict[int, int]]]:
    """Write some trees with inventories and allocations; return the capacity and usage of each class by root."""
    sums: dict = defaultdict(lambda: {"capacity": defaultdict(int), "used": defaultdict(int)})
    with database.engine.begin() as connection:
        providers = add_providers(connection, 30)
        root_of = {provider: provider if provider <= 8 else chance.randint(1, 8) for provider in providers}
        for provider, root in root_of.items():
            connection.execute(text(f"UPDATE resource_providers SET root_provider_id = {root} WHERE id = {provider}"))
            for class_ in (VCPU, MEMORY_MB, DISK_GB):
                if chance.random() < 0.6:
                    found = Inventory(chance.randint(1, 40), allocation_ratio=chance.choice(RATIOS))
                    found = replace(found, reserved=chance.randint(0, found.total))
                    columns = {name: getattr(found, name) for name in Inventory.__slots__}
                    row = {"resource_provider_id": provider, "resource_class_id": class_, **columns}
                    connection.execute(insert(inventories), row)
                    sums[root]["capacity"][class_] += found.capacity
                    for consumer in range(chance.randint(0, 2)):
                        used = chance.randint(1, 9)
                        allocate(connection, f"c{provider}-{consumer}", {(provider, class_): used})
                        sums[root]["used"][class_] += used
    return sums


@pytest.mark.parametrize("keeps_usage", [True, False])
def test_sums_are_those_of_all_inventories_and_allocations_of_a_tree(migrated, keeps_usage):
    expected = written(migrated, random.Random(5))
    migrated.keeps_usage = keeps_usage
    found = {row[0]: tuple(row[1:]) for row in sums(migrated, CLASSES, [])}
    assert found == {
        root: tuple(of[what].get(class_, 0) for what in ("capacity", "used") for class_ in CLASSES)
        for root, of in expected.items()
        if of["capacity"].keys() & {*CLASSES}
    }
    assert all(isinstance(amount, int) for sums in found.values() for amount in sums)


def test_trees_are_found_by_other_classes_too(migrated):
    expected = written(migrated, random.Random(7))
    found = {row[0]: tuple(row[1:]) for row in sums(migrated, [None], [DISK_GB])}
    assert found == {root: (0, 0) for root, of in expected.items() if DISK_GB in of["capacity"]}
    assert {tuple(row) for row in sums(migrated, [], [DISK_GB])} == {(root,) for root in found}
