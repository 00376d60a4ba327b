"""Racing writes to providers: trees stay trees, generations let one writer through, and no references dangle."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from sqlalchemy import text

from placement.domain.inventory import Inventory, Move, ProviderFilter
from placement.errors import DuplicateName, PlacementError
from placement.services import providers as service
from placement.services.inventories import NewInventories, add_inventory
from placement.services.names import (
    delete_class,
    delete_trait,
    ensure_class,
    ensure_trait,
    membership,
    replace_aggregates,
    replace_provider_traits,
)
from placement.store.connection.database import Database
from tests.claims import new_uuid
from tests.concurrency.together import together

ROUNDS = 8
CLIENTS = 8
SOME = NewInventories({"VCPU": Inventory(total=1)}, may_be_all_reserved=True)


def attempt(work: Callable[..., Any], *args: Any, **options: Any) -> Callable[[], Any]:
    """Return a function that does the work and returns its result, or the error that refused it."""

    def run() -> Any:
        try:
            return work(*args, **options)
        except PlacementError as error:
            return error

    return run


def make(database: Database, name: str, parent: str | None = None) -> str:
    uuid = new_uuid()
    service.create_provider(database, uuid=uuid, name=name, parent_uuid=parent)
    return uuid


def move(database: Database, uuid: str, parent: str | None) -> Callable[[], Any]:
    name = service.provider(database, uuid).name
    return attempt(service.update_provider, database, uuid, name=name, move=Move(parent, from_anywhere=True))


def check_trees(database: Database) -> None:
    """Check that every provider's parents lead to the root it names."""
    rows = service.providers(database, ProviderFilter()).rows
    parents = {uuid: parent for uuid, _, _, parent, _ in rows}
    for uuid, _, _, _, root in rows:
        top, steps = uuid, 0
        while (parent := parents[top]) is not None:
            top, steps = parent, steps + 1
            assert steps <= len(rows), "a loop"
        assert top == root


def refusals(results: list[Any]) -> Counter[type]:
    return Counter(type(result) for result in results if isinstance(result, PlacementError))


def rows(database: Database, query: str) -> list[Any]:
    with database.engine.connect() as connection:
        return list(connection.execute(text(query)))


def test_two_roots_cannot_go_below_each_other(database: Database) -> None:
    for number in range(ROUNDS):
        first, second = make(database, f"first {number}"), make(database, f"second {number}")
        results = together([move(database, first, second), move(database, second, first)])
        assert len([result for result in results if isinstance(result, PlacementError)]) == 1
        check_trees(database)


def test_providers_that_move_at_random_stay_in_trees(database: Database) -> None:
    choice = random.Random(1)
    uuids = [make(database, f"provider {number}") for number in range(8)]
    for _ in range(ROUNDS):
        moves = [(choice.choice(uuids), choice.choice([*uuids, None])) for _ in range(CLIENTS)]
        together([move(database, uuid, parent) for uuid, parent in moves])
        check_trees(database)


def test_of_many_providers_of_one_name_there_is_one(database: Database) -> None:
    for number in range(ROUNDS):
        makers = [
            attempt(service.create_provider, database, uuid=new_uuid(), name=f"same {number}") for _ in range(CLIENTS)
        ]
        assert refusals(together(makers)) == {DuplicateName: CLIENTS - 1}


def test_writes_that_name_no_generation_all_succeed(database: Database) -> None:
    """They wait for each other; a conflict would refer to a generation they never read."""
    uuid = make(database, "provider")
    names = ["VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "PGPU", "FPGA", "SRIOV_NET_VF", "PCPU"]
    added = [NewInventories({name: Inventory(total=1)}, may_be_all_reserved=True) for name in names]
    results = together([attempt(add_inventory, database, uuid, new) for new in added])
    assert sorted(results) == list(range(1, len(names) + 1))
    shared = new_uuid()
    assert refusals(together([attempt(replace_aggregates, database, uuid, [shared]) for _ in range(CLIENTS)])) == {}
    assert membership(database, uuid).aggregates == [shared]


def test_new_aggregates_are_made_once(database: Database) -> None:
    uuids = [make(database, f"provider {number}") for number in range(CLIENTS)]
    for _ in range(ROUNDS):
        shared = [new_uuid() for _ in range(5)]
        orders = [random.Random(number).sample(shared, 5) for number in range(CLIENTS)]
        work = [attempt(replace_aggregates, database, *pair) for pair in zip(uuids, orders, strict=True)]
        assert refusals(together(work)) == {}
        assert all(set(membership(database, uuid).aggregates) == set(shared) for uuid in uuids)


def test_a_class_cannot_go_while_its_first_inventory_comes(database: Database) -> None:
    """Inventories have no foreign key to classes, so the database itself would allow it."""
    first = NewInventories({"CUSTOM_GOLD": Inventory(total=1)}, may_be_all_reserved=True)
    for number in range(ROUNDS):
        ensure_class(database, "CUSTOM_GOLD")
        uuids = [make(database, f"provider {number}.{index}") for index in range(3)]
        adders = [attempt(add_inventory, database, uuid, first) for uuid in uuids]
        together([attempt(delete_class, database, "CUSTOM_GOLD"), *adders])
        classless = "SELECT id FROM inventories WHERE resource_class_id NOT IN (SELECT id FROM resource_classes)"
        assert rows(database, classless) == []
        for uuid in uuids:
            service.delete_provider(database, uuid)


def test_a_trait_cannot_go_while_it_is_given(database: Database) -> None:
    for number in range(ROUNDS):
        ensure_trait(database, "CUSTOM_SHINY")
        uuids = [make(database, f"provider {number}.{index}") for index in range(3)]
        givers = [attempt(replace_provider_traits, database, uuid, ["CUSTOM_SHINY"], generation=0) for uuid in uuids]
        together([attempt(delete_trait, database, "CUSTOM_SHINY"), *givers])
        nameless = "SELECT trait_id FROM resource_provider_traits WHERE trait_id NOT IN (SELECT id FROM traits)"
        assert rows(database, nameless) == []
        for uuid in uuids:
            service.delete_provider(database, uuid)
