"""The journal calls resource classes and traits what they were called then, whatever became of them and their ids."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, event, text

from placement.services.journal import newest, prune, read_feed, read_history, read_trail
from placement.services.names import delete_class, delete_trait, rename_class
from placement.store.connection.database import Database
from placement.store.journal.order import BEGINNING, Cursor
from placement.store.journal.reading import Entry, EntryFilter
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively
from placement.store.tables import utc_now
from tests.store.rows import add_providers, allocate, opened, run, stocking
from tests.upgrades import downgrade

CLASS = 10_000
TRAIT = 5000
SPOT = (1, CLASS)

Call = tuple[str, str, str | None]
"""The kind and the action of a row, and what it calls its class or trait."""


@pytest.fixture
def database(database: Database) -> Database:
    """A database of each of the three kinds, with a provider."""
    with database.writer.begin() as connection:
        add_providers(connection, 1)
    return database


@pytest.fixture
def raced(on_server: Database) -> Database:
    """A database whose writers do not wait for each other, with a provider that holds something of a class."""
    with on_server.writer.begin() as connection:
        add_providers(connection, 1)
    use_class(on_server)
    return on_server


def make_class(connection: Connection, name: str) -> None:
    """Create a class, under the id that the last custom one had."""
    run(connection, f"INSERT INTO resource_classes (id, name) VALUES ({CLASS}, '{name}')")


def make_trait(connection: Connection, name: str) -> None:
    """Create a trait, under an id that was in use before, as on SQLite."""
    run(connection, f"INSERT INTO traits (id, name) VALUES ({TRAIT}, '{name}')")


def hold(connection: Connection, consumer: str = "c") -> None:
    """Give the provider an inventory of the class, and allocate some of it."""
    run(connection, stocking(SPOT, total=8))
    allocate(connection, consumer, {SPOT: 2})


def use_class(database: Database) -> None:
    with database.writer.begin() as connection:
        make_class(connection, "CUSTOM_A")
        hold(connection)


def let_go(connection: Connection) -> None:
    tables = ("allocations", "inventories")
    run(connection, *[f"DELETE FROM {table} WHERE resource_class_id = {CLASS}" for table in tables])


def mark(connection: Connection) -> None:
    run(connection, f"INSERT INTO resource_provider_traits (trait_id, resource_provider_id) VALUES ({TRAIT}, 1)")


def unmark(connection: Connection) -> None:
    run(connection, f"DELETE FROM resource_provider_traits WHERE trait_id = {TRAIT}")


def calls_in(entries: list[Entry]) -> list[Call]:
    """Return what entries call classes and traits, in the order of ids."""
    ordered = sorted(entries, key=lambda entry: entry.id)
    named = [(entry, entry.resource_class or entry.name) for entry in ordered]
    return [(entry.kind, entry.action, name) for entry, name in named if name]


def assert_called(database: Database, expected: list[Call]) -> None:
    """Compare what the trail and the feed call classes and traits, on one page and on many."""
    assert calls_in(read_trail(database, EntryFilter(), limit=1000)) == expected
    assert calls_in(read_feed(database, limit=1000)[0]) == expected
    pages, cursor, before = list[Entry](), BEGINNING, None
    while (page := read_feed(database, cursor, limit=1))[0]:
        pages, cursor = [*pages, *page[0]], page[1]
    assert calls_in(pages) == expected
    backwards = list[Entry]()
    while entries := read_trail(database, EntryFilter(), limit=1, before=before):
        backwards, before = [*backwards, *entries], entries[-1].id
    assert calls_in(backwards) == expected


def life(name: str, *kinds: str) -> list[Call]:
    """Return the rows of a class or trait that is created, used and deleted."""
    return [(kind, "created", name) for kind in kinds] + [(kind, "deleted", name) for kind in reversed(kinds)]


OF_CLASS = ("class_name", "inventory", "allocation")


def life_of_class(name: str) -> list[Call]:
    return life(name, *OF_CLASS)


KINDS_OF_NAMES = {
    "class": ([make_class, lambda connection, _name: hold(connection)], let_go, delete_class, OF_CLASS),
    "trait": ([make_trait, lambda connection, _name: mark(connection)], unmark, delete_trait, ("trait_name", "trait")),
}


@pytest.mark.parametrize("kind", KINDS_OF_NAMES)
@pytest.mark.parametrize("names", [["CUSTOM_A"], ["CUSTOM_A", "CUSTOM_B"]], ids=["once", "its id again"])
def test_a_deleted_class_or_trait_keeps_its_name(database: Database, kind: str, names: list[str]) -> None:
    uses, gives_back, delete, kinds = KINDS_OF_NAMES[kind]
    for name in names:
        with database.writer.begin() as connection:
            for use in uses:
                use(connection, name)
            gives_back(connection)
        delete(database, name)
    assert_called(database, [call for name in names for call in life(name, *kinds)])


def test_a_class_is_told_under_the_name_of_the_time(database: Database) -> None:
    use_class(database)
    rename_class(database, "CUSTOM_A", "CUSTOM_B")
    rename_class(database, "CUSTOM_B", "CUSTOM_C")
    with database.writer.begin() as connection:
        let_go(connection)
        run(connection, "UPDATE resource_classes SET updated_at = NULL")  # no other name
    renamed = [("class_name", "changed", "CUSTOM_A"), ("class_name", "changed", "CUSTOM_B")]
    assert_called(database, [*life_of_class("CUSTOM_A")[:3], *renamed, *life_of_class("CUSTOM_C")[3:5]])
    newest_name = read_trail(database, EntryFilter(kinds=("class_name",)), limit=1)[0]
    assert (newest_name.old, newest_name.new) == ({"name": "CUSTOM_B"}, {"name": "CUSTOM_C"})


def test_an_id_that_an_operator_changes_is_another_class(database: Database) -> None:
    use_class(database)
    with database.writer.begin() as connection:
        let_go(connection)
        run(connection, f"UPDATE resource_classes SET id = {CLASS + 1} WHERE id = {CLASS}")
        make_class(connection, "CUSTOM_B")
    a, b = life_of_class("CUSTOM_A"), life_of_class("CUSTOM_B")
    assert_called(database, [*a, a[0], b[0]])


def just_now(database: Database) -> datetime:
    """Return a moment just after the newest row, before whatever comes next."""
    moment = read_trail(database, EntryFilter(), limit=1)[0].time + timedelta(milliseconds=2)
    while utc_now() < moment:
        pass
    return moment


def test_the_past_of_a_provider_has_the_names_of_the_time(database: Database) -> None:
    moments = []
    for name in ("CUSTOM_A", "CUSTOM_B"):
        with database.writer.begin() as connection:
            make_class(connection, name)
            make_trait(connection, name)
            hold(connection, f"of {name}")
            mark(connection)
        moments.append(just_now(database))
        rename_class(database, name, f"{name}_AGAIN")
        moments.append(just_now(database))
        with database.writer.begin() as connection:
            let_go(connection)
            unmark(connection)
        delete_class(database, f"{name}_AGAIN")
        delete_trait(database, name)
        moments.append(just_now(database))
    states = [read_history(database, "provider-1", moment) for moment in moments]
    assert [(state.usages, sorted(state.inventories), state.traits) for state in states] == [
        ({"CUSTOM_A": 2}, ["CUSTOM_A"], {"CUSTOM_A"}),
        ({"CUSTOM_A_AGAIN": 2}, ["CUSTOM_A_AGAIN"], {"CUSTOM_A"}),
        ({}, [], set()),
        ({"CUSTOM_B": 2}, ["CUSTOM_B"], {"CUSTOM_B"}),
        ({"CUSTOM_B_AGAIN": 2}, ["CUSTOM_B_AGAIN"], {"CUSTOM_B"}),
        ({}, [], set()),
    ]
    assert states[0].holders == {"of CUSTOM_A": {"CUSTOM_A": 2}}


def test_the_release_before_goes_on_without_names_and_the_next_one_keeps_them_again(database: Database) -> None:
    use_class(database)
    with exclusively(database.engine) as connection:
        downgrade(connection, "0004")
    with database.writer.begin() as connection:
        run(connection, f"UPDATE resource_classes SET name = 'CUSTOM_B' WHERE id = {CLASS}")
        allocate(connection, "while downgraded", {SPOT: 1})
    assert schema.upgrade(database.engine) == ()
    with database.writer.begin() as connection:
        let_go(connection)
    delete_class(database, "CUSTOM_B")
    b = life_of_class("CUSTOM_B")
    assert_called(database, [*b[:3], b[2], b[3], *b[3:]])
    began = read_trail(database, EntryFilter(kinds=("journal",)), limit=9)
    assert len(began) == 2  # the triggers of providers went with the table


def test_what_is_given_back_while_a_class_is_being_deleted_is_told_before(raced: Database) -> None:
    """Else its row would be about whatever gets the id next."""
    checks = list[str]()

    def give_back(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "EXISTS" in statement and not checks:
            checks.append(statement)
            with raced.writer.begin() as other:
                let_go(other)

    event.listen(raced.engine, "before_cursor_execute", give_back)
    delete_class(raced, "CUSTOM_A")
    event.remove(raced.engine, "before_cursor_execute", give_back)
    with raced.writer.begin() as connection:
        make_class(connection, "CUSTOM_B")
    assert_called(raced, [*life_of_class("CUSTOM_A"), ("class_name", "created", "CUSTOM_B")])


Follow = Callable[[], list[Call]]


@pytest.fixture
def follow(raced: Database) -> Follow:
    """Reads the journal on from the newest position until there is nothing more, row by row."""
    cursor: Cursor = newest(raced)

    def read_on() -> list[Call]:
        nonlocal cursor
        entries = list[Entry]()
        while (page := read_feed(raced, cursor, limit=1))[0]:
            entries, cursor = [*entries, *page[0]], page[1]
        cursor = page[1]
        return [(entry.kind, entry.action, entry.resource_class) for entry in entries]

    return read_on


RENAMING = f"UPDATE resource_classes SET name = 'CUSTOM_B' WHERE id = {CLASS}"


def test_a_reader_is_told_names_that_it_knows_when_a_claim_overtakes_a_renaming(
    raced: Database, follow: Follow
) -> None:
    with opened(raced) as early, opened(raced) as late:
        allocate(early, "early", {SPOT: 1})
        run(late, RENAMING)
        allocate(late, "late", {(2, CLASS): 1})
        late.commit()
        assert follow() == [("class_name", "changed", "CUSTOM_A"), ("allocation", "created", "CUSTOM_B")]
        early.commit()
        assert follow() == [("allocation", "created", "CUSTOM_B")]  # although its id is lower than the renaming's


def test_a_reader_is_told_names_that_it_knows_when_a_renaming_is_committed_late(raced: Database) -> None:
    with opened(raced) as slow, opened(raced) as fast:
        cursor = newest(raced)
        run(slow, RENAMING)
        allocate(fast, "fast", {SPOT: 1})
        allocate(fast, "fast", {SPOT: 2})
        fast.commit()
        pages = [read_feed(raced, cursor, limit=1)]
        slow.commit()
        while pages[-1][0] or len(pages) < 4:  # the portion ends before the renaming is told
            pages.append(read_feed(raced, pages[-1][1], limit=1))
    assert [(entry.kind, entry.resource_class) for entries, _cursor in pages for entry in entries] == [
        ("allocation", "CUSTOM_A"),
        ("allocation", "CUSTOM_A"),
        ("class_name", "CUSTOM_A"),
    ]


def test_a_name_goes_with_the_last_row_that_may_need_it(database: Database) -> None:
    use_class(database)
    with database.writer.begin() as connection:
        let_go(connection)
    delete_class(database, "CUSTOM_A")
    with database.writer.begin() as connection:
        make_class(connection, "CUSTOM_B")
    rename_class(database, "CUSTOM_B", "CUSTOM_C")
    every = read_trail(database, EntryFilter(), limit=1000)
    deletion = next(entry for entry in every if (entry.kind, entry.action) == ("class_name", "deleted"))
    with database.writer.begin() as connection:
        run(connection, f"UPDATE placement_journal SET time = '2001-02-03 04:05:06.000000' WHERE id < {deletion.id}")
    # The newest row stays, and so does its name.
    for keep_days, names, rows in ((1, ["CUSTOM_A", "CUSTOM_B"], 3), (0, ["CUSTOM_B"], 1)):
        prune(database, keep_days=keep_days)
        assert calls_in(read_trail(database, EntryFilter(), limit=1000)) == calls_in(every)[-rows:]
        with database.engine.connect() as connection:
            kept = connection.execute(text("SELECT name FROM placement_former_names ORDER BY journal_id"))
            assert [*kept.scalars()] == names
