"""Clouds that pages show: that of ``placement demo`` with some consumers, and one of any size."""

from placement.cli.demo import CLOUD, uuid_of
from placement.domain.inventory import Claim, Inventory
from placement.services.allocations import replace_allocations
from placement.services.inventories import NewInventories, replace_inventories
from placement.services.names import ensure_trait, replace_aggregates, replace_provider_traits
from placement.services.providers import create_provider
from placement.store.connection.database import Database
from tests.bench.clouds import AGGREGATES, nested
from tests.bench.rows import insert_rows, make_owners, rows_for

HELD = {
    "vm0": ("blue", "INSTANCE", {"compute1-numa0": {"VCPU": 16, "MEMORY_MB": 8192}, "compute1-gpu0": {"PGPU": 1}}),
    "vm1": ("blue", "INSTANCE", {"compute2-numa1": {"VCPU": 4}, "storage1": {"DISK_GB": 200}}),
    "volume0": ("red", None, {"storage1": {"DISK_GB": 50}}),
}
"""Project, type and allocations of the consumers in the demo cloud."""


def load_demo(database: Database) -> None:
    """Put the demo cloud into an empty database; compute3 reserves a part of its memory."""
    ensure_trait(database, "CUSTOM_A100")
    for provider in CLOUD:
        parent = uuid_of(provider.parent) if provider.parent else None
        create_provider(database, uuid=provider.uuid, name=provider.name, parent_uuid=parent)
        reserved = 8192 if provider.name == "compute3" else 0
        inventories = {
            name: Inventory(total=total, reserved=reserved if name == "MEMORY_MB" else 0)
            for name, total in provider.inventory.items()
        }
        new = NewInventories(inventories, may_be_all_reserved=True)
        replace_inventories(database, provider.uuid, new, generation=0)
        replace_provider_traits(database, provider.uuid, list(provider.traits), generation=1)
        if provider.aggregate:
            replace_aggregates(database, provider.uuid, [uuid_of(provider.aggregate)])
    replace_allocations(database, [_claim(name) for name in HELD])


def _claim(name: str) -> Claim:
    project, type_, held = HELD[name]
    return Claim(
        consumer_uuid=uuid_of(name),
        allocations={uuid_of(provider): amounts for provider, amounts in held.items()},
        project_id=project,
        user_id="somebody",
        consumer_type=type_,
        checks_generation=True,
        consumer_generation=None,
    )


class GrowingCloud:
    """Hosts with seven providers each; every tenth has some usage."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.hosts = 0
        with database.writer.begin() as connection:
            make_owners(connection, aggregates=[f"aggregate{number}" for number in range(AGGREGATES)])
            self._rows = rows_for(connection)

    def grow(self, hosts: int) -> None:
        for index in range(self.hosts, self.hosts + hosts):
            self._rows.fill = 0.0 if index % 10 else 0.5
            self._rows.add_tree(nested(index))
        self.hosts += hosts
        with self._database.writer.begin() as connection:
            insert_rows(connection, self._rows)
