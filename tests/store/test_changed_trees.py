"""A cache of a cloud that follows the journal always equals the snapshot: it is never older, never newer."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking, TreeScores
from placement.cloud.derived import ALWAYS_READ_ALONE, MAX_CHANGED
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.services.allocation_candidates import Answer, SearchOptions, answer_to
from placement.services.answer_texts import Question, TextsOfTree, written_answer
from placement.services.cloud_cache import CloudCache
from placement.services.journal import put_in_order
from placement.services.tree_history import MAX_AGE_S
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.journal.changes import look
from placement.store.journal.triggers import begin
from placement.store.locks import pass_write_gate
from placement.store.search.names import ids_for
from tests.databases import open_database
from tests.store.conftest import THREE_KINDS
from tests.store.rows import DISK_GB, MEMORY_MB, VCPU, add_providers, allocate, delete_provider, run, stocking
from tests.store.sums import order_kept, true_order

if TYPE_CHECKING:
    from placement.store.journal.cursor import Cursor

PROVIDERS, WRITERS, READERS, CHANGES = 8, 4, 3, 40
PRUNED = "DELETE FROM placement_journal"
MOVED = "UPDATE resource_providers SET root_provider_id = 1, parent_provider_id = 1 WHERE id = 2"
EMPTIED = "DELETE FROM inventories WHERE resource_provider_id = 5"
GONE = "DELETE FROM resource_providers WHERE id = 5"
LEFT_TREE = "UPDATE resource_providers SET root_provider_id = NULL WHERE id = 5"
COME = "INSERT INTO resource_providers (id, uuid, name, generation) VALUES (50, 'new', 'new', 0)"
BELOW = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id) "
    "VALUES (5, 'below', 'below', 0, 4, 4)"
)
IN_NUMBERS = (
    "INSERT INTO {} WITH RECURSIVE n(id) AS (SELECT 100 UNION ALL SELECT id + 1 FROM n WHERE id < 99 + {}) SELECT {}"
)

LEFT = text(f"""
    SELECT owner.root_provider_id, owner.id, has.total - COALESCE((
        SELECT SUM(used) FROM allocations
        WHERE resource_provider_id = owner.id AND resource_class_id = {VCPU}
    ), 0)
    FROM resource_providers owner JOIN inventories has ON has.resource_provider_id = owner.id
    WHERE has.resource_class_id = {VCPU} AND owner.root_provider_id IS NOT NULL
""")


@pytest.fixture(params=THREE_KINDS)
def cloud(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Some providers of VCPUs, on a database of each of the three kinds."""
    opened = open_database(request.getfixturevalue(f"{request.param}_url"))
    with opened.writer.begin() as connection:
        for provider in add_providers(connection, PROVIDERS):
            run(connection, stocking((provider, VCPU), total=1000))
    yield opened
    opened.dispose()


class Picture:
    """A cache of the remaining amounts in trees, which reads only the trees that changed."""

    def __init__(self) -> None:
        self.left: list[Any] = []
        self.place: Cursor | None = None
        self.read_anew = 0

    def in_snapshot(self, tx: Transaction) -> None:
        """Update the cache, and compare it with the snapshot itself."""
        found, now = look(tx, self.place), sorted(tx.tuples(LEFT))
        assert found is not None
        if found.changes is None:
            self.read_anew += 1
            self.left = now
        elif roots := found.changes.roots:
            others = [row for row in self.left if row[0] not in roots]
            self.left = others + [row for row in now if row[0] in roots]
        self.place = found.place
        assert sorted(self.left) == now


@reads
def assert_current(tx: Transaction, picture: Picture) -> None:
    picture.in_snapshot(tx)


SCORES = (
    TreeScores({"VCPU": 1}, Ranking(RankingProfile())),
    TreeScores({"VCPU": 5, "MEMORY_MB": 1}, Ranking(RankingProfile(compactness=0))),
)


@reads
def assert_in_order(tx: Transaction, further: Sequence[TreeScores] = ()) -> None:
    """Compare cached orders with those given by the sums of the same snapshot."""
    for scores in (*SCORES, *further):
        order = order_kept(tx, scores)
        assert order is not None
        assert order == true_order(tx, scores)


def opened(database: Database) -> Connection:
    """Return a connection in a transaction that may write."""
    connection = database.writer.connect()
    connection.begin()
    pass_write_gate(connection)
    return connection


def _change(connection: Connection, choice: random.Random, name: str) -> None:
    provider = choice.randint(1, PROVIDERS)
    if choice.random() < 0.4:
        run(connection, f"DELETE FROM allocations WHERE resource_provider_id = {provider} AND id % 3 = 0")
    elif choice.random() < 0.3:
        run(connection, f"UPDATE inventories SET total = total + 1 WHERE resource_provider_id = {provider}")
    allocate(connection, name, {(provider, VCPU): choice.randint(1, 5)})


def _move(connection: Connection, choice: random.Random) -> None:
    """Move one of the last trees below one of the first, or make it a separate tree again."""
    moved, above = choice.randint(6, PROVIDERS), choice.randint(1, 5)
    root, parent = choice.choice([(above, str(above)), (moved, "NULL")])
    place = f"root_provider_id = {root}, parent_provider_id = {parent}"
    run(connection, f"UPDATE resource_providers SET {place} WHERE id = {moved}")


def _come_or_go(connection: Connection, id_: int) -> None:
    """Add a provider, or delete it if it exists."""
    if connection.scalar(text(f"SELECT id FROM resource_providers WHERE id = {id_}")):
        run(connection, f"DELETE FROM inventories WHERE resource_provider_id = {id_}")
        delete_provider(connection, id_)
    else:
        run(connection, f"INSERT INTO resource_providers (id, uuid, name, generation) VALUES ({id_}, {id_}, {id_}, 0)")
        run(connection, f"UPDATE resource_providers SET root_provider_id = {id_} WHERE id = {id_}")
        run(connection, stocking((id_, VCPU), total=1000 + id_))


def _write(database: Database, seed: int, together: threading.Barrier) -> None:
    choice = random.Random(seed)
    together.wait()
    for number in range(CHANGES):
        try:
            with opened(database) as connection:
                if choice.random() < 0.2:
                    _move(connection, choice)
                else:
                    _change(connection, choice, f"{seed}-{number}")
                if choice.random() < 0.2:
                    _come_or_go(connection, 100 + seed)
                if choice.random() < 0.8:
                    connection.commit()
            if choice.random() < 0.1:
                put_in_order(database)
        except DBAPIError:
            pass  # a deadlock


@contextmanager
def writing(database: Database) -> Iterator[Callable[[], bool]]:
    """Let writers race, and yield a function that returns whether any is still running."""
    together = threading.Barrier(WRITERS + 1)
    writers = [threading.Thread(target=_write, args=(database, seed, together)) for seed in range(WRITERS)]
    for writer in writers:
        writer.start()
    together.wait()
    yield lambda: any(writer.is_alive() for writer in writers)
    for writer in writers:
        writer.join()


def test_a_picture_is_what_each_snapshot_shows_beside_racing_writers(cloud: Database) -> None:
    picture = Picture()
    with writing(cloud) as are_at_work:
        while are_at_work():
            assert_current(cloud, picture)
    assert_current(cloud, picture)
    assert picture.read_anew == 1


def test_orders_that_readers_share_are_those_of_each_snapshot_beside_racing_writers(cloud: Database) -> None:
    assert_in_order(cloud)  # A snapshot older than the first one seen has no order.
    with writing(cloud) as are_at_work, ThreadPoolExecutor(READERS) as readers:

        def read() -> None:
            while are_at_work():
                assert_in_order(cloud)

        for done in [readers.submit(read) for _ in range(READERS)]:
            done.result()
    assert_in_order(cloud)


def test_an_older_snapshot_than_the_one_before_has_its_own_order(cloud: Database) -> None:

    @reads
    def read_twice(tx: Transaction) -> None:
        order_kept(tx, SCORES[0])
        with cloud.writer.begin() as connection:
            allocate(connection, "late", {(3, VCPU): 500})
        assert_in_order(cloud)
        order = order_kept(tx, SCORES[0])
        assert order is not None
        assert order == true_order(tx, SCORES[0])

    read_twice(cloud)
    assert_in_order(cloud)


def test_orders_follow_whatever_happens_to_providers(cloud: Database) -> None:
    """Trees come, move, lose their inventories and go; trees found only by a further class are included."""
    add = (
        "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) VALUES (50, 'p50', 'p50', 0, 50)"
    )
    for statements in (
        [add, stocking((50, VCPU), total=7)],
        [add.replace("50", "51"), stocking((51, DISK_GB), total=7)],
        [stocking((2, MEMORY_MB), total=900)],
        ["UPDATE inventories SET reserved = 400 WHERE resource_provider_id = 4"],
        [MOVED],
        [EMPTIED],
        [PRUNED, "UPDATE inventories SET total = 3 WHERE resource_provider_id = 6"],
    ):
        with cloud.writer.begin() as connection:
            run(connection, *statements)
        assert_in_order(cloud)
        assert_in_order(cloud, [TreeScores({"DISK_GB": 1, "VCPU": 1}, Ranking(RankingProfile()))])


def texts_of(answer: Answer) -> dict[int, TextsOfTree]:
    """Write an answer tree by tree, in any form."""
    stocks, members = answer.providers.stocks, answer.providers.members.values()
    return {
        root: TextsOfTree(
            tuple([str(choice) for tree, choice in answer.candidates if tree == root]),
            str([(member, sorted(stocks.get(member.id, []))) for member in members if member.root_id == root]),
        )
        for root, _choice in answer.candidates
    }


REQUEST = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 3}),), limit=5)
QUESTION = Question("three", REQUEST, SearchOptions(breadth_first=True), Ranking(RankingProfile()), texts_of)


@reads
def assert_answered(tx: Transaction) -> bool:
    """Compare an answer from kept texts with that of a search in the same snapshot; tell whether there is one."""
    searched = answer_to(tx, QUESTION.request, QUESTION.options, QUESTION.ranking)
    texts = texts_of(searched)
    in_order = [texts[root] for root, _choice in searched.candidates]
    expected = ([text.candidates[0] for text in in_order], [text.providers for text in in_order])
    plan = plan_for(QUESTION.request)
    written = written_answer(tx, QUESTION, plan=plan, ids=ids_for(tx, plan))
    assert written in (None, expected)
    return written is not None


def test_answers_from_kept_texts_are_those_of_each_snapshot_beside_racing_writers(cloud: Database) -> None:
    assert not assert_answered(cloud)  # It has not been asked for before.
    with writing(cloud) as are_at_work, ThreadPoolExecutor(READERS) as readers:

        def read() -> None:
            while are_at_work():
                assert_answered(cloud)

        for done in [readers.submit(read) for _ in range(READERS)]:
            done.result()
    assert [assert_answered(cloud) for _ in range(2)][1]


def test_only_the_renaming_of_a_class_or_trait_concerns_trees(cloud: Database) -> None:
    picture = Picture()
    assert_current(cloud, picture)
    with cloud.writer.begin() as connection:
        run(connection, "INSERT INTO resource_classes (id, name) VALUES (10000, 'CUSTOM_A'), (10001, 'CUSTOM_B')")
        run(connection, "INSERT INTO traits (name) VALUES ('CUSTOM_A')", "DELETE FROM traits WHERE name = 'CUSTOM_A'")
        run(connection, "DELETE FROM resource_classes WHERE id = 10000")
    assert_current(cloud, picture)
    assert picture.read_anew == 1
    with cloud.writer.begin() as connection:
        run(connection, "UPDATE resource_classes SET name = 'CUSTOM_C' WHERE id = 10001")
    assert_current(cloud, picture)
    assert picture.read_anew == 2


def test_what_is_committed_late_by_an_older_transaction_is_seen(cloud: Database) -> None:
    if cloud.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    picture = Picture()
    with opened(cloud) as slow, opened(cloud) as fast:
        allocate(slow, "slow", {(1, VCPU): 1})
        allocate(fast, "fast", {(2, VCPU): 1})
        assert_current(cloud, picture)
        fast.commit()
        assert_current(cloud, picture)
        put_in_order(cloud)
        assert_current(cloud, picture)
        slow.commit()
        assert_current(cloud, picture)
    assert sorted(picture.left)[:3] == [(1, 1, 999), (2, 2, 999), (3, 3, 1000)]
    assert picture.read_anew == 1


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param([MOVED], id="a tree moves below another"),
        pytest.param([EMPTIED, LEFT_TREE, GONE], id="a provider leaves its tree and goes"),
        pytest.param([EMPTIED, GONE], id="a provider goes"),
        pytest.param(
            [COME, "UPDATE resource_providers SET root_provider_id = 50 WHERE id = 50", stocking((50, VCPU), total=7)],
            id="a provider comes",
        ),
        pytest.param([EMPTIED, GONE, BELOW, stocking((5, VCPU), total=7)], id="another one gets its id"),
        pytest.param(["UPDATE resource_providers SET uuid = 'x', root_provider_id = 1 WHERE id = 2"], id="all at once"),
    ],
)
@pytest.mark.parametrize("together", [True, False], ids=["at once", "one by one"])
def test_where_providers_come_move_and_go_only_their_trees_are_read(
    cloud: Database, statements: list[str], *, together: bool
) -> None:
    picture = Picture()
    assert_current(cloud, picture)
    for some in [statements] if together else [[one] for one in statements]:
        with cloud.writer.begin() as connection:
            for statement in some:
                # MariaDB refuses to delete a row that refers to itself.
                run(connection, *[LEFT_TREE] * (statement == GONE and cloud.dialect == "mysql"), statement)
        assert_current(cloud, picture)
    assert picture.read_anew == 1


@pytest.mark.parametrize("origin", ["just begun", "of a former release"])
def test_nothing_is_read_again_while_the_journal_stands_still(cloud: Database, origin: str) -> None:
    with cloud.writer.begin() as connection:
        if origin == "just begun":
            run(connection, PRUNED)
            begin(connection)
        else:
            run(connection, "UPDATE placement_journal SET oldest_open = NULL")
    put_in_order(cloud)
    picture = Picture()
    for _ in range(3):
        assert_current(cloud, picture)
    assert picture.read_anew == 1


@pytest.mark.parametrize("later", [{}, {(2, VCPU): 5}], ids=["nothing-later", "a-change-later"])
def test_once_the_journal_is_pruned_the_reader_starts_anew(cloud: Database, later: dict[tuple[int, int], int]) -> None:
    picture = Picture()
    assert_current(cloud, picture)
    with cloud.writer.begin() as connection:
        allocate(connection, "c", {(1, VCPU): 3})
        run(connection, PRUNED)
        allocate(connection, "d", later)
    assert_current(cloud, picture)
    assert picture.read_anew == 2


def test_what_went_past_the_triggers_is_seen_after_some_minutes(cloud: Database) -> None:
    """Another process writes so that they do not fire: changes leave no trace in the journal."""
    now = [1000.0]
    cloud.cloud_cache = CloudCache(lambda: now[0])
    assert_in_order(cloud)
    with cloud.writer.begin() as connection:
        allocate(connection, "unnoticed", {(4, VCPU): 900})
        run(connection, "DELETE FROM placement_journal WHERE id = (SELECT max(id) FROM placement_journal)")
    now[0] += MAX_AGE_S + 1
    assert_in_order(cloud)


def test_where_much_has_changed_all_is_read_again(cloud: Database) -> None:
    picture = Picture()
    columns = "id, uuid, name, generation, root_provider_id"
    providers = IN_NUMBERS.format(f"resource_providers ({columns})", MAX_CHANGED, "id, id, id, 0, id FROM n")
    stocks = IN_NUMBERS.format(
        "inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, "
        "allocation_ratio)",
        ALWAYS_READ_ALONE + 1,
        f"id, {VCPU}, 9 + id % 7, 0, 1, 9, 1, 1.0 FROM n",
    )
    for statements, anew in (((), 1), ((providers,), 2), ((stocks,), 2)):
        with cloud.writer.begin() as connection:
            if cloud.dialect == "mysql":
                run(connection, f"SET max_recursive_iterations = {2 * MAX_CHANGED}")
            run(connection, *statements)
        put_in_order(cloud)
        assert_current(cloud, picture)
        assert picture.read_anew == anew
        assert_in_order(cloud)
