"""Lists of providers contain exactly those that a plain loop over all of them selects, on every kind of database."""

from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from placement.domain.provider import ProviderFilter
from placement.services.providers import providers
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.provider_list import conditions_of
from placement.store.tables import resource_providers
from tests.small_clouds import AGGREGATES, CLASSES, TRAITS, Cloud, Node, load, random_cloud, random_sets, some
from tests.store.rows import MEMORY_MB, VCPU, run


def random_filter(chance: Random, cloud: Cloud) -> ProviderFilter:
    def maybe(share: float) -> bool:
        return chance.random() < share

    known = chance.choice([*cloud.values()])
    return ProviderFilter(
        name=f"node{known.id}" if maybe(0.1) else None,
        uuid=chance.choice([*cloud.values()]).uuid if maybe(0.1) else None,
        in_tree=chance.choice([*cloud.values()]).uuid if maybe(0.3) else None,
        resources={name: chance.randint(1, 4) for name in sorted(some(chance, CLASSES, 2))},
        required=random_sets(chance, TRAITS) if maybe(0.4) else (),
        forbidden=some(chance, TRAITS, 2) if maybe(0.3) else frozenset(),
        member_of=random_sets(chance, AGGREGATES) if maybe(0.4) else (),
        forbidden_aggregates=some(chance, AGGREGATES, 1) if maybe(0.3) else frozenset(),
    )


def passes(node: Node, wanted: ProviderFilter, cloud: Cloud) -> bool:
    """Return whether a provider passes a filter, computed in plain Python."""
    stocks = {name: node.inventories.get(name) for name in wanted.resources}
    return (
        wanted.name in (None, f"node{node.id}")
        and wanted.uuid in (None, node.uuid)
        and wanted.in_tree in (None, *[other.uuid for other in cloud.values() if other.root == node.root])
        and all(names & node.traits for names in wanted.required)
        and not wanted.forbidden & node.traits
        and all(uuids & node.aggregates for uuids in wanted.member_of)
        and not wanted.forbidden_aggregates & node.aggregates
        and all(stock is not None and stock.fits(wanted.resources[name]) for name, stock in stocks.items())
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_list_finds_what_a_plain_loop_finds(migrated: Database, seed: int) -> None:
    """Once with kept usage, once with sums; many filters select some and exclude some."""
    chance, telling = Random(seed), 0
    for _ in range(15):
        cloud = random_cloud(chance)
        load(migrated, cloud)
        for _ in range(10):
            wanted = random_filter(chance, cloud)
            expected = [node.uuid for node in cloud.values() if passes(node, wanted, cloud)]
            telling += 0 < len(expected) < len(cloud)
            for migrated.keeps_usage in (True, False):
                assert [row[0] for row in providers(migrated, wanted).rows] == expected, wanted
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
    conditions = conditions_of(tx, wanted, class_ids={"VCPU": VCPU, "MEMORY_MB": MEMORY_MB}, trait_ids=trait_ids)
    query = select(resource_providers.c.id).where(*conditions)
    statement = query.compile(dialect=tx.connection.dialect, compile_kwargs={"literal_binds": True})
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
        member_of=[frozenset({uuid}) for uuid in AGGREGATES],
    )
    plan = plan_of(postgresql, wanted, trait_ids)
    assert plan["Actual Rows"] == 3000
    assert compared_in_vain(plan) < 30_000
