"""Stock as databases compute it, compared with Python: capacity, remaining amount, fit count."""

import random
from dataclasses import replace

import pytest
from sqlalchemy import BigInteger, bindparam, insert, select

from placement.domain.inventory import Inventory
from placement.store.connection.database import Database
from placement.store.stock import StockSource
from placement.store.tables import inventories
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
def test_a_database_computes_what_python_does(migrated, keeps_usage):
    expected = written(migrated, random.Random(11))
    stock = StockSource(keeps_usage=keeps_usage)
    query = select(stock.inventory.c.resource_provider_id, stock.whole_capacity, stock.used).select_from(stock.rows)
    amount = bindparam("amount", type_=BigInteger)
    fitting = select(stock.inventory.c.resource_provider_id).select_from(stock.rows).where(stock.fits(amount))
    with migrated.engine.connect() as connection:
        found = {provider: (int(capacity), int(used)) for provider, capacity, used in connection.execute(query)}
        fits = {asked: {*connection.execute(fitting, {"amount": asked}).scalars()} for asked in AMOUNTS}
    assert found == {provider: (inventory.capacity, used) for provider, (inventory, used) in expected.items()}
    assert fits == {
        asked: {provider for provider, (inventory, used) in expected.items() if inventory.fits(asked, used)}
        for asked in AMOUNTS
    }
