"""The journal calls resource classes and traits what they were called then, whatever became of them and their ids."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, event, text

from placement.services.journal import newest, prune, read_feed, read_history, read_trail
from placement.services.marks import delete_trait
from placement.services.resource_classes import delete_class, rename_class
from placement.store.connection.database import Database
from placement.store.journal.cursor import BEGINNING, Cursor
from placement.store.journal.history import PastProvider
from placement.store.journal.reading import Entry, EntryFilter
from placement.store.lifecycle import copying, schema
from placement.store.lifecycle.maintenance import exclusively
from placement.store.tables import utc_now
from tests.databases import open_database
from tests.store.rows import add_providers, allocate, opened, run, stocking
from tests.upgrades import downgrade

CLASS = 10_000
TRAIT = 5000
SPOT = (1, CLASS)

Call = tuple[str, str, str | None]
"""The kind and the action of a row, and what it calls its class or trait."""


def make_class(connection: Connection, name: str) -> None:
    """Create a class, under the id that the last custom one had."""
    run(connection, f"INSERT INTO resource_classes (id, name) VALUES ({CLASS}, '{name}')")


def make_trait(connection: Connection, name: str) -> None:
    """Create a trait, under an id that was in use before, as on SQLite."""
    run(connection, f"INSERT INTO traits (id, name) VALUES ({TRAIT}, '{name}')")


def hold(connection: Connection, consumer: str) -> None:
    """Give the provider an inventory of the class, and allocate some of it."""
    run(connection, stocking(SPOT, total=8))
    allocate(connection, consumer, {SPOT: 2})


def let_go(connection: Connection) -> None:
    run(
        connection,
        *[f"DELETE FROM {table} WHERE resource_class_id = {CLASS}" for table in ("allocations", "inventories")],
    )


def mark(connection: Connection) -> None:
    run(connection, f"INSERT INTO resource_provider_traits (trait_id, resource_provider_id) VALUES ({TRAIT}, 1)")


def unmark(connection: Connection) -> None:
    run(connection, f"DELETE FROM resource_provider_traits WHERE trait_id = {TRAIT}")


def told(entries: list[Entry]) -> list[Call]:
    """Return what entries call classes and traits, in the order of ids."""
    ordered = sorted(entries, key=lambda entry: entry.id)
    return [(one.kind, one.action, one.resource_class or one.name) for one in ordered if one.resource_class or one.name]


def assert_called(database: Database, expected: list[Call]) -> None:
    """Compare what the trail and the feed call classes and traits, on one page and on many."""
    assert told(read_trail(database, EntryFilter(), limit=1000)) == expected
    assert told(read_feed(database, limit=1000)[0]) == expected
    pages, cursor, before = list[Entry](), BEGINNING, None
    while (page := read_feed(database, cursor, limit=1))[0]:
        pages, cursor = [*pages, *page[0]], page[1]
    assert told(pages) == expected
    backwards = list[Entry]()
    while entries := read_trail(database, EntryFilter(), limit=1, before=before):
        backwards, before = [*backwards, *entries], entries[-1].id
    assert told(backwards) == expected


def life_of_class(name: str) -> list[Call]:
    """Return the rows of a class that is created, used and deleted."""
    kinds = [("class_name", "created"), ("inventory", "created"), ("allocation", "created")]
    ends = [("allocation", "deleted"), ("inventory", "deleted"), ("class_name", "deleted")]
    return [(kind, action, name) for kind, action in kinds + ends]


def life_of_trait(name: str) -> list[Call]:
    """Return the rows of a trait that is created, given to a provider, taken from it and deleted."""
    actions = [("trait_name", "created"), ("trait", "created"), ("trait", "deleted"), ("trait_name", "deleted")]
    return [(kind, action, name) for kind, action in actions]


@pytest.mark.parametrize("names", [["CUSTOM_A"], ["CUSTOM_A", "CUSTOM_B"]], ids=["once", "its id again"])
def test_a_deleted_class_keeps_its_name(migrated: Database, names: list[str]) -> None:
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
    for name in names:
        with migrated.writer.begin() as connection:
            make_class(connection, name)
            hold(connection, "c")
            let_go(connection)
        delete_class(migrated, name)
    assert_called(migrated, [call for name in names for call in life_of_class(name)])


@pytest.mark.parametrize("names", [["CUSTOM_A"], ["CUSTOM_A", "CUSTOM_B"]], ids=["once", "its id again"])
def test_a_deleted_trait_keeps_its_name(migrated: Database, names: list[str]) -> None:
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
    for name in names:
        with migrated.writer.begin() as connection:
            make_trait(connection, name)
            mark(connection)
            unmark(connection)
        delete_trait(migrated, name)
    assert_called(migrated, [call for name in names for call in life_of_trait(name)])


def test_a_class_is_told_under_the_name_of_the_time(migrated: Database) -> None:
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
        hold(connection, "c")
    rename_class(migrated, "CUSTOM_A", "CUSTOM_B")
    rename_class(migrated, "CUSTOM_B", "CUSTOM_C")
    with migrated.writer.begin() as connection:
        let_go(connection)
        run(connection, "UPDATE resource_classes SET updated_at = NULL")  # no other name
    a, b, c = (life_of_class(f"CUSTOM_{letter}") for letter in "ABC")
    assert_called(
        migrated, [*a[:3], ("class_name", "changed", "CUSTOM_A"), ("class_name", "changed", "CUSTOM_B"), *c[3:5]]
    )
    renamed = read_trail(migrated, EntryFilter(kinds=("class_name",)), limit=1)[0]
    assert (renamed.old, renamed.new) == ({"name": "CUSTOM_B"}, {"name": "CUSTOM_C"})
    assert b[0] not in told(read_trail(migrated, EntryFilter(), limit=1000))


def test_an_id_that_an_operator_changes_is_another_class(migrated: Database) -> None:
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
        hold(connection, "c")
        let_go(connection)
        run(connection, f"UPDATE resource_classes SET id = {CLASS + 1} WHERE id = {CLASS}")
        make_class(connection, "CUSTOM_B")
    a, b = life_of_class("CUSTOM_A"), life_of_class("CUSTOM_B")
    assert_called(migrated, [*a, a[0], b[0]])


def past(database: Database, moment: datetime) -> PastProvider:
    return read_history(database, "provider-1", moment)


def just_now(database: Database) -> datetime:
    """Return a moment just after the newest row, before whatever comes next."""
    moment = read_trail(database, EntryFilter(), limit=1)[0].time + timedelta(milliseconds=2)
    while utc_now() < moment:
        pass
    return moment


def test_the_past_of_a_provider_has_the_names_of_the_time(migrated: Database) -> None:
    moments = []
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
    for name in ("CUSTOM_A", "CUSTOM_B"):
        with migrated.writer.begin() as connection:
            make_class(connection, name)
            make_trait(connection, name)
            hold(connection, f"of {name}")
            mark(connection)
        moments.append(just_now(migrated))
        rename_class(migrated, name, f"{name}_AGAIN")
        moments.append(just_now(migrated))
        with migrated.writer.begin() as connection:
            let_go(connection)
            unmark(connection)
        delete_class(migrated, f"{name}_AGAIN")
        delete_trait(migrated, name)
        moments.append(just_now(migrated))
    found = [past(migrated, moment) for moment in moments]
    assert [(one.usages, sorted(one.inventories), one.traits) for one in found] == [
        ({"CUSTOM_A": 2}, ["CUSTOM_A"], {"CUSTOM_A"}),
        ({"CUSTOM_A_AGAIN": 2}, ["CUSTOM_A_AGAIN"], {"CUSTOM_A"}),
        ({}, [], set()),
        ({"CUSTOM_B": 2}, ["CUSTOM_B"], {"CUSTOM_B"}),
        ({"CUSTOM_B_AGAIN": 2}, ["CUSTOM_B_AGAIN"], {"CUSTOM_B"}),
        ({}, [], set()),
    ]
    assert found[0].holders == {"of CUSTOM_A": {"CUSTOM_A": 2}}


def test_the_release_before_goes_on_without_names_and_the_next_one_keeps_them_again(migrated: Database) -> None:
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
        hold(connection, "c")
    with exclusively(migrated.engine) as connection:
        downgrade(connection, "0004")
    with migrated.writer.begin() as connection:
        run(connection, f"UPDATE resource_classes SET name = 'CUSTOM_B' WHERE id = {CLASS}")
        allocate(connection, "while downgraded", {SPOT: 1})
    assert schema.upgrade(migrated.engine) == ()
    with migrated.writer.begin() as connection:
        let_go(connection)
    delete_class(migrated, "CUSTOM_B")
    b = life_of_class("CUSTOM_B")
    assert_called(migrated, [*b[:3], b[2], b[3], *b[3:]])
    began = read_trail(migrated, EntryFilter(kinds=("journal",)), limit=9)
    assert len(began) == 2  # the triggers of providers went with the table


def test_a_copy_goes_on_from_sqlite_to_the_others(sqlite_url: str, empty_url: str) -> None:
    source, target = open_database(sqlite_url), open_database(empty_url)
    with source.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
        hold(connection, "c")
        let_go(connection)
        run(connection, f"DELETE FROM resource_classes WHERE id = {CLASS}")
    copying.copy(source.engine, target.engine)
    with target.writer.begin() as connection:
        make_class(connection, "CUSTOM_B")
        hold(connection, "c")
        let_go(connection)
    delete_class(target, "CUSTOM_B")
    assert_called(target, life_of_class("CUSTOM_A") + life_of_class("CUSTOM_B"))
    source.dispose()
    target.dispose()


def test_what_is_given_back_while_a_class_is_being_deleted_is_told_before(on_server: Database) -> None:
    """Else its row would be about whatever gets the id next."""
    with on_server.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
        hold(connection, "c")

    checks = list[str]()

    def give_back(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "EXISTS" in statement and not checks:
            checks.append(statement)
            with on_server.writer.begin() as other:
                let_go(other)

    event.listen(on_server.engine, "before_cursor_execute", give_back)
    delete_class(on_server, "CUSTOM_A")
    event.remove(on_server.engine, "before_cursor_execute", give_back)
    with on_server.writer.begin() as connection:
        make_class(connection, "CUSTOM_B")
    assert_called(on_server, [*life_of_class("CUSTOM_A"), ("class_name", "created", "CUSTOM_B")])


def follow(database: Database, cursor: Cursor, *, limit: int = 1) -> tuple[list[Call], Cursor]:
    """Read on until there is nothing more."""
    entries = list[Entry]()
    while (page := read_feed(database, cursor, limit=limit))[0]:
        entries, cursor = [*entries, *page[0]], page[1]
    return [(one.kind, one.action, one.resource_class) for one in entries], page[1]


def test_a_reader_is_told_names_that_it_knows_when_a_claim_overtakes_a_renaming(on_server: Database) -> None:
    with on_server.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
    cursor = newest(on_server)
    with opened(on_server) as early, opened(on_server) as late:
        allocate(early, "early", {SPOT: 1})
        run(late, f"UPDATE resource_classes SET name = 'CUSTOM_B' WHERE id = {CLASS}")
        allocate(late, "late", {(2, CLASS): 1})
        late.commit()
        calls, cursor = follow(on_server, cursor)
        assert calls == [("class_name", "changed", "CUSTOM_A"), ("allocation", "created", "CUSTOM_B")]
        early.commit()
        calls, cursor = follow(on_server, cursor)
        assert calls == [("allocation", "created", "CUSTOM_B")]  # although its id is lower than the renaming's


def test_a_reader_is_told_names_that_it_knows_when_a_renaming_is_committed_late(on_server: Database) -> None:
    with on_server.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
    cursor = newest(on_server)
    with opened(on_server) as slow, opened(on_server) as fast:
        run(slow, f"UPDATE resource_classes SET name = 'CUSTOM_B' WHERE id = {CLASS}")
        allocate(fast, "fast", {SPOT: 1})
        allocate(fast, "fast", {SPOT: 2})
        fast.commit()
        first, cursor = read_feed(on_server, cursor, limit=1)
        slow.commit()
        rest, cursor = follow(on_server, cursor)  # of the portion
        news, cursor = follow(on_server, cursor)
    assert [one.resource_class for one in first] == ["CUSTOM_A"]
    assert (rest, news) == ([("allocation", "created", "CUSTOM_A")], [("class_name", "changed", "CUSTOM_A")])


def test_a_name_goes_with_the_last_row_that_may_need_it(migrated: Database) -> None:
    with migrated.writer.begin() as connection:
        add_providers(connection, 1)
        make_class(connection, "CUSTOM_A")
        hold(connection, "c")
        let_go(connection)
    delete_class(migrated, "CUSTOM_A")
    with migrated.writer.begin() as connection:
        make_class(connection, "CUSTOM_B")
    rename_class(migrated, "CUSTOM_B", "CUSTOM_C")
    every = read_trail(migrated, EntryFilter(), limit=1000)
    deletion = next(one for one in every if (one.kind, one.action) == ("class_name", "deleted"))
    with migrated.writer.begin() as connection:
        run(connection, f"UPDATE placement_journal SET time = '2001-02-03 04:05:06.000000' WHERE id < {deletion.id}")
    prune(migrated, keep_days=1)
    assert former(migrated) == ["CUSTOM_A", "CUSTOM_B"]
    assert told(read_trail(migrated, EntryFilter(), limit=1000)) == told(every)[-3:]
    prune(migrated, keep_days=0)
    assert former(migrated) == ["CUSTOM_B"]  # the newest row stays, and so does its name
    assert told(read_trail(migrated, EntryFilter(), limit=1000)) == told(every)[-1:]


def former(database: Database) -> list[str]:
    with database.engine.connect() as connection:
        return list(connection.execute(text("SELECT name FROM placement_former_names ORDER BY journal_id")).scalars())
