"""The names in a request as ids, and the facts of a cloud, looked up without reading the cloud."""

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.names import ids_for
from tests.store.rows import add_providers, run

PROVIDERS = 3000
READ = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'resource_provider_traits'"
PLAN = plan_for(CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1}),)))


def test_whether_a_level_is_in_use_is_told_by_an_index(postgresql: Database) -> None:
    """If all providers have the same trait, PostgreSQL expects to find any other trait soon, and reads all rows."""
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
    def read(tx: Transaction) -> int:
        assert ids_for(tx, PLAN, ["HW_NUMA_ROOT", "HW_CPU_X86_AVX2"]).levels[0] is None
        found: int = tx.connection.exec_driver_sql(READ).scalar_one()
        return found

    assert read(postgresql) == 0
