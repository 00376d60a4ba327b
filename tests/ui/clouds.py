"""The cloud of ``placement demo`` with some consumers, which pages show."""

from placement.cli.demo import CLOUD, uuid_of
from placement.domain.inventory import Claim
from placement.services.allocations import replace_allocations
from placement.services.names import ensure_trait
from placement.store.connection.database import Database
from tests.stored_clouds import StoredProvider, store_providers

RESERVED = {("compute3", "MEMORY_MB"): 8192}
HELD = {
    "vm0": ("blue", "INSTANCE", {"compute1-numa0": {"VCPU": 16, "MEMORY_MB": 8192}, "compute1-gpu0": {"PGPU": 1}}),
    "vm1": ("blue", "INSTANCE", {"compute2-numa1": {"VCPU": 4}, "storage1": {"DISK_GB": 200}}),
    "volume0": ("red", None, {"storage1": {"DISK_GB": 50}}),
}
"""Project, type and allocations of the consumers in the demo cloud."""


def load_demo(database: Database) -> None:
    """Put the demo cloud into an empty database; compute3 reserves a part of its memory."""
    ensure_trait(database, "CUSTOM_A100")
    providers = []
    for node in CLOUD:
        stocks = {
            name: {"total": total, "reserved": RESERVED.get((node.name, name), 0)}
            for name, total in node.inventory.items()
        }
        parent, aggregates = node.parent and uuid_of(node.parent), [uuid_of(node.aggregate)] if node.aggregate else []
        providers.append(StoredProvider(node.uuid, node.name, parent, stocks, node.traits, aggregates))
    store_providers(database, providers)
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
