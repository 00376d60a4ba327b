"""Reading a few trees costs what these have, not what all others have; so do the facts that steer a search."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.store.allocations import allocations_of_provider
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.cloud_rows import cloud_rows
from placement.store.search.names import ids_for
from tests.store.rows import VCPU, add_providers, allocate, run
from tests.store.rows_read import reading

PROVIDERS = 3000
LITTLE = {"postgresql": 300, "mysql": 300, "sqlite": 3000}
"""What a few trees may cost: a tenth of a row, or one instruction, for each provider."""

SSE, AVX, NUMA = "HW_CPU_X86_SSE", "HW_CPU_X86_AVX", "HW_NUMA_ROOT"
ONE, OTHER, ELSEWHERE = (f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2, 3))

TABLES = (
    "resource_providers",
    "inventories",
    "provider_usages",
    "allocations",
    "consumers",
    "resource_provider_traits",
    "resource_provider_aggregates",
)
GIVE_STOCK = """
    INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
    allocation_ratio) VALUES (:id, :class_id, 8, 0, 1, 8, 1, 1.0)
"""
GIVE_CONSUMERS = (
    "INSERT INTO projects (external_id) VALUES ('p')",
    "INSERT INTO users (external_id) VALUES ('u')",
    """
    INSERT INTO consumers (uuid, project_id, user_id, generation)
    SELECT p.uuid, o.id, u.id, 1 FROM resource_providers p CROSS JOIN projects o CROSS JOIN users u
    """,
)
GIVE_TRAITS = f"""
    INSERT INTO resource_provider_traits (resource_provider_id, trait_id)
    SELECT p.id, t.id FROM resource_providers p CROSS JOIN traits t
    WHERE t.name IN ('{SSE}', '{NUMA}') OR p.id > 1 AND t.name = '{AVX}'
"""
GIVE_AGGREGATES = f"""
    INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id)
    SELECT p.id, a.id FROM resource_providers p CROSS JOIN placement_aggregates a
    WHERE p.id > 1 OR a.uuid <> '{ELSEWHERE}'
"""


@pytest.fixture
def cloud(migrated: Database) -> Database:
    """Many providers with stock, traits, aggregates and a consumer each, on a database of each of the three kinds."""
    with migrated.writer.begin() as connection:
        providers = add_providers(connection, PROVIDERS)
        run(
            connection,
            *[f"INSERT INTO placement_aggregates (uuid) VALUES ('{uuid}')" for uuid in (ONE, OTHER, ELSEWHERE)],
        )
        connection.execute(text(GIVE_STOCK), [{"id": id_, "class_id": VCPU} for id_ in providers])
        for id_ in providers[::10]:
            allocate(connection, f"provider-{id_}", {(id_, VCPU): 1})
        run(connection, GIVE_TRAITS, GIVE_AGGREGATES, *GIVE_CONSUMERS)
    with migrated.writer.begin() as connection:
        for table in TABLES:
            connection.execute(text(f"ANALYZE {'TABLE' * (migrated.dialect == 'mysql')} {table}")).close()
    return migrated


@reads
def cost_of_facts(tx: Transaction) -> int:
    """Return what it costs to find out which traits are in use."""
    plan = plan_for(CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1}),)))
    assert ids_for(tx, plan, [NUMA]).levels[0]
    with reading(tx) as read:
        ids_for(tx, plan, [NUMA, AVX])
        return read()


@reads
def cost_of(tx: Transaction, read_some: Callable[[Transaction], Any]) -> int:
    read_some(tx)
    with reading(tx) as read:
        read_some(tx)
        return read()


def test_which_traits_are_in_use_is_known_without_reading_who_has_them(cloud: Database) -> None:
    """On MariaDB each request read all links of traits from the one asked about on: 25 ms for 80,000."""
    assert cost_of_facts(cloud) < LITTLE[cloud.dialect]


@pytest.mark.parametrize(
    "read_some",
    [
        pytest.param(lambda tx: cloud_rows(tx, [1]), id="rows of the cloud"),
        pytest.param(lambda tx: allocations_of_provider(tx, "provider-1"), id="allocations"),
    ],
)
def test_one_tree_is_read_without_reading_others(cloud: Database, read_some: Callable[[Transaction], Any]) -> None:
    """A condition compared with 1 is met by no index: on 10,000 hosts MariaDB read 50,000 rows for the sums of one."""
    assert cost_of(cloud, read_some) < LITTLE[cloud.dialect]
