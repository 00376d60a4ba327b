"""Reused test databases: a used one equals a new one, and an altered one is not handed out again."""

import re
import subprocess
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.databases import Pool, open_database
from tests.postgresql import PROGRAMS
from tests.store.rows import VCPU, stocking

MARKS = {"mariadb": pytest.mark.mariadb}
# Something in every table, with more writes than remaining rows, so that ids would otherwise continue.
STATEMENTS = [
    *[
        statement
        for id_, name in ((10_000, "a"), (10_001, "b"))
        for statement in (
            f"INSERT INTO resource_providers (uuid, name, generation) VALUES ('{name}', '{name}', 0)",
            f"INSERT INTO traits (name) VALUES ('CUSTOM_{name}')",
            f"INSERT INTO resource_classes (id, name) VALUES ({id_}, 'CUSTOM_{name}')",
            f"INSERT INTO placement_aggregates (uuid) VALUES ('{name}')",
            f"INSERT INTO projects (external_id) VALUES ('{name}')",
            f"INSERT INTO users (external_id) VALUES ('{name}')",
            f"INSERT INTO consumer_types (name) VALUES ('{name}')",
            f"INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES ('{name}', 1, 1, 0)",
        )
    ],
    "UPDATE resource_providers SET root_provider_id = 1, parent_provider_id = NULL WHERE id = 1",
    "UPDATE resource_providers SET root_provider_id = 1, parent_provider_id = 1 WHERE id = 2",
    "INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES (1, 1)",
    "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) VALUES (1, 1)",
    *[stocking((provider, VCPU), total=8) for provider in (1, 2)],
    *[
        "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
        f"VALUES ({id_}, 0, 'a', 1)"
        for id_ in (1, 2)
    ],
    "DELETE FROM allocations WHERE resource_provider_id = 2",
]
MISSING_TRIGGER = "DROP TRIGGER provider_usages_provider_deleted"
ALTERATIONS = {
    "a column": "ALTER TABLE consumers ADD COLUMN extra integer",
    "an index": "CREATE INDEX extra ON consumers (generation)",
    "a table": "CREATE TABLE extra (id integer)",
    "a missing table": "DROP TABLE placement_server_version",
    "a revision": "UPDATE alembic_version SET version_num = 'older'",
    "a missing trait": "DELETE FROM traits WHERE name = 'HW_CPU_X86_AVX2'",
    "a renumbered class": "UPDATE resource_classes SET id = 5000 WHERE name = 'VCPU'",
}
ALTERATIONS_OF = {
    "mariadb": {"a missing trigger": MISSING_TRIGGER},
    "postgresql": {
        "a missing trigger": f"{MISSING_TRIGGER} ON resource_providers",
        "a trigger that sleeps": "ALTER TABLE allocations DISABLE TRIGGER ALL",
        "a missing function": "DROP FUNCTION placement_unstock_all() CASCADE",
        "a setting": "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET work_mem = 64'; END $$",
        "a privilege": "GRANT SELECT ON consumers TO PUBLIC",
        "an option": "ALTER TABLE consumers SET (fillfactor = 50)",
        "statistics": "INSERT INTO users (external_id) VALUES ('a'); ANALYZE users",
        "many rows": "INSERT INTO users (external_id) SELECT g::text FROM generate_series(1, 40000) AS g",
    },
}


@pytest.fixture(params=[pytest.param(kind, marks=MARKS.get(kind, ())) for kind in ALTERATIONS_OF])
def pool(request: pytest.FixtureRequest) -> Pool:
    """The pool that lends the databases of a kind."""
    return _pool(request, request.param)


def _pool(request: pytest.FixtureRequest, kind: str) -> Pool:
    found: Pool = request.getfixturevalue(f"{kind}_databases")
    return found


def test_a_used_database_is_like_a_new_one(pool: Pool) -> None:
    # One used by other tests before may be close to the limit of size or statistics at which it is dropped.
    new, pool = pool.make(), Pool(pool.make, pool.renew)
    url, give_back = pool.borrow()
    _write(url, *STATEMENTS)
    identity = _identity(url)
    give_back()
    url, give_back = pool.borrow()
    assert _identity(url) == identity
    assert _dump(url) == _dump(new)
    give_back()


@pytest.mark.parametrize(
    ("kind", "alteration"),
    [
        pytest.param(kind, statement, id=f"{kind}-{name}", marks=MARKS.get(kind, ()))
        for kind, more in ALTERATIONS_OF.items()
        for name, statement in {**ALTERATIONS, **more}.items()
    ],
)
def test_an_altered_database_is_not_lent_again(request: pytest.FixtureRequest, kind: str, alteration: str) -> None:
    pool = _pool(request, kind)
    url, give_back = pool.borrow()
    identity = _identity(url)
    _write(url, alteration)
    give_back()
    url, give_back = pool.borrow()
    assert _identity(url) != identity
    give_back()


def test_connections_that_a_test_left_open_are_cut(pool: Pool) -> None:
    url, give_back = pool.borrow()
    left = open_database(url)
    with left.engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        give_back()
        with pytest.raises(DBAPIError):
            connection.execute(text("SELECT 1"))
    left.dispose()


def test_an_old_url_leads_nowhere(postgresql_databases: Pool) -> None:
    url, give_back = postgresql_databases.borrow()
    give_back()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def _write(url: str, *statements: str) -> None:
    database = open_database(url)
    with database.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    database.dispose()


def _identity(url: str) -> object:
    """Return what identifies a database for its whole life."""
    if url.startswith("mysql"):
        return urlsplit(url).path
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()


def _dump(url: str) -> list[str]:
    """Return the contents of a database without its time of creation and marks that differ between dumps."""
    command = [str(PROGRAMS / "pg_dump"), url]
    if url.startswith("mysql"):
        parts = urlsplit(url)
        socket = parse_qs(parts.query)["unix_socket"][0]
        options = ["--skip-comments", "--routines", "--events", "--user=root", f"--socket={socket}"]
        command = ["mariadb-dump", *options, parts.path[1:]]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = re.sub(r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?'", "NULL", dump).splitlines()
    return [line for line in lines if not line.startswith(("\\restrict", "\\unrestrict"))]
