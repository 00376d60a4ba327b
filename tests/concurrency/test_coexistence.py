"""The reference (the real package) and this server serve one PostgreSQL database at once, as during a migration."""

import contextlib
import random
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from placement.store.connection.database import Database
from placement.store.tables import resource_providers
from tests import reference, servers
from tests.claims import make_provider, old_entry
from tests.concurrency.together import together
from tests.databases import Pool, open_database
from tests.http_calls import HttpCalls
from tests.store.rows import kept, summed

UNITS = 50
CLIENTS = 8
VERSION = "1.28"

Statuses = Counter[int]


@dataclass(frozen=True, slots=True)
class Site:
    """A PostgreSQL database, and how to send requests to each of the servers on it."""

    database: Database
    theirs: HttpCalls
    ours: HttpCalls


@pytest.fixture(scope="module")
def site(postgresql_databases: Pool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Both servers, with two workers of four threads each."""
    try:
        installation = reference.installation()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the reference cannot be installed, and REFERENCE_PYTHON does not name one: {error}")
    url, give_back = postgresql_databases.borrow()
    database = open_database(url)
    theirs = _serving(tmp_path_factory.mktemp("theirs"), installation, reference.configuration(url))
    ours = _serving(tmp_path_factory.mktemp("ours"), servers.this_project(), servers.default_sections(url))
    with theirs as call_theirs, ours as call_ours:
        yield Site(database, call_theirs, call_ours)
    database.dispose()
    give_back()


@contextlib.contextmanager
def _serving(directory: Path, installation: servers.Installation, sections: servers.Sections) -> Iterator[HttpCalls]:
    servers.write_configuration(directory, sections)
    with servers.running_server(installation, directory, workers=2) as url:
        yield HttpCalls(url)


def make_providers(call: HttpCalls, count: int) -> list[str]:
    return [make_provider(call, VCPU=UNITS) for _ in range(count)]


def body(amounts: dict[str, int], generation: int | None) -> dict[str, Any]:
    shares = {identity: {"VCPU": amount} for identity, amount in amounts.items()}
    return old_entry(shares, consumer_generation=generation)


def claims_until_full(call: HttpCalls, providers: Sequence[str], seed: int) -> Callable[[], Statuses]:
    """Claim a unit of each provider, in a new order each time, until three claims in a row are refused."""
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


def check_exact(site: Site, uuids: Sequence[str]) -> list[int]:
    """Return the usage of providers, which must equal the sum of allocations and not exceed the capacity."""
    query = select(resource_providers.c.id).where(resource_providers.c.uuid.in_(uuids))
    with site.database.engine.connect() as connection:
        usage = kept(connection)
        assert usage == summed(connection)
        ids = set(connection.execute(query).scalars())
    found = [amount for (provider, _), amount in usage.items() if provider in ids]
    assert max(found, default=0) <= UNITS
    assert len(found) <= len(uuids)
    return found


@pytest.mark.parametrize("providers", [1, 3])
def test_eight_clients_of_both_servers_take_exactly_what_there_is(site: Site, providers: int) -> None:
    uuids = make_providers(site.ours, providers)
    clients = [claims_until_full([site.theirs, site.ours][seed % 2], uuids, seed) for seed in range(CLIENTS)]
    statuses = together(clients)
    assert sum(counted[204] for counted in statuses) == UNITS
    assert {status for counted in statuses for status in counted} <= {204, 409}
    assert check_exact(site, uuids) == [UNITS] * providers


def test_any_writes_through_both_servers_leave_the_books_exact(site: Site) -> None:
    uuids = make_providers(site.theirs, 3)
    clients = [any_writes([site.theirs, site.ours][seed % 2], uuids, seed) for seed in range(CLIENTS)]
    statuses = together(clients)
    assert {status for counted in statuses for status in counted} <= {204, 404, 409}
    assert sum(counted[204] for counted in statuses) > 0
    check_exact(site, uuids)


def test_the_reference_alone_no_longer_overcommits_nor_deadlocks(site: Site) -> None:
    """Without the gate it allocated 54 of 50 units, and with several providers answered most claims with 500."""
    uuids = make_providers(site.theirs, 3)
    statuses = together([claims_until_full(site.theirs, uuids, seed) for seed in range(CLIENTS)])
    assert {status for counted in statuses for status in counted} <= {204, 409}
    assert check_exact(site, uuids) == [UNITS] * 3
