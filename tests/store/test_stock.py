"""Stock and lists of providers as databases compute them, compared with Python."""

import random
from dataclasses import replace
from random import Random

import pytest
from sqlalchemy import BigInteger, bindparam, insert, select

from placement.domain.inventory import Inventory, ProviderFilter
from placement.services.providers import providers
from placement.store.connection.database import Database
from placement.store.stock import StockSource
from placement.store.tables import inventories
from tests.small_clouds import AGGREGATES, CLASSES, TRAITS, Cloud, Node, load, random_cloud, random_sets, some
from tests.store.rows import VCPU, Spot, add_providers, allocate

EXACT = (0.75, 1.0, 1.5, 16.0, 0.0)
"""Halves and the like: MariaDB's FLOAT has single precision, so 0.9 is displayed as 0.9 but counts as 0.89999998."""

INEXACT = (0.1, 0.9, 1.1, 2.3, 33.3, 1e308, -1e308)
AMOUNTS = (1, 2, 3, 5, 8, 12, 30)


def written(database: Database, chance: random.Random) -> dict[int, tuple[Inventory, int]]:
    """Write random inventories, every second provider of which has some usage; return both by provider."""
    ratios = EXACT if database.dialect == "mysql" else EXACT + INEXACT
    found = {}
    with database.engine.begin() as connection:
        for provider in add_providers(connection, 60):
            inventory = Inventory(
                total=chance.randint(1, 40),
                min_unit=chance.choice((1, 1, 2)),
                max_unit=chance.choice((3, 12, 100)),
                step_size=chance.choice((1, 1, 2, 3)),
                allocation_ratio=chance.choice(ratios),
            )
            inventory = replace(inventory, reserved=chance.choice((0, 0, inventory.total, inventory.total // 3)))
            columns = {name: getattr(inventory, name) for name in Inventory.__slots__}
            spot: Spot = (provider, VCPU)
            connection.execute(
                insert(inventories), {"resource_provider_id": provider, "resource_class_id": VCPU, **columns}
            )
            used = chance.choice((0, chance.randint(1, 30)))
            if used:
                allocate(connection, f"consumer-{provider}", {spot: used})
            found[provider] = inventory, used
    return found


@pytest.mark.parametrize("keeps_usage", [True, False])
def test_a_database_computes_what_python_does(database, keeps_usage):
    expected = written(database, random.Random(11))
    stock = StockSource(keeps_usage=keeps_usage)
    query = select(stock.inventory.c.resource_provider_id, stock.whole_capacity, stock.used).select_from(stock.rows)
    amount = bindparam("amount", type_=BigInteger)
    fitting = select(stock.inventory.c.resource_provider_id).select_from(stock.rows).where(stock.fits(amount))
    with database.engine.connect() as connection:
        found = {provider: (int(capacity), int(used)) for provider, capacity, used in connection.execute(query)}
        fits = {asked: {*connection.execute(fitting, {"amount": asked}).scalars()} for asked in AMOUNTS}
    assert found == {provider: (inventory.capacity, used) for provider, (inventory, used) in expected.items()}
    assert fits == {
        asked: {provider for provider, (inventory, used) in expected.items() if inventory.fits(asked, used)}
        for asked in AMOUNTS
    }


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
def test_a_list_finds_what_a_plain_loop_finds(database: Database, seed: int) -> None:
    """Once with kept usage, once with sums; many filters select some and exclude some."""
    chance, telling = Random(seed), 0
    for _ in range(15):
        cloud = random_cloud(chance)
        load(database, cloud)
        for _ in range(10):
            wanted = random_filter(chance, cloud)
            expected = [node.uuid for node in cloud.values() if passes(node, wanted, cloud)]
            telling += 0 < len(expected) < len(cloud)
            for database.keeps_usage in (True, False):
                assert [row[0] for row in providers(database, wanted).rows] == expected, wanted
    assert telling > 50
