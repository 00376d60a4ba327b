"""The memory for cached statements stays bounded, whatever is requested."""

from sqlalchemy import literal_column, select

from placement.domain.search_plan import CandidateRequest, RequestGroup
from placement.services.allocation_candidates import SearchOptions, allocation_candidates
from placement.store.connection.database import Database
from placement.store.connection.prepared import MAX_CHARACTERS
from placement.store.connection.unit_of_work import Transaction, reads

SHORT = 1000


def test_on_postgresql_a_search_that_finds_nothing_leaves_no_long_statement_compiled(postgresql: Database) -> None:
    """The statement that finds the cause is as long as the request: some 200 KB each, if it is kept."""
    request = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),))
    assert not allocation_candidates(postgresql, request, SearchOptions()).candidates
    compiled = postgresql.reader.get_execution_options()["compiled_cache"]
    assert [each.string for each in compiled.values() if len(each.string) > SHORT] == []


LENGTH = 20_000


@reads
def ask(tx: Transaction, number: int) -> None:
    """Send a long statement that has not been sent before."""
    tx.connection.execute(select(literal_column(f"'{number:0{LENGTH}}'")))


def test_compiled_statements_are_forgotten(database: Database) -> None:
    rounds = 3 * MAX_CHARACTERS // LENGTH
    for number in range(rounds):
        ask(database, number)
    compiled = database.reader.get_execution_options()["compiled_cache"]
    kept = sum(len(one.string) for one in compiled.values())
    assert 0 < kept <= MAX_CHARACTERS
    assert len(compiled) < rounds
