"""The facts that steer a search are those of its snapshot, whether read alone or along with the journal."""

from collections.abc import Iterator
from random import Random

import pytest

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.place_lock import PlaceLock
from placement.domain.search_plan import NamedIds, plan_for
from placement.services.cloud_cache import CloudCache
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads, writes
from placement.store.search.names import ids_for
from tests.databases import open_database
from tests.store.conftest import THREE_KINDS
from tests.store.rows import add_providers, run
from tests.store.statements import statements

PROVIDERS, EVENTS = 4, 60
PLAN = plan_for(CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1}),)))
LEVELS = ("HW_NUMA_ROOT", "CUSTOM_SOCKET")
LOCKS = (PlaceLock("FPGA", None), PlaceLock("VGPU", "HW_NUMA_ROOT"))
TRAITS = ("MISC_SHARES_VIA_AGGREGATE", "HW_NUMA_ROOT", "CUSTOM_SOCKET")
HAS = "(SELECT id FROM traits WHERE name = '{}')"
STOCKED = "(SELECT id FROM resource_classes WHERE name = '{}')"
INVENTORY = (
    "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, "
    "allocation_ratio) VALUES ({}, {}, 1, 0, 1, 1, 1, 1.0)"
)


@pytest.fixture(params=THREE_KINDS)
def cloud(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Some providers, on a database of each of the three kinds."""
    opened = open_database(request.getfixturevalue(f"{request.param}_url"))
    with opened.writer.begin() as connection:
        add_providers(connection, PROVIDERS)
        run(connection, "INSERT INTO traits (name) VALUES ('CUSTOM_SOCKET')")
    yield opened
    opened.dispose()


def event(choice: Random, number: int) -> list[str]:
    """Return the statements of a change to the facts, or to what does not matter to them."""
    provider, has = choice.randint(1, PROVIDERS), HAS.format(choice.choice(TRAITS))
    stocked = STOCKED.format(choice.choice([lock.resource_class for lock in LOCKS]))
    taken = f"DELETE FROM resource_provider_traits WHERE trait_id = {has}"
    given = f"INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES ({provider}, {has})"
    emptied = f"DELETE FROM inventories WHERE resource_class_id = {stocked}"
    name = f"further-{number}"
    return choice.choice(
        [
            [taken, given],
            [taken],
            [emptied, INVENTORY.format(provider, stocked)],
            [emptied],
            [
                f"INSERT INTO resource_providers (uuid, name, generation) VALUES ('{name}', '{name}', 0)",
                "UPDATE resource_providers SET root_provider_id = id WHERE root_provider_id IS NULL",
            ],
            ["DELETE FROM placement_journal"],
            [],
        ]
    )


def facts(tx: Transaction, cache: CloudCache | None) -> tuple[NamedIds, int]:
    found = ids_for(tx, PLAN, LEVELS, locks=LOCKS, read_along=cache and cache.read_along)
    return found, found.highest_root


@reads
def assert_current(tx: Transaction, cache: CloudCache) -> None:
    alone = facts(tx, None)
    assert facts(tx, cache) == alone
    assert facts(tx, cache) == alone  # now the place in the journal is known


def test_facts_read_along_are_those_of_each_snapshot(cloud: Database) -> None:
    cache, choice = CloudCache(), Random(5)
    seen = set()

    @reads
    def change_meanwhile(tx: Transaction, number: int) -> None:
        before = facts(tx, None)
        with cloud.writer.begin() as connection:
            run(connection, *event(choice, number))
        assert_current(cloud, cache)
        assert facts(tx, cache) == before  # this snapshot is older
        seen.add((before[0].shares, before[0].levels, tuple(before[0].locks)))

    for number in range(EVENTS):
        change_meanwhile(cloud, number)
    assert len(seen) > 5


def test_a_writing_transaction_reads_its_own_facts(cloud: Database) -> None:
    cache = CloudCache()
    assert_current(cloud, cache)

    @writes
    def share(tx: Transaction) -> None:
        assert not facts(tx, cache)[0].shares
        has = HAS.format(TRAITS[0])
        run(tx.connection, f"INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES (1, {has})")
        assert facts(tx, cache)[0].shares

    share(cloud)


def test_facts_read_along_take_no_statement_of_their_own(postgresql: Database) -> None:
    with postgresql.writer.begin() as connection:
        add_providers(connection, PROVIDERS)
    cache = CloudCache()

    @reads
    def ask(tx: Transaction) -> None:
        facts(tx, cache)
        assert cache.histories.of(postgresql).moment(tx) is not None

    ask(postgresql)
    with statements(postgresql) as sent:
        ask(postgresql)
    assert len([one for one in sent if "placement_journal" in one or "root_provider_id" in one]) == 1
