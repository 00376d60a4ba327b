"""Any row that the schema allows costs at most the provider that it belongs to.

``--deep`` tries many more databases, and ``--seed`` chooses them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import Template
from typing import Any

import pytest
import yaml
from flask import Flask
from sqlalchemy import Connection, case, delete, select, update
from werkzeug.test import TestResponse

from placement.app import create_app
from placement.services.health import readiness
from placement.settings import DatabaseSettings, Settings
from placement.store.checks import schema_check
from placement.store.checks.audit import odd_rows
from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from placement.store.tables import allocations, consumers, inventories, resource_classes, resource_providers, traits
from tests import reference, servers
from tests.api.conftest import Api
from tests.databases import SQLiteDatabases
from tests.differential.requests import Request
from tests.differential.sides import Side
from tests.empty_database import empty_database
from tests.survival.odd_rows import (
    ADDED,
    HEALTHY,
    NOWHERE,
    ODD,
    SHARER,
    VCPU,
    healthy_cloud,
    leave_out,
    lose_classes,
    make_odd,
    uuid_of,
)

CASES, CASES_IN_DEPTH = 2, 60
SEED = 11
WHOLLY_ODD = {"all that may be NULL is": leave_out, "no class of an allocation exists": lose_classes}

HOST, BELOW_HOST, HEALTHY_HOST, AGGREGATE = (uuid_of(id_) for id_ in (ODD[0], ODD[1], HEALTHY[0], 901))
CONSUMERS = [uuid_of(1000 + number) for number in range(1, 5)]
TOO_MUCH = 99999
OWNER = {"uuid": uuid_of(5), "project_id": "p", "user_id": "u", "consumer_type": "X", "consumer_generation": None}
NAMES = {"host": HOST, "healthy": HEALTHY_HOST, "consumer": CONSUMERS[1], "amount": TOO_MUCH}
NAMES |= {"in": AGGREGATE, "out": uuid_of(902), "consumers": json.dumps(CONSUMERS), "owner": json.dumps(OWNER)}
READS = yaml.safe_load(Template(Path(__file__).with_name("odd_reads.yaml").read_text()).substitute(NAMES))
OLD, NEW = "1.10", "1.39"
ALL_QUERIES = (*READS["queries"], *READS["newer queries"])
PLAIN = (
    *((f"/resource_providers/{HOST}{part}", version) for part in READS["of a provider"] for version in (OLD, NEW)),
    *(
        (f"/resource_providers/{id_}{part}", NEW)
        for id_ in (BELOW_HOST, HEALTHY_HOST)
        for part in READS["of a provider"]
    ),
    *((path, NEW) for path in READS["lists"]),
    *((f"/allocations/{uuid}", version) for uuid in CONSUMERS for version in (OLD, NEW)),
    *((f"/usages?project_id={name}", version) for name in ("project", "odd") for version in (OLD, NEW)),
    *((f"/allocation_candidates?{query}", version) for query in READS["queries"] for version in (OLD, "1.25")),
    *((f"/allocation_candidates?{query}", NEW) for query in ALL_QUERIES),
)
EXPLAINED = [f"/planner/v1/{route}?{query}" for query in ALL_QUERIES for route in ("explain", "headroom")]


@pytest.fixture
def app(database_url: str) -> Iterator[Flask]:
    settings = Settings(
        database=DatabaseSettings(connection=database_url, sqlite_synchronous=False), auth_strategy="noauth2"
    )
    application = create_app(settings)
    yield application
    database_of(application).dispose()


@pytest.fixture
def api(app: Flask) -> Api:
    return Api(app)


def database_of(app: Flask) -> Database:
    found: Database = app.extensions["placement"].database
    return found


def ids_of_traits(connection: Connection) -> dict[str, int]:
    return {row.name: row.id for row in connection.execute(select(traits.c.name, traits.c.id))}


def fill(database: Database, seed: str | None = None) -> str:
    """Store a healthy cloud, or one with the odd rows of a seed, or one WHOLLY_ODD; return what is odd about it."""
    with database.writer.begin() as connection:
        for table in (resource_classes, traits):
            connection.execute(delete(table).where(table.c.id >= ADDED))
        cloud = healthy_cloud(ids_of_traits(connection))
        if seed in WHOLLY_ODD:
            WHOLLY_ODD[seed](cloud)
        elif seed is not None:
            make_odd(cloud, Random(seed), is_strict=database.dialect != "sqlite")
        cloud.store(connection)
    return "; ".join(cloud.oddities)


def answers(api: Api) -> Iterator[tuple[str, TestResponse]]:
    """Send every read, and yield its name and answer."""
    for path, version in PLAIN:
        yield f"{path} {version}", api.get(path, version=version)
    for path in (*READS["planner"], *EXPLAINED):
        yield path, api.get(path)
    for path in READS["pages"]:
        yield path, api.get(f"/ui{path}", headers={"accept": "text/html"})
    for path, body in [pair for planned in READS["planned"] for pair in planned.items()]:
        yield f"{path} {body}", api.post(f"/planner/v1/{path}", body)


def healthy_hosts_in(text: str) -> list[int]:
    return [id_ for id_ in (*HEALTHY, SHARER) if uuid_of(id_) in text]


def is_about_the_odd_host(name: str) -> bool:
    """Tell whether an answer names the odd host, or may have it in place of others: as a near miss, or for a claim."""
    return any(part in name for part in (HOST, BELOW_HOST, *CONSUMERS, str(TOO_MUCH), "dry_run"))


def cases(request: pytest.FixtureRequest) -> list[str]:
    is_deep = request.config.getoption("--deep")
    seed = request.config.getoption("--seed") if is_deep else SEED
    return [*WHOLLY_ODD, *(f"{seed} {number}" for number in range(CASES_IN_DEPTH if is_deep else CASES))]


def test_an_odd_row_costs_at_most_its_provider(api: Api, app: Flask, database_url: str, request) -> None:
    fill(database_of(app))
    healthy = {name: (answer.status_code, healthy_hosts_in(answer.text)) for name, answer in answers(api)}
    for seed in cases(request):
        empty_database(database_url)
        oddities = fill(database_of(app), seed)
        for name, answer in answers(api):
            case = f"{seed}: {name}\n{oddities}\n{answer.text[-500:]}"
            assert answer.status_code < 500, case
            if not is_about_the_odd_host(name):
                assert (answer.status_code, healthy_hosts_in(answer.text)) == healthy[name], case


@pytest.fixture(scope="module")
def beside_the_reference(sqlite_databases: SQLiteDatabases, tmp_path_factory) -> Iterator[tuple[Flask, Side]]:
    """Both servers on one database."""
    directory = tmp_path_factory.mktemp("reference")
    url = sqlite_databases.copy(directory)
    app = create_app(Settings(database=DatabaseSettings(connection=url), auth_strategy="noauth2"))
    servers.write_configuration(directory, reference.configuration(url))
    with servers.running_server(reference.installation(), directory, threads=1) as address:
        yield app, Side("reference", address, url, app.extensions["placement"].database)
    database_of(app).dispose()


def test_it_is_answered_wherever_the_reference_answers(beside_the_reference: tuple[Flask, Side], request) -> None:
    """Both servers read the same database. On some rows the reference fails with 500."""
    app, other = beside_the_reference
    for seed in cases(request):
        empty_database(other.database_url)
        oddities = fill(database_of(app), seed)
        for path, version in PLAIN:
            expected = other.ask(Request("GET", path, version))
            if expected.status == 200:
                given = Api(app).get(path, version=version)
                case = f"{seed}: {path} {version}\n{oddities}\n{given.text[-500:]}"
                assert given.status_code == 200, case
                assert healthy_hosts_in(given.text) == healthy_hosts_in(expected.body.decode()), case


RESERVED_BELOW_ZERO = (
    update(inventories)
    .where(inventories.c.resource_provider_id == ODD[0], inventories.c.resource_class_id == VCPU)
    .values(reserved=-8, max_unit=16)
)
CAPACITY, FREE = 16, 15
"""Of the odd host: it has 8 and uses 1."""


def claimed(amount: int) -> dict[str, Any]:
    owner = {name: value for name, value in OWNER.items() if name != "uuid"}
    return {"allocations": {HOST: {"resources": {"VCPU": amount}}}, "mappings": {"": [HOST]}, **owner}


@pytest.mark.parametrize(("amount", "is_had"), [(FREE, True), (FREE + 1, False)])
def test_a_negative_reserve_is_room_for_the_reference(
    beside_the_reference: tuple[Flask, Side], amount: int, is_had: bool
) -> None:
    app, other = beside_the_reference
    empty_database(other.database_url)
    fill(database_of(app))
    with database_of(app).writer.begin() as connection:
        connection.execute(RESERVED_BELOW_ZERO)
    path = f"/allocation_candidates?resources=VCPU:{amount}"
    assert (HOST in other.ask(Request("GET", path, "1.39")).body.decode()) == is_had
    answer = other.ask(Request("PUT", f"/allocations/{uuid_of(5)}", "1.39", body=claimed(amount)))
    assert answer.status == (204 if is_had else 409)


@pytest.mark.parametrize(("amount", "is_had"), [(FREE, True), (FREE + 1, False)])
def test_a_negative_reserve_is_the_same_room_for_every_reader(api: Api, app: Flask, amount: int, is_had: bool) -> None:
    fill(database_of(app))
    with database_of(app).writer.begin() as connection:
        connection.execute(RESERVED_BELOW_ZERO)
    query, planned = f"resources=VCPU:{amount}", {"groups": {"": {"resources": {"VCPU": amount}}}}
    headroom = api.post("/planner/v1/headroom", {"requests": {"a": query}}).json
    assert headroom["headroom"]["a"]["fits"] == int(is_had)
    for found in (
        *(api.get(f"/{route}?{query}", version="1.39") for route in ("allocation_candidates", "resource_providers")),
        api.post("/planner/v1/candidates", planned),
    ):
        assert (HOST in found.text) == is_had
    page = api.get(f"/ui/providers/{HOST}", headers={"accept": "text/html"})
    assert str(CAPACITY) in page.text
    assert api.put(f"/allocations/{uuid_of(5)}", claimed(amount)).status_code == (204 if is_had else 409)


INFINITY = float("inf")

ODD_ROWS = {
    "Providers without a root provider: 1": update(resource_providers)
    .where(resource_providers.c.id == ODD[0])
    .values(root_provider_id=None),
    "Inventories of resource classes that do not exist: 1": update(inventories)
    .where(inventories.c.resource_provider_id == ODD[1])
    .values(resource_class_id=NOWHERE),
    "Inventories with a capacity beyond 2^45: 2": update(inventories)
    .where(inventories.c.resource_provider_id == ODD[0])
    .values(total=2**31 - 1, allocation_ratio=case((inventories.c.resource_class_id == VCPU, 1e308), else_=INFINITY)),
    "Inventories with a negative total or reserved amount: 1": update(inventories)
    .where(inventories.c.resource_provider_id == SHARER)
    .values(reserved=-1),
    "Inventories with a step_size below 1: 2": update(inventories)
    .where(inventories.c.resource_provider_id == ODD[0])
    .values(step_size=0),
}

WITHOUT_UUID = (
    update(consumers).where(consumers.c.uuid == CONSUMERS[1]).values(uuid=""),
    update(allocations).where(allocations.c.consumer_id == CONSUMERS[1]).values(consumer_id=""),
)


@pytest.mark.any_database
def test_odd_rows_are_named_and_where_possible_repaired(api: Api, app: Flask) -> None:
    database = database_of(app)
    fill(database)
    with database.writer.begin() as connection:
        for change in (*ODD_ROWS.values(), *WITHOUT_UUID):
            connection.execute(change)
        found = [*odd_rows(connection)]
    assert [line.partition(",")[0] for line in found] == [*ODD_ROWS]
    assert all(answer.status_code < 500 for _name, answer in answers(api))
    assert list(schema.upgrade(database.engine)) == found[1:]
    assert readiness(database).problem is None
    left = {finding.description for finding in schema_check.check(database.engine)}
    assert "providers that name the wrong root provider" not in left
    assert len(left) >= len(ODD_ROWS) - 1


def test_a_cycle_of_parents_hangs_no_search(api: Api, app: Flask) -> None:
    fill(database_of(app))
    with database_of(app).writer.begin() as connection:
        for provider, parent in ((ODD[0], ODD[1]), (ODD[1], ODD[0]), (ODD[2], ODD[2])):
            of_row = resource_providers.c.id == provider
            connection.execute(update(resource_providers).where(of_row).values(parent_provider_id=parent))
    for name, answer in answers(api):
        assert answer.status_code < 500, f"{name}\n{answer.text[-500:]}"
