"""Lists of providers contain exactly those that a plain loop over all of them selects, on every kind of database."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from placement.domain.inventory import Inventory
from placement.domain.provider import ProviderFilter
from placement.services.inventories import NewInventories, replace_inventories
from placement.services.marks import replace_provider_traits
from placement.services.providers import create_provider, providers
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.provider_list import conditions_of
from placement.store.tables import resource_providers
from tests.store.rows import allocate, run

CLASSES = {"VCPU": 0, "MEMORY_MB": 1, "DISK_GB": 2}
TRAITS = ("HW_CPU_X86_AVX", "HW_CPU_X86_SSE", "STORAGE_DISK_SSD", "HW_NUMA_ROOT")
AGGREGATES = tuple(f"aaaaaaaa-0000-4000-8000-00000000000{number}" for number in range(4))


@dataclass(frozen=True)
class Known:
    """A provider as the test knows it."""

    uuid: str
    name: str
    root: str
    inventories: dict[str, Inventory]
    used: dict[str, int]
    traits: frozenset[str]
    aggregates: frozenset[str] = field(default=frozenset())


def some(choice: random.Random, values: Sequence[str], most: int) -> frozenset[str]:
    return frozenset(choice.sample(values, choice.randint(0, most)))


def random_inventory(choice: random.Random) -> Inventory:
    total = choice.randint(1, 20)
    return Inventory(
        total=total,
        reserved=choice.choice([0, 0, choice.randint(0, total)]),
        min_unit=choice.choice([1, 1, 2, 3]),
        max_unit=choice.choice([2**31 - 1, 2**31 - 1, 5, 8]),
        step_size=choice.choice([1, 1, 2, 3]),
        allocation_ratio=choice.choice([1.0, 1.0, 0.5, 1.5, 16.0]),
    )


def random_cloud(choice: random.Random, count: int) -> list[Known]:
    cloud: list[Known] = []
    for number in range(count):
        uuid = f"00000000-0000-4000-8000-{number:012}"
        root = choice.choice([known.root for known in cloud] + [uuid] * (len(cloud) // 2 + 1))
        inventories = {name: random_inventory(choice) for name in sorted(some(choice, list(CLASSES), 3))}
        used = {name: choice.randint(0, 12) for name in inventories if choice.random() < 0.6}
        traits, aggregates = some(choice, TRAITS, 3), some(choice, AGGREGATES, 2)
        cloud.append(Known(uuid, f"name {number}", root, inventories, used, traits, aggregates))
    return cloud


def store_cloud(database: Database, cloud: list[Known]) -> None:
    for known in cloud:
        parent = None if known.root == known.uuid else known.root
        create_provider(database, uuid=known.uuid, name=known.name, parent_uuid=parent)
        new = NewInventories(known.inventories, may_be_all_reserved=True)
        replace_inventories(database, known.uuid, new, generation=0)
        replace_provider_traits(database, known.uuid, known.traits, generation=1)
    with database.engine.begin() as connection:
        for number, uuid in enumerate(AGGREGATES, 1):
            run(connection, f"INSERT INTO placement_aggregates (id, uuid) VALUES ({number}, '{uuid}')")
        for id_, known in enumerate(cloud, 1):
            for uuid in sorted(known.aggregates):
                number = AGGREGATES.index(uuid) + 1
                run(
                    connection,
                    "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) "
                    f"VALUES ({id_}, {number})",
                )
            # In two parts, because usage is a sum.
            for part in (0, 1):
                allocate(
                    connection,
                    f"consumer {id_}",
                    {(id_, CLASSES[name]): (amount + part) // 2 for name, amount in known.used.items()},
                )


def random_filter(choice: random.Random, cloud: list[Known]) -> ProviderFilter:
    def maybe(share: float) -> bool:
        return choice.random() < share

    def alternatives(values: Sequence[str]) -> list[frozenset[str]]:
        return [some(choice, values, 2) or frozenset(values[:1]) for _ in range(choice.choice([1, 1, 2, 3]))]

    return ProviderFilter(
        name=choice.choice(cloud).name if maybe(0.1) else None,
        uuid=choice.choice(cloud).uuid if maybe(0.1) else None,
        in_tree=choice.choice(cloud).uuid if maybe(0.3) else None,
        resources={name: choice.randint(1, 12) for name in sorted(some(choice, list(CLASSES), 2))},
        required=alternatives(TRAITS) if maybe(0.4) else (),
        forbidden=some(choice, TRAITS, 2) if maybe(0.3) else frozenset(),
        member_of=alternatives(AGGREGATES) if maybe(0.4) else (),
        forbidden_aggregates=some(choice, AGGREGATES, 2) if maybe(0.3) else frozenset(),
    )


def passes(known: Known, wanted: ProviderFilter, roots: dict[str, str]) -> bool:
    """Return whether a provider passes a filter, computed in plain Python."""
    inventories = {name: known.inventories.get(name) for name in wanted.resources}
    return (
        wanted.name in (None, known.name)
        and wanted.uuid in (None, known.uuid)
        and (wanted.in_tree is None or roots[wanted.in_tree] == known.root)
        and all(names & known.traits for names in wanted.required)
        and not wanted.forbidden & known.traits
        and all(uuids & known.aggregates for uuids in wanted.member_of)
        and not wanted.forbidden_aggregates & known.aggregates
        and all(
            inventory is not None and inventory.fits(wanted.resources[name], known.used.get(name, 0))
            for name, inventory in inventories.items()
        )
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_list_finds_what_a_plain_loop_finds(migrated: Database, seed: int) -> None:
    """Once with kept usage, once with sums; most filters select some and exclude some."""
    choice = random.Random(seed)
    cloud = random_cloud(choice, 25)
    store_cloud(migrated, cloud)
    roots = {known.uuid: known.root for known in cloud}
    telling = 0
    for _ in range(150):
        wanted = random_filter(choice, cloud)
        expected = [known.uuid for known in cloud if passes(known, wanted, roots)]
        telling += 0 < len(expected) < len(cloud)
        for migrated.keeps_usage in (True, False):
            found = providers(migrated, wanted)
            assert [row[0] for row in found.rows] == expected, wanted
            assert (found.modified is None) == (not expected)
    assert telling > 50


def thousands_of_hosts(connection: Connection) -> None:
    """Write 3,000 providers with a class, traits and an aggregate, and analyse them for PostgreSQL's planner."""
    of_each = "FROM resource_providers"
    run(
        connection,
        "INSERT INTO resource_providers (uuid, name, generation) "
        "SELECT gen_random_uuid(), 'host' || number, 0 FROM generate_series(1, 3000) AS number",
        "UPDATE resource_providers SET root_provider_id = id",
        "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, "
        f"step_size, allocation_ratio) SELECT id, class_id, 8, 0, 1, 8, 1, 1 {of_each}, "
        "generate_series(0, 1) AS class_id",
        f"INSERT INTO resource_provider_traits (resource_provider_id, trait_id) SELECT id, trait_id {of_each}, "
        "generate_series(1, 2) AS trait_id",
        f"INSERT INTO placement_aggregates (uuid) VALUES ('{AGGREGATES[0]}'), ('{AGGREGATES[1]}')",
        "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) "
        f"SELECT id, aggregate_id {of_each}, generate_series(1, 2) AS aggregate_id",
        "ANALYZE",
    )


def compared_in_vain(plan: dict[str, Any]) -> int:
    """Return how many pairs of rows the joins of a plan compared without a match."""
    own: int = plan.get("Rows Removed by Join Filter", 0) * plan["Actual Loops"]
    return own + sum(compared_in_vain(inner) for inner in plan.get("Plans", ()))


@reads
def plan_of(tx: Transaction, wanted: ProviderFilter, trait_ids: dict[str, int]) -> dict[str, Any]:
    conditions = conditions_of(
        tx, wanted, class_ids={name: CLASSES[name] for name in wanted.resources}, trait_ids=trait_ids
    )
    statement = (
        select(resource_providers.c.id)
        .where(*conditions)
        .compile(dialect=tx.connection.dialect, compile_kwargs={"literal_binds": True})
    )
    explained = tx.connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
    plan: dict[str, Any] = explained.scalar_one()[0]["Plan"]
    return plan


def test_filters_together_do_not_compare_everybody_with_everybody(postgresql: Database) -> None:
    with postgresql.engine.begin() as connection:
        thousands_of_hosts(connection)
        trait_ids = {name: id_ for id_, name in connection.execute(text("SELECT id, name FROM traits WHERE id < 3"))}
    wanted = ProviderFilter(
        resources={"VCPU": 1, "MEMORY_MB": 1},
        required=[frozenset({name}) for name in trait_ids],
        member_of=[frozenset({uuid}) for uuid in AGGREGATES[:2]],
    )
    plan = plan_of(postgresql, wanted, trait_ids)
    assert plan["Actual Rows"] == 3000
    assert compared_in_vain(plan) < 30_000
