"""A little of everything in a database, written by the use cases, and all its rows for comparison."""

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from sqlalchemy import insert, select

from placement.domain.inventory import Claim, Inventory
from placement.services.allocations import replace_allocations
from placement.services.inventories import NewInventories, replace_inventories
from placement.services.names import create_class, ensure_trait, replace_aggregates, replace_provider_traits
from placement.services.providers import create_provider
from placement.store.connection.database import Database
from placement.store.tables import learnt_work, metadata, planner_claims


def uuid_of(name: str) -> str:
    """Return the uuid that belongs to a name."""
    return str(uuid5(NAMESPACE_URL, name))


def fill(database: Database, prefix: str = "host") -> None:
    """Add a host with a NUMA node and a device below it, and a pool, with inventories, traits and allocations."""
    names = [prefix, f"{prefix}-numa0", f"{prefix}-gpu0"]
    for name, parent in zip(names, [None, *names], strict=False):
        create_provider(
            database, uuid=uuid_of(name), name=name, parent_uuid=None if parent is None else uuid_of(parent)
        )
    create_provider(database, uuid=uuid_of(f"{prefix}-pool"), name=f"{prefix}-pool", parent_uuid=None)
    own = f"CUSTOM_{prefix.upper()}"
    create_class(database, own)
    ensure_trait(database, own)
    inventories = {"VCPU": Inventory(total=8, allocation_ratio=1.1), own: Inventory(total=3, reserved=1)}
    replace_inventories(
        database, uuid_of(names[1]), NewInventories(inventories, may_be_all_reserved=True), generation=0
    )
    replace_provider_traits(database, uuid_of(names[1]), [own, "HW_NUMA_ROOT"], generation=1)
    for name in (names[0], f"{prefix}-pool"):
        replace_aggregates(database, uuid_of(name), [uuid_of(f"{prefix}-aggregate")])
    claim = Claim(
        consumer_uuid=uuid_of(f"{prefix}-consumer"),
        allocations={uuid_of(names[1]): {"VCPU": 3, own: 1}},
        project_id=f"{prefix}-project",
        user_id="Zo\u00eb",
        consumer_type="INSTANCE",
        checks_generation=True,
        consumer_generation=None,
    )
    replace_allocations(database, [claim])
    answered = {"consumer_uuid": claim.consumer_uuid, "digest": "d", "generation": 1, "answer": "{}"}
    with database.writer.begin() as connection:
        connection.execute(insert(planner_claims), answered)
        connection.execute(insert(learnt_work), {"profile": f"{prefix}-profile", "document": "{}"})


def snapshot(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables except their dates and marks."""
    shown = {}
    with database.engine.connect() as connection:
        for table in metadata.sorted_tables:
            columns = [column for column in table.c if column.name not in ("created_at", "updated_at", "commit_mark")]
            query = select(*columns).order_by(*table.primary_key.columns)
            shown[table.name] = [tuple(row) for row in connection.execute(query)]
    return shown
