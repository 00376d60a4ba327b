"""What a worker keeps of the cloud equals each snapshot, whoever writes: columns, names, orders, texts, answers."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from random import Random

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking
from placement.cloud.derived import ALWAYS_READ_ALONE, MAX_CHANGED
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.services.allocation_candidates import (
    Answer,
    CandidateQuestion,
    SearchOptions,
    allocation_candidates,
    answer_to,
)
from placement.services.answer_texts import TextsOfTree, WrittenForm, written_answer
from placement.services.cloud_cache import CloudCache, compare_some
from placement.services.journal import put_in_order
from placement.services.tree_history import MAX_AGE_S
from placement.store.connection.database import Database, Transaction, reads
from placement.store.connection.engines import engine_for
from placement.store.lifecycle.opening import normalised
from placement.store.search.names import ids_for
from tests.conftest import KINDS
from tests.databases import without_caches
from tests.store.rows import (
    DISK_GB,
    MEMORY_MB,
    VCPU,
    add_providers,
    allocate,
    by_request,
    delete_provider,
    making,
    opened,
    run,
    stocking,
)
from tests.store.snapshots import assert_as_stored, cached_order

ROOTS, BELOW, SLOW, EVENTS = 6, 6, 50, 60
WRITERS, READERS = 4, 3
USE = "resource_provider_id, resource_class_id, consumer_id, used"
RATIOS = (1.0, 1.5, 0.1, 1.1, 16.123456789012345, 3.0000000000000004)


@pytest.fixture(params=[*KINDS, *["postgresql by SQLAlchemy"] * ("postgresql" in KINDS)])
def cloud(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Some trees of two providers each, and one for a slow transaction."""
    url = normalised(request.getfixturevalue(f"{request.param.partition(' ')[0]}_url"))
    plain = request.param.endswith("SQLAlchemy")
    database = Database(engine_for(url, sqlite_synchronous=False, plain_sqlalchemy=plain))
    with database.writer.begin() as connection:
        for provider in add_providers(connection, ROOTS):
            below = provider + ROOTS
            run(connection, making(below, root=provider, parent=provider), stocking((below, VCPU), total=50))
            run(connection, stocking((provider, VCPU), total=100), stocking((provider, MEMORY_MB), total=1000))
        run(connection, making(SLOW, root=SLOW), stocking((SLOW, VCPU), total=100))
    yield database
    database.dispose()


def texts_of(answer: Answer) -> dict[int, TextsOfTree]:
    """Write an answer tree by tree, in any form."""
    stocks = answer.providers.stocks
    members = sorted(answer.providers.members.values(), key=lambda member: member.id)
    return {
        root: TextsOfTree(
            tuple([str(choice) for tree, choice in answer.candidates if tree == root]),
            str([(member, sorted(stocks.get(member.id, []))) for member in members if member.root_id == root]),
        )
        for root, _choice in answer.candidates
    }


def asking(**resources: int) -> CandidateRequest:
    return CandidateRequest(groups=(RequestGroup(resources=resources),), limit=5)


OPTIONS, RANKING = SearchOptions(breadth_first=True), Ranking(RankingProfile())
QUESTION, FORM = CandidateQuestion(asking(VCPU=3), OPTIONS, RANKING), WrittenForm("three", texts_of)
REQUESTS = (QUESTION.request, asking(VCPU=97), asking(DISK_GB=1), asking(VCPU=1, MEMORY_MB=990))
"""Some of them find candidates at times only."""


def compare(tx: Transaction) -> bool:
    """Compare all that is kept with the same snapshot; tell whether an answer was put together from kept texts."""
    assert_as_stored(tx)
    searched = answer_to(tx, QUESTION)
    texts = texts_of(searched)
    in_order = [texts[root] for root in dict.fromkeys([root for root, _choice in searched.candidates])]
    plan = plan_for(QUESTION.request)
    written = written_answer(tx, QUESTION, FORM, plan=plan, ids=ids_for(tx, plan))
    candidates = [str(choice) for _root, choice in searched.candidates]
    assert written in (None, (candidates, [each.providers for each in in_order]))
    return written is not None


assert_current = reads(compare)


def assert_answered(database: Database) -> None:
    """Compare all that is kept, and answers, with those of a process that keeps nothing."""
    assert_current(database)
    anew = without_caches(database)
    for request in REQUESTS:
        shown, expected = (
            allocation_candidates(each, CandidateQuestion(request, OPTIONS, RANKING)) for each in (database, anew)
        )
        assert shown.candidates == expected.candidates


class Events:
    """Random changes to trees, one transaction at a time."""

    def __init__(self, database: Database, choice: Random) -> None:
        self._database = database
        self.choice = choice

    def happen(self, *, may_fail: bool = False) -> None:
        """Make one to three changes at once, including some that this server's requests cannot make."""
        kinds = [self.allocate] * 3 + [self.give_back, self.change_use, self.tidy] + [self.restock] * 2
        kinds += [self.choice.choice([self.drop, self.add_class, self.move, self.come_or_go, self.mark, self.rename])]
        is_own = self.choice.random() < 0.75
        if not is_own:
            kinds += [self.allocate_anywhere] * 5
            kinds += [self.choice.choice([self.drop, self.lose_journal, self.rename_class])]
        with by_request() if is_own else nullcontext(), opened(self._database) as connection:
            if self._database.dialect == "postgresql":
                run(connection, "SET LOCAL lock_timeout = '10s'")
            for kind in self.choice.sample(kinds, self.choice.choice([1, 1, 1, 2, 3])):
                kind(connection)
            if not may_fail or self.choice.random() < 0.8:
                connection.commit()

    def _some(self) -> str:
        providers = self.choice.sample(range(1, ROOTS + BELOW + 3), 3)
        return f"resource_provider_id IN ({', '.join(map(str, providers))})"

    def allocate(self, connection: Connection) -> None:
        rows = f"SELECT resource_provider_id, resource_class_id, 'c', 1 + id % 3 FROM inventories WHERE {self._some()}"
        run(connection, f"INSERT INTO allocations ({USE}) {rows}")

    def allocate_anywhere(self, connection: Connection) -> None:
        spot = self.choice.randint(1, ROOTS + BELOW), self.choice.choice([VCPU, MEMORY_MB, DISK_GB])
        if connection.scalar(text(f"SELECT id FROM resource_providers WHERE id = {spot[0]}")):
            allocate(connection, "anybody", {spot: 7})

    def tidy(self, connection: Connection) -> None:
        run(connection, "DELETE FROM allocations WHERE consumer_id = 'anybody'")

    def give_back(self, connection: Connection) -> None:
        run(connection, f"DELETE FROM allocations WHERE {self._some()} AND id % 2 = 0")

    def change_use(self, connection: Connection) -> None:
        run(connection, f"UPDATE allocations SET used = used + 1 WHERE {self._some()} AND id % 3 = 0")

    def restock(self, connection: Connection) -> None:
        values = f"total = total + 5, reserved = id % 3, allocation_ratio = {self.choice.choice(RATIOS)}"
        run(connection, f"UPDATE inventories SET {values} WHERE {self._some()}")

    def drop(self, connection: Connection) -> None:
        run(connection, f"DELETE FROM inventories WHERE {self._some()} AND id % 2 = 0")

    def add_class(self, connection: Connection) -> None:
        provider, class_id = self.choice.randint(1, ROOTS + BELOW), self.choice.choice([VCPU, MEMORY_MB, DISK_GB])
        if connection.scalar(text(f"SELECT id FROM resource_providers WHERE id = {provider}")):
            run(connection, stocking((provider, class_id), total=30))

    def mark(self, connection: Connection) -> None:
        provider = self.choice.randint(1, ROOTS)
        run(connection, f"UPDATE resource_providers SET generation = generation + 1 WHERE id = {provider}")

    def rename(self, connection: Connection) -> None:
        provider, name = self.choice.randint(1, ROOTS + BELOW), f"name{self.choice.random()}"
        run(connection, f"UPDATE resource_providers SET name = '{name}' WHERE id = {provider}")

    def rename_class(self, connection: Connection) -> None:
        if not connection.scalar(text("SELECT id FROM resource_classes WHERE id = 10000")):
            run(connection, "INSERT INTO resource_classes (id, name) VALUES (10000, 'CUSTOM_A')")
        run(connection, f"UPDATE resource_classes SET name = 'CUSTOM_{self.choice.randint(1, 9)}' WHERE id = 10000")

    def move(self, connection: Connection) -> None:
        """Move a nested provider below another root, or make it a separate tree."""
        below = self.choice.randint(ROOTS + 1, ROOTS + BELOW)
        root, parent = self.choice.choice([(above, str(above)) for above in range(1, ROOTS)] + [(below, "NULL")])
        values = f"root_provider_id = {root}, parent_provider_id = {parent}"
        run(connection, f"UPDATE resource_providers SET {values} WHERE id = {below}")

    def come_or_go(self, connection: Connection) -> None:
        """Delete the last root with all its data except allocations, or create one with its id."""
        if connection.scalar(text(f"SELECT id FROM resource_providers WHERE id = {ROOTS}")):
            tree = f"SELECT id FROM resource_providers WHERE root_provider_id = {ROOTS}"
            run(connection, f"DELETE FROM inventories WHERE resource_provider_id IN ({tree})")
            run(connection, f"DELETE FROM resource_providers WHERE root_provider_id = {ROOTS} AND id <> {ROOTS}")
            delete_provider(connection, ROOTS)
        else:
            run(connection, making(ROOTS, root=ROOTS), stocking((ROOTS, VCPU), total=77))

    def lose_journal(self, connection: Connection) -> None:
        """Delete all rows; another one follows, as after any time."""
        another = "UPDATE resource_providers SET generation = generation + 1 WHERE id = 1"
        run(connection, "DELETE FROM placement_journal", another)


def test_all_that_is_kept_is_that_of_each_snapshot_whatever_happens(
    cloud: Database, request: pytest.FixtureRequest
) -> None:
    """Others read while an older snapshot is open, and an older transaction commits after newer ones."""
    seed = request.config.getoption("--seed")
    for number in range(12 if request.config.getoption("--deep") else 1):
        cloud.cloud_cache, choice, times_kept = None, Random(seed + number), 0
        events = Events(cloud, choice)
        for _ in range(EVENTS):
            if choice.random() < 0.2:
                _beside_older_snapshot(cloud, events)
            elif choice.random() < 0.2 and cloud.dialect == "postgresql":
                _beside_slow_writer(cloud, events)
            else:
                events.happen()
            assert_answered(cloud)
            times_kept += cached_order(cloud) is not None
        assert times_kept > EVENTS // 2


@reads
def _beside_older_snapshot(tx: Transaction, events: Events) -> None:
    if events.choice.random() < 0.5:
        compare(tx)
    else:
        tx.tuples(text("SELECT count(*) FROM placement_journal"))
    for _ in range(events.choice.randint(1, 3)):
        events.happen()
        assert_current(tx.database)
    compare(tx)


def _beside_slow_writer(database: Database, events: Events) -> None:
    with by_request():
        slow = opened(database)
        allocate(slow, "slow", {(SLOW, VCPU): 1})
    with slow:
        events.happen()
        assert_current(database)
        slow.commit()


@contextmanager
def writing(database: Database) -> Iterator[Callable[[], bool]]:
    """Let writers race, and yield a function that returns whether any is still running."""
    together = threading.Barrier(WRITERS + 1)

    def write(seed: int) -> None:
        events = Events(database, Random(seed))
        together.wait()
        for _ in range(EVENTS // 2):
            with suppress(DBAPIError):  # a deadlock
                events.happen(may_fail=True)
            if events.choice.random() < 0.1:
                put_in_order(database)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(WRITERS)]
    for writer in writers:
        writer.start()
    together.wait()
    yield lambda: any(writer.is_alive() for writer in writers)
    for writer in writers:
        writer.join()


def test_what_readers_share_is_that_of_each_snapshot_beside_racing_writers(cloud: Database) -> None:
    """The check that compares some of it in the background finds no difference meanwhile."""
    drops = list[str]()
    cloud.on_event = lambda event, cause: drops.append(cause) if event == "drop" else None
    assert not assert_current(cloud)  # It has not been asked for before.
    with writing(cloud) as are_at_work, ThreadPoolExecutor(READERS) as readers:

        def read() -> None:
            while are_at_work():
                assert_current(cloud)
                compare_some(cloud)

        for done in [readers.submit(read) for _ in range(READERS)]:
            done.result()
    assert [assert_current(cloud) for _ in range(2)][1]
    assert drops == []


def test_what_went_past_the_triggers_is_seen_after_some_minutes(cloud: Database) -> None:
    """Another process writes so that they do not fire: changes leave no trace in the journal."""
    now = [1000.0]
    cloud.cloud_cache = CloudCache(lambda: now[0])
    assert_answered(cloud)
    with cloud.writer.begin() as connection:
        allocate(connection, "unnoticed", {(4, VCPU): 90})
        run(connection, "DELETE FROM placement_journal WHERE id = (SELECT max(id) FROM placement_journal)")
    now[0] += MAX_AGE_S + 1
    assert_answered(cloud)


@pytest.mark.parametrize("number", [ALWAYS_READ_ALONE + 1, MAX_CHANGED])
def test_very_many_changes_at_once_are_followed(cloud: Database, number: int) -> None:
    numbers = f"WITH RECURSIVE n(id) AS (SELECT 100 UNION ALL SELECT id + 1 FROM n WHERE id < 99 + {number})"
    assert_current(cloud)
    with cloud.writer.begin() as connection:
        if cloud.dialect == "mysql":
            run(connection, f"SET max_recursive_iterations = {2 * number}")
        run(
            connection,
            "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id) "
            f"{numbers} SELECT id, id, id, 0, id FROM n",
            "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, "
            f"step_size, allocation_ratio) {numbers} SELECT id, {VCPU}, 9 + id % 7, 0, 1, 9, 1, 1.0 FROM n",
        )
    put_in_order(cloud)
    assert_answered(cloud)
