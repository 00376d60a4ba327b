"""What was asked for in vain is refused without a search until a tree changes, and only in snapshots that agree."""

from collections.abc import Iterator

import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.services.allocation_candidates import Answer, SearchOptions, answer_to
from placement.services.cloud_cache import MAX_REASONS, CloudCache
from placement.services.journal import put_in_order
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from tests.databases import open_database
from tests.store.conftest import THREE_KINDS
from tests.store.rows import DISK_GB, VCPU, add_providers, allocate, run, stocking
from tests.store.statements import statements

PROVIDERS, EACH = 4, 10
FULL = {(provider, VCPU): EACH for provider in range(1, PROVIDERS + 1)}
SIX = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 6}),), limit=5)
OPTIONS, RANKING = SearchOptions(), Ranking(RankingProfile())

NEW_HOST = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) VALUES (50, 'p50', 'p50', 0, 50)"
)


@pytest.fixture(params=THREE_KINDS)
def full(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Hosts whose VCPUs are all in use, on a database of each of the three kinds."""
    opened = open_database(request.getfixturevalue(f"{request.param}_url"))
    with opened.writer.begin() as connection:
        for provider in add_providers(connection, PROVIDERS):
            run(connection, stocking((provider, VCPU), total=EACH))
        allocate(connection, "full", FULL)
    put_in_order(opened)
    yield opened
    opened.dispose()


@reads
def ask(tx: Transaction, cache: CloudCache | None, request: CandidateRequest = SIX) -> Answer:
    return answer_to(tx, request, OPTIONS, RANKING, cache=cache)


def change(database: Database, *changes: str) -> None:
    with database.writer.begin() as connection:
        run(connection, *changes)
    put_in_order(database)  # MariaDB's readers go by the numbers of rows.


def searches(database: Database, cache: CloudCache) -> int:
    """Ask, and return how many statements read providers' inventories."""
    with statements(database) as sent:
        ask(database, cache)
    return len([statement for statement in sent if ".total" in statement])


def test_nothing_is_searched_again_while_no_tree_changes(full: Database) -> None:
    cache = CloudCache()
    before = [ask(full, cache) for _ in range(2)]
    assert searches(full, cache) == 0
    after = ask(full, cache)
    assert after.cause is not None
    assert [after.cause] * 2 == [answer.cause for answer in before]
    assert ask(full, cache, CandidateRequest(groups=(RequestGroup(resources={"VCPU": 7}),), limit=5)).cause


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(["DELETE FROM allocations WHERE resource_provider_id = 2"], id="released"),
        pytest.param(["UPDATE allocations SET used = 4 WHERE resource_provider_id = 2"], id="uses less"),
        pytest.param(["UPDATE inventories SET total = 16 WHERE resource_provider_id = 3"], id="extended"),
        pytest.param([NEW_HOST, stocking((50, VCPU), total=6)], id="a new host"),
        pytest.param([NEW_HOST, stocking((50, DISK_GB), total=6)], id="a new host of other things"),
        pytest.param(
            ["DELETE FROM allocations WHERE resource_provider_id = 2", "DELETE FROM placement_journal"],
            id="released, and the journal pruned",
        ),
    ],
)
def test_whatever_changes_a_tree_is_taken_into_account_at_once(full: Database, changes: list[str]) -> None:
    cache = CloudCache()
    assert not [answer for answer in (ask(full, cache), ask(full, cache)) if answer.candidates]
    change(full, *changes)
    assert searches(full, cache) > 0
    answer = ask(full, cache)
    assert (answer.candidates, answer.cause) == ((found := ask(full, None)).candidates, found.cause)


def newer_and_older(database: Database, cache: CloudCache, *changes: str) -> tuple[Answer, Answer]:
    """Ask in a snapshot with some changes, then in one from before."""

    @reads
    def ask_in_both(tx: Transaction) -> tuple[Answer, Answer]:
        answer_to(tx, SIX, OPTIONS, RANKING)  # The snapshot is that of the first statement.
        change(database, *changes)
        return ask(database, cache), answer_to(tx, SIX, OPTIONS, RANKING, cache=cache)

    return ask_in_both(database)


def test_snapshots_that_differ_do_not_learn_from_each_other(full: Database) -> None:
    cache = CloudCache()
    ask(full, cache)
    newer, older = newer_and_older(full, cache, "DELETE FROM allocations WHERE resource_provider_id = 2")
    assert newer.candidates
    assert not older.candidates
    assert ask(full, cache).candidates
    newer, older = newer_and_older(full, cache, "UPDATE inventories SET total = 5 WHERE resource_provider_id = 2")
    assert not newer.candidates
    assert older.candidates


@reads
def noted(tx: Transaction, cache: CloudCache, numbers: range) -> list[str | None]:
    """Note some requests, and return what is known of each."""
    for number in numbers:
        cache.note_nothing(tx, (number,), f"because of {number}")
    return [cache.reason_for_nothing(tx, (number,)) for number in numbers]


def test_only_so_many_requests_are_remembered(full: Database) -> None:
    found = noted(full, CloudCache(), range(MAX_REASONS + 3))
    assert found == [None] * 3 + [f"because of {number}" for number in range(3, MAX_REASONS + 3)]
