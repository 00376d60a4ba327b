"""The reference, the real package, and this server serve one PostgreSQL database at once, as during a change-over."""

import contextlib
import random
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from placement.store.connection.database import Database
from tests import reference, servers
from tests.concurrency.together import together
from tests.databases import open_database
from tests.http_calls import HttpCalls
from tests.store.rows import VCPU, kept, summed

UNITS = 50
CLIENTS = 8
VERSION = "1.28"

Statuses = Counter[int]


class Site:
    """One database, and a way to start either server on it."""

    def __init__(self, database_url: str, directory: Path) -> None:
        self.database: Database = open_database(database_url)
        self._url = database_url
        self._directory = directory

    @contextlib.contextmanager
    def reference(self) -> Iterator[HttpCalls]:
        """Run the reference with two workers of four threads."""
        with self._serving("reference", reference.installation(), reference.configuration(self._url)) as call:
            yield call

    @contextlib.contextmanager
    def ours(self) -> Iterator[HttpCalls]:
        """Run this server likewise."""
        with self._serving("ours", servers.this_project(), servers.default_sections(self._url)) as call:
            yield call

    @contextlib.contextmanager
    def _serving(
        self, name: str, installation: servers.Installation, sections: servers.Sections
    ) -> Iterator[HttpCalls]:
        directory = self._directory / name
        directory.mkdir()
        servers.write_configuration(directory, sections)
        with servers.running_server(installation, directory, workers=2) as url:
            yield HttpCalls(url)


@pytest.fixture
def site(postgresql_url: str, tmp_path: Path) -> Iterator[Site]:
    """A migrated PostgreSQL database for both servers."""
    try:
        reference.installation()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the reference cannot be installed, and REFERENCE_PYTHON does not name one: {error}")
    made = Site(postgresql_url, tmp_path)
    yield made
    made.database.dispose()


def make_providers(call: HttpCalls, count: int) -> list[str]:
    """Make providers of ``UNITS`` units each."""
    uuids = [str(uuid.uuid4()) for _ in range(count)]
    for identity in uuids:
        assert call("POST", "/resource_providers", "1.20", {"name": identity, "uuid": identity})[0] == 200
        inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": UNITS}}}
        assert call("PUT", f"/resource_providers/{identity}/inventories", VERSION, inventories)[0] == 200
    return uuids


def body(amounts: dict[str, int], generation: int | None) -> dict[str, Any]:
    return {
        "allocations": {identity: {"resources": {"VCPU": amount}} for identity, amount in amounts.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
    }


def claims_until_full(call: HttpCalls, providers: Sequence[str], seed: int) -> Callable[[], Statuses]:
    """Claim one unit of each provider, named in a new order each time, until three claims in a row were refused."""
    choice = random.Random(seed)

    def client() -> Statuses:
        statuses: Statuses = Counter()
        refused = 0
        while refused < 3:
            order = choice.sample(list(providers), len(providers))
            path = f"/allocations/{uuid.uuid4()}"
            status, _ = call("PUT", path, VERSION, body(dict.fromkeys(order, 1), None))
            statuses[status] += 1
            refused = refused + 1 if status == 409 else 0
        return statuses

    return client


def any_writes(call: HttpCalls, providers: Sequence[str], seed: int) -> Callable[[], Statuses]:
    """Claim, replace, move and give back at random."""
    choice = random.Random(seed)

    def client() -> Statuses:
        statuses: Statuses = Counter()
        mine = [str(uuid.uuid4()) for _ in range(4)]
        for _ in range(40):
            consumer = choice.choice(mine)
            if choice.random() < 0.25:
                status, _ = call("DELETE", f"/allocations/{consumer}", VERSION)
            else:
                _, before = call("GET", f"/allocations/{consumer}", VERSION)
                named = choice.sample(list(providers), choice.randint(1, len(providers)))
                amounts = {identity: choice.randint(1, 12) for identity in named}
                wanted = body(amounts, before.get("consumer_generation"))
                status, _ = call("PUT", f"/allocations/{consumer}", VERSION, wanted)
            statuses[status] += 1
        return statuses

    return client


def check_exact(database: Database, ids: int) -> dict[tuple[int, int], int]:
    """Return the usage, which has to be what the allocations add up to and within what there is."""
    with database.engine.connect() as connection:
        usage = kept(connection)
        assert usage == summed(connection)
    assert max(usage.values(), default=0) <= UNITS
    assert len(usage) <= ids
    return usage


@pytest.mark.parametrize("providers", [1, 3])
def test_eight_clients_of_both_servers_take_exactly_what_there_is(site: Site, providers: int) -> None:
    with site.reference() as theirs, site.ours() as ours:
        uuids = make_providers(ours, providers)
        clients = [claims_until_full([theirs, ours][seed % 2], uuids, seed) for seed in range(CLIENTS)]
        statuses = together(clients)
    assert sum(counted[204] for counted in statuses) == UNITS
    assert {status for counted in statuses for status in counted} <= {204, 409}
    assert set(check_exact(site.database, providers).values()) == {UNITS}


def test_any_writes_through_both_servers_leave_the_books_exact(site: Site) -> None:
    with site.reference() as theirs, site.ours() as ours:
        uuids = make_providers(theirs, 3)
        clients = [any_writes([theirs, ours][seed % 2], uuids, seed) for seed in range(CLIENTS)]
        statuses = together(clients)
    assert {status for counted in statuses for status in counted} <= {204, 404, 409}
    assert sum(counted[204] for counted in statuses) > 0
    check_exact(site.database, 3)


def test_the_reference_alone_no_longer_overcommits_nor_deadlocks(site: Site) -> None:
    """Without the gate: 54 of 50 units, and with several providers most claims answered with 500."""
    with site.reference() as theirs:
        uuids = make_providers(theirs, 3)
        statuses = together([claims_until_full(theirs, uuids, seed) for seed in range(CLIENTS)])
    assert {status for counted in statuses for status in counted} <= {204, 409}
    assert check_exact(site.database, 3) == dict.fromkeys([(id_, VCPU) for id_ in (1, 2, 3)], UNITS)
