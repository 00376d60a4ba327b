"""After hundreds of changes between two requests, the answer equals that of an application without caches."""

from contextlib import nullcontext
from random import Random

import pytest
from sqlalchemy import Connection

from placement.candidates.tree_order import BLOCK
from tests.api.conftest import Api, with_settings
from tests.api.test_asked_again import answer
from tests.clouds import provider
from tests.store.rows import MEMORY_MB, VCPU, by_request, delete_provider, run, stocking
from tests.stored_clouds import stored

HOSTS = BLOCK + 100
PLAIN = "resources=VCPU:1,MEMORY_MB:10&limit="
QUERIES = (f"{PLAIN}10", f"{PLAIN}{BLOCK + 50}", "resources=VCPU:3&limit=20")


def assert_as_fresh(api: Api) -> None:
    """Compare answers with those of an application that has not cached anything yet."""
    fresh = with_settings(api.app)
    for query in QUERIES:
        assert answer(api, query) == answer(fresh, query)
    fresh.database.dispose()


class Bursts:
    """Changes that may happen to hundreds of hosts between two requests, by SQL."""

    def __init__(self, choice: Random) -> None:
        self._choice = choice
        self._next = 100_000

    def one(self, connection: Connection) -> None:
        """Change much of the cloud in several ways."""
        kinds = [self.stock, self.stock, self.allocate, self.equal, self.give_back, self.drop]
        for kind in self._choice.sample(kinds, 2):
            kind(connection)
        if self._choice.random() < 0.4:
            self._choice.choice([self.come, self.move, self.go])(connection)

    def _some(self) -> str:
        """Return a condition on ids that hundreds of providers meet."""
        first, rest = self._choice.randint(-200, 300), self._choice.randrange(3)
        return f"resource_provider_id BETWEEN {first} AND {first + 450} AND resource_provider_id % 3 <> {rest}"

    def stock(self, connection: Connection) -> None:
        step = self._choice.choice([1, 7, 13])
        run(connection, f"UPDATE inventories SET reserved = resource_provider_id * {step} % 11 WHERE {self._some()}")

    def equal(self, connection: Connection) -> None:
        run(connection, f"UPDATE inventories SET reserved = {self._choice.choice([0, 5])} WHERE {self._some()}")

    def drop(self, connection: Connection) -> None:
        run(connection, f"DELETE FROM inventories WHERE resource_class_id = {VCPU} AND {self._some()} AND reserved > 8")

    def allocate(self, connection: Connection) -> None:
        columns = "resource_provider_id, resource_class_id, consumer_id, used"
        run(
            connection,
            f"INSERT INTO allocations ({columns}) SELECT resource_provider_id, resource_class_id, "
            f"'c', 1 + resource_provider_id % 4 FROM inventories WHERE {self._some()}",
        )

    def give_back(self, connection: Connection) -> None:
        run(connection, f"DELETE FROM allocations WHERE {self._some()}")

    def come(self, connection: Connection) -> None:
        for id_ in range(self._next, self._next + 9):
            columns = "id, uuid, name, generation, root_provider_id"
            run(connection, f"INSERT INTO resource_providers ({columns}) VALUES ({id_}, '{id_}', '{id_}', 0, {id_})")
            run(connection, stocking((id_, VCPU), total=64), stocking((id_, MEMORY_MB), total=4096))
        self._next += 9

    def move(self, connection: Connection) -> None:
        # Only later ones are ever moved, so these are roots.
        above, first = self._choice.randint(1, 99), self._choice.randint(100, HOSTS)
        place = f"root_provider_id = {above}, parent_provider_id = {above}"
        run(connection, f"UPDATE resource_providers SET {place} WHERE id BETWEEN {first} AND {first + 9}")

    def go(self, connection: Connection) -> None:
        for id_ in range(self._next - 9, self._next):
            for table in ("allocations", "inventories"):
                run(connection, f"DELETE FROM {table} WHERE resource_provider_id = {id_}")
            delete_provider(connection, id_)


def test_after_a_burst_answers_are_those_of_an_application_that_keeps_nothing(
    api: Api, request: pytest.FixtureRequest
) -> None:
    stored(api.app, *[provider(f"host{number}", VCPU=64, MEMORY_MB=4096) for number in range(HOSTS)])
    choice = Random(request.config.getoption("--seed"))
    changes, database = Bursts(choice), api.database
    assert_as_fresh(api)
    for _ in range(40 if request.config.getoption("--deep") else 3):
        with by_request() if choice.random() < 0.7 else nullcontext(), database.writer.begin() as connection:
            changes.one(connection)
        assert_as_fresh(api)
    assert api.database.cloud_cache.derived.size > BLOCK
