"""GET /healthcheck and /readycheck: what a load balancer learns about a database that has changed."""

import re

import pytest
from flask import Flask
from sqlalchemy import text

from placement.api.routes import ROUTES
from placement.store import kept_usage
from placement.store.connection.database import Database
from placement.store.lifecycle import schema
from placement.store.lifecycle.maintenance import exclusively
from placement.store.tables import VERSION_TABLE
from tests.api.conftest import Api
from tests.rows_of_a_cloud import fill, uuid_of


@pytest.fixture
def database(app: Flask) -> Database:
    found: Database = app.extensions["placement"].database
    return found


def answer(api: Api) -> tuple[int, dict[str, str]]:
    response = api.get("/readycheck")
    return response.status_code, response.get_json()


def change(database: Database, statement: str) -> None:
    """Change the database as its administrator would."""
    with database.engine.begin() as connection:
        connection.execute(text(statement))


def test_a_migrated_database_is_ready_and_keeps_usage(api: Api) -> None:
    assert answer(api) == (200, {"status": "ready", "usage": "kept", "journal": "written"})
    assert api.get("/healthcheck").get_json() == {"status": "ok"}


def test_a_browser_gets_a_link_to_the_console_and_clients_get_json(app: Flask) -> None:
    firefox = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    page = app.test_client().get("/", headers=firefox, environ_overrides={"SCRIPT_NAME": "/placement"})
    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert '<a href="/placement/ui">' in page.text
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5", "nonsense", ""):
        assert app.test_client().get("/", headers={"Accept": accept}).json["versions"][0]["id"] == "v1.0"


def test_a_later_release_may_have_migrated_it(api: Api, database: Database) -> None:
    change(database, f"UPDATE {VERSION_TABLE} SET version_num = 'a later one'")
    assert answer(api)[0] == 200


@pytest.mark.parametrize(
    "statement", [f"DELETE FROM {VERSION_TABLE}", f"DROP TABLE {VERSION_TABLE}", "DELETE FROM resource_classes"]
)
def test_a_database_without_what_this_release_needs_is_not_ready(api: Api, database: Database, statement: str) -> None:
    change(database, statement)
    status, document = answer(api)
    assert (status, document["status"]) == (503, "not ready")
    assert "run 'placement db upgrade'" in document["reason"]
    assert api.get("/healthcheck").status_code == 200


def test_a_database_that_was_handed_back_gets_no_answer_of_500(api: Api, database: Database) -> None:
    fill(database)
    names = {"uuid": uuid_of("host"), "consumer_uuid": uuid_of("host-consumer"), "name": "CUSTOM_HOST"}
    names["resource_class"] = "VCPU"
    paths = {path for path in sorted({route.path for route in ROUTES}) if path not in {"/metrics", "/healthcheck"}}
    served = {re.sub("<([a-z_]+)>", lambda name: names[name[1]], path) for path in paths}
    queries = {"/allocation_candidates": "?resources=VCPU:1", "/planner/v1/explain": "?resources=VCPU:1"}
    reads = [path + queries.get(path, "") for path in sorted(served)]
    for path in reads:
        assert api.get(path).status_code < 500
    schema.release(database.engine)
    statuses = {path: api.get(path).status_code for path in reads}
    assert not [path for path, status in statuses.items() if status >= 500 and status != 503], statuses
    assert statuses["/allocation_candidates?resources=VCPU:1"] == statuses["/readycheck"] == 503
    host = f"/resource_providers/{names['uuid']}"
    inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1}}}
    for written in (api.put("/traits/CUSTOM_NEW"), api.put(f"{host}/inventories", inventories), api.delete(host)):
        assert written.status_code < 500 or written.status_code == 503


def test_usage_is_summed_as_long_as_triggers_are_missing(api: Api, database: Database) -> None:
    with database.engine.begin() as connection:
        kept_usage.remove(connection)
    assert answer(api) == (200, {"status": "ready", "usage": "summed", "journal": "written"})
    assert not database.keeps_usage
    with exclusively(database.engine) as connection:
        kept_usage.install(connection)
    assert answer(api) == (200, {"status": "ready", "usage": "kept", "journal": "written"})
    assert database.keeps_usage


def test_a_database_that_is_gone_is_named(app: Flask, api: Api, database: Database, tmp_path) -> None:
    if database.dialect != "sqlite":
        pytest.skip("the PostgreSQL server is everybody's")
    database.dispose()
    (tmp_path / "placement.sqlite").rename(tmp_path / "away.sqlite")
    (tmp_path / "placement.sqlite").mkdir()
    assert answer(api) == (503, {"status": "not ready", "reason": "the database fails: file removed or replaced"})


def test_a_database_that_takes_no_writes_is_told_of_until_it_does(api: Api, database: Database) -> None:
    """Reads are still answered, so the server stays ready."""
    if database.dialect != "postgresql":
        pytest.skip("tests/store/test_faults.py has what SQLite says")
    full = "BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END"
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $${full}$$")
        connection.exec_driver_sql(
            "CREATE TRIGGER full_disk BEFORE INSERT ON resource_providers EXECUTE FUNCTION full_disk()"
        )
    refused = api.post("/resource_providers", {"name": "h1"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
    assert "disk full" in refused.json["errors"][0]["detail"]
    assert answer(api) == (
        200,
        {"status": "ready", "usage": "kept", "journal": "written", "writes": "failing: disk full"},
    )
    with database.engine.begin() as connection:
        connection.exec_driver_sql("DROP FUNCTION full_disk() CASCADE")
    assert api.post("/resource_providers", {"name": "h1"}).status_code == 200
    assert answer(api) == (200, {"status": "ready", "usage": "kept", "journal": "written"})
