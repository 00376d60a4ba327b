"""The names in a request as ids, and the facts of a cloud, looked up without reading the cloud."""

import pytest

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import NamedIds, plan_for
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads, writes
from placement.store.search.names import ids_for
from tests.store.rows import add_providers, run
from tests.store.statements import statements

PROVIDERS = 3000
IN_OTHER_ORDER = "resource_provider_traits_resource_provider_trait_idx"
PLAN = plan_for(CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1}),)))


@pytest.mark.parametrize("plan_cache_mode", ["force_generic_plan", "force_custom_plan"])
def test_the_primary_key_tells_which_traits_are_in_use(postgresql: Database, plan_cache_mode: str) -> None:
    """If all providers have the same trait, PostgreSQL expects to find any other one soon, whatever it reads."""
    with postgresql.writer.begin() as connection:
        add_providers(connection, PROVIDERS)
        has = "INSERT INTO resource_provider_traits (resource_provider_id, trait_id)"
        run(
            connection,
            f"{has} SELECT id, (SELECT id FROM traits WHERE name = 'HW_CPU_X86_AVX2') FROM resource_providers",
        )
    with postgresql.writer.begin() as connection:
        run(connection, "ANALYZE")

    @reads
    def read(tx: Transaction) -> tuple[NamedIds, int, int]:
        run(tx.connection, f"SET LOCAL plan_cache_mode = {plan_cache_mode}")
        before = _rows_read(tx), _blocks_read(tx)
        found = ids_for(tx, PLAN, ["HW_NUMA_ROOT", "HW_CPU_X86_AVX2"])
        return found, _rows_read(tx) - before[0], _blocks_read(tx) - before[1]

    found, rows, blocks = read(postgresql)
    assert (found.shares, found.levels[0], found.levels[1] is None) == (False, None, False)
    assert rows == 0
    assert blocks <= 2  # planning looks at the first ones of each index


def _rows_read(tx: Transaction) -> int:
    """Return how many rows of providers' traits this transaction has read from the table itself."""
    read = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'resource_provider_traits'"
    found: int = tx.connection.exec_driver_sql(read).scalar_one()
    return found


def _blocks_read(tx: Transaction) -> int:
    """Return how many blocks this transaction has read of their index by provider."""
    read = f"SELECT pg_stat_get_xact_blocks_fetched(oid) FROM pg_class WHERE relname = '{IN_OTHER_ORDER}'"
    found: int = tx.connection.exec_driver_sql(read).scalar_one()
    return found


def test_a_snapshot_looks_up_no_name_twice(migrated: Database) -> None:
    """Not even one that does not exist; the next snapshot looks it up again."""

    @reads
    def look_up_repeatedly(tx: Transaction) -> list[set[str]]:
        asked = (["CUSTOM_GOLD"], ["CUSTOM_GOLD", "CUSTOM_LEAD"], ["CUSTOM_GOLD"])
        return [{*tx.names.traits.ids(tx.connection, names)} for names in asked]

    for existing in (set[str](), {"CUSTOM_GOLD"}):
        with migrated.writer.begin() as connection:
            run(connection, *[f"INSERT INTO traits (name) VALUES ('{name}')" for name in existing])
        with statements(migrated) as sent:
            assert look_up_repeatedly(migrated) == [existing] * 3
        assert len([one for one in sent if "FROM traits" in one]) == 2


def test_a_writing_transaction_looks_up_what_it_has_created(migrated: Database) -> None:
    @writes
    def create(tx: Transaction) -> None:
        assert tx.names.traits.ids(tx.connection, ["CUSTOM_GOLD"]) == {}
        run(tx.connection, "INSERT INTO traits (name) VALUES ('CUSTOM_GOLD')")
        assert tx.names.traits.ids(tx.connection, ["CUSTOM_GOLD"]).keys() == {"CUSTOM_GOLD"}

    create(migrated)
