"""Rows of providers and of their data, on every kind of database."""

import pytest
from sqlalchemy import event, text

from placement.domain.inventory import Inventory
from placement.domain.provider import Move
from placement.errors import ConcurrentUpdate
from placement.services import providers as service
from placement.services.marks import ensure_trait, replace_provider_traits
from placement.services.resource_classes import create_class, delete_class, ensure_class
from placement.store import inventories, providers
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import writes
from placement.store.marks import replace_aggregates
from tests.store.rows import VCPU, allocate, run

FIRST, SECOND, THIRD = (f"{number * 8}-0000-4000-8000-000000000000" for number in "123")
VALUES = Inventory(total=4, reserved=1, min_unit=2, max_unit=3, step_size=1, allocation_ratio=1.5)


@pytest.fixture
def tree(migrated: Database) -> Database:
    """A root with a child, ids 1 and 2."""
    service.create_provider(migrated, uuid=FIRST, name="root")
    service.create_provider(migrated, uuid=SECOND, name="child", parent_uuid=FIRST)
    return migrated


def test_rows_are_locked_in_the_order_of_ids_and_gone_ones_left_out(tree: Database) -> None:
    locked = writes(providers.lock_providers)(tree, [2, 99, 1])
    assert list(locked.items()) == [(1, 0), (2, 0)]
    assert writes(providers.lock_providers)(tree, []) == {}


def test_a_generation_moves_on_only_from_the_expected_one(tree: Database) -> None:
    advance = writes(providers.advance_generation)
    advance(tree, 1, expected=0)
    advance(tree, 1, expected=1)
    for expected in (0, 1, 3, 2**63 - 1):
        with pytest.raises(ConcurrentUpdate, match="resource provider generation conflict"):
            advance(tree, 1, expected=expected)
    assert service.provider(tree, FIRST).generation == 2


def test_providers_are_read_with_their_parent_and_root(tree: Database) -> None:
    found = writes(providers.providers_by_uuid)(tree, [SECOND, FIRST, THIRD])
    assert set(found) == {FIRST, SECOND}
    child = found[SECOND]
    assert (child.parent_id, child.parent_uuid, child.root_id, child.root_uuid) == (1, FIRST, 1, FIRST)
    assert (found[FIRST].parent_uuid, found[FIRST].root_uuid) == (None, FIRST)


def test_no_row_of_a_deleted_provider_is_left(tree: Database) -> None:
    """SQLite gives the same id to the next provider, and most of the links have no foreign key."""
    replace_provider_traits(tree, SECOND, ["HW_CPU_X86_AVX"], generation=0)
    writes(inventories.replace_inventories)(tree, 2, {VCPU: VALUES})
    writes(replace_aggregates)(tree, 2, [THIRD])
    with tree.engine.begin() as connection:
        allocate(connection, "consumer", {(2, VCPU): 1})
        run(connection, "DELETE FROM allocations")
    service.delete_provider(tree, SECOND)
    service.delete_provider(tree, FIRST)
    linked = ("inventories", "resource_provider_traits", "resource_provider_aggregates", "provider_usages")
    with tree.engine.connect() as connection:
        for table in ("resource_providers", *linked):
            assert connection.execute(text(f"SELECT * FROM {table}")).all() == [], table


def test_inventories_come_back_as_they_were_put(tree: Database) -> None:
    replace, read = writes(inventories.replace_inventories), writes(inventories.inventories_of)
    replace(tree, 1, {2: Inventory(total=1), VCPU: VALUES})
    assert list(read(tree, 1).items()) == [("VCPU", VALUES), ("DISK_GB", Inventory(total=1))]
    replace(tree, 1, {VCPU: VALUES, 1: Inventory(total=9)})
    assert read(tree, 1) == {"VCPU": VALUES, "MEMORY_MB": Inventory(total=9)}
    assert read(tree, 2) == {}
    replace(tree, 1, {})
    assert read(tree, 1) == {}


def test_replacing_inventories_by_the_same_ones_writes_nothing(tree: Database) -> None:
    replace = writes(inventories.replace_inventories)
    replace(tree, 1, {VCPU: VALUES, 1: Inventory(total=1)})
    sent: list[str] = []
    event.listen(tree.engine, "before_cursor_execute", lambda *call: sent.append(call[2]))
    replace(tree, 1, {VCPU: VALUES, 1: Inventory(total=1)})
    assert {statement.split()[0] for statement in sent} - {"BEGIN"} == {"SELECT"}


def test_classes_in_use_are_named_in_the_order_of_their_ids(tree: Database) -> None:
    with tree.engine.begin() as connection:
        allocate(connection, "consumer", {(1, 2): 1, (1, VCPU): 1, (2, 1): 1})
    in_use = writes(inventories.classes_in_use)
    assert in_use(tree, 1, [2, 1, VCPU]) == ["VCPU", "DISK_GB"]
    assert in_use(tree, 1, []) == []


def test_making_a_name_tells_whether_it_is_new(migrated: Database) -> None:
    """Drivers differ in what they report for an INSERT that may do nothing."""
    assert [ensure_class(migrated, "CUSTOM_A") for _ in range(2)] == [True, False]
    assert [ensure_trait(migrated, "CUSTOM_A")[1] for _ in range(2)] == [True, False]


def test_custom_classes_are_numbered_from_10000(migrated: Database) -> None:
    """Standard classes in later releases keep the ids that the reference gives them."""
    for name in ("CUSTOM_A", "CUSTOM_B"):
        create_class(migrated, name)
    delete_class(migrated, "CUSTOM_A")
    create_class(migrated, "CUSTOM_C")
    with migrated.engine.connect() as connection:
        query = "SELECT name, id FROM resource_classes WHERE name LIKE 'CUSTOM%' ORDER BY id"
        assert [tuple(row) for row in connection.execute(text(query))] == [("CUSTOM_B", 10001), ("CUSTOM_C", 10002)]


def test_a_subtree_moves_as_a_whole(tree: Database) -> None:
    service.create_provider(tree, uuid=THIRD, name="grandchild", parent_uuid=SECOND)
    moved = service.update_provider(tree, SECOND, name="child", move=Move(None, from_anywhere=True))
    assert (moved.parent_uuid, moved.root_uuid) == (None, SECOND)
    found = service.provider(tree, THIRD)
    assert (found.parent_uuid, found.root_uuid) == (SECOND, SECOND)
