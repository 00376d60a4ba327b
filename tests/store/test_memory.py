"""The memory for cached statements stays bounded, whatever is requested."""

import gc
import weakref
from itertools import product

from sqlalchemy import literal_column, select

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.services.allocation_candidates import SearchOptions, allocation_candidates
from placement.store.connection.database import Database
from placement.store.connection.memory import MAX_CHARACTERS, MAX_CONDITIONS, Memory
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.any_of import NO_SETS
from placement.store.search.ranges import Scope
from placement.store.search.roots import RootShape
from placement.store.search.serving import serving_providers
from placement.store.search.shapes import DemandShape, NarrowingShape

SMALL = DemandShape(
    granular=True,
    classes=(0,),
    contended=(None,),
    required=NO_SETS,
    forbidden=False,
    member_of=NO_SETS,
    forbidden_aggregates=False,
    in_tree=False,
)


def shape_of(groups: int, **of_root: bool) -> NarrowingShape:
    return NarrowingShape(
        demands=(SMALL,) * groups,
        root=RootShape(required=NO_SETS, tree_traits=NO_SETS, **of_root),
        contended=0,
        scope=Scope.ALL,
        sharing=False,
        keeps_usage=True,
    )


def test_statements_of_large_requests_are_forgotten_and_leave_no_circles() -> None:
    first = weakref.ref(serving_providers(shape_of(100, forbidden=False, forbidden_aggregates=False)).statement)
    gc.disable()
    try:
        for groups, forbids, keeps_out in product((101, 102, 103), (False, True), (False, True)):
            serving_providers(shape_of(groups, forbidden=forbids, forbidden_aggregates=keeps_out))
        assert first() is None
    finally:
        gc.enable()


def test_of_a_statement_that_is_made_postgresql_needs_the_text_alone(postgresql: Database) -> None:
    prepared = PreparedStatement(lambda: select(literal_column("1")))
    assert [reads(lambda tx: tx.tuples(prepared))(postgresql) for _ in range(2)] == [[(1,)], [(1,)]]
    assert "statement" not in vars(prepared)


def test_on_postgresql_a_search_that_finds_nothing_leaves_no_statement_compiled(postgresql: Database) -> None:
    """The statement that finds the cause is as long as the request: some 200 KB each, if it is kept."""
    request = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),))
    assert not allocation_candidates(postgresql, request, SearchOptions()).candidates
    assert not postgresql.reader.get_execution_options()["compiled_cache"]


def test_a_small_statement_is_made_once() -> None:
    small = shape_of(2, forbidden=False, forbidden_aggregates=False)
    assert serving_providers(small) is serving_providers(small)


def test_a_shape_weighs_what_its_demands_ask() -> None:
    assert shape_of(10, forbidden=False, forbidden_aggregates=False).conditions < MAX_CONDITIONS
    assert shape_of(MAX_CONDITIONS, forbidden=False, forbidden_aggregates=False).conditions > MAX_CONDITIONS


def test_what_fits_is_kept_and_what_is_too_heavy_replaces_it() -> None:
    memory: Memory[str, int] = Memory(lambda _key, value: value, most=10)
    memory["one"] = 4
    memory["two"] = 6
    assert memory == {"one": 4, "two": 6}
    memory["three"] = 1
    assert memory == {"three": 1}


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
