"""Prepared statements give the same result on every kind of database, whatever their values."""

import pytest
from sqlalchemy import bindparam, select
from sqlalchemy.exc import IntegrityError

from placement.store.connection.database import Database
from placement.store.connection.direct import MAX_SHORT
from placement.store.connection.prepared import PreparedInsert, PreparedStatement
from placement.store.connection.unit_of_work import Transaction, reads, writes
from placement.store.tables import consumers, inventories, projects, resource_providers
from tests.store.rows import run

NAMES = ["plain", 'with "quotes"', "back\\slash", "a,b", "{curly}", "NULL", "'", "$1", "%s", "ünï", ""]

PROJECT = projects.c.external_id
INSERT = PreparedInsert(projects, PROJECT)
_NAMED = select(PROJECT).where(PROJECT.in_(bindparam("names", expanding=True))).order_by(projects.c.id)
NAMED, BY_KEY = PreparedStatement(_NAMED), PreparedStatement(_NAMED, by_key=True)
PLANS = (
    "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE strpos(statement, 'ORDER BY projects.id') > 0"
)
DATED = PreparedStatement(select(projects.c.created_at))


@writes
def insert(tx: Transaction, statement: PreparedInsert, rows: list) -> None:
    tx.insert(statement, rows)


@reads
def rows(tx: Transaction, statement: PreparedStatement, **values) -> list:
    return [tuple(row) for row in tx.rows(statement, values)]


@pytest.fixture
def named(migrated: Database) -> Database:
    insert(migrated, INSERT, [{"external_id": name} for name in NAMES])
    return migrated


@pytest.mark.parametrize("statement", [NAMED, BY_KEY])
def test_a_list_finds_its_members_and_no_other(named: Database, statement: PreparedStatement):
    for name in NAMES:
        assert rows(named, statement, names=[name]) == [(name,)]
    assert rows(named, statement, names=[]) == []
    assert [name for (name,) in rows(named, statement, names=NAMES)] == NAMES
    assert [name for (name,) in rows(named, statement, names=[*NAMES, *map(str, range(MAX_SHORT))])] == NAMES


@pytest.mark.parametrize("statement", [NAMED, BY_KEY])
def test_a_text_longer_than_the_column_is_not_cut(named: Database, statement: PreparedStatement):
    insert(named, INSERT, [{"external_id": "x" * 255}])
    assert rows(named, statement, names=["x" * 256]) == []


def test_short_lists_of_keys_are_planned_for_once(postgresql: Database):
    """A plan for one name looks cheaper than one for any, so that PostgreSQL plans the other statement each time."""
    insert(postgresql, INSERT, [{"external_id": f"{number}"} for number in range(3000)])
    with postgresql.writer.begin() as connection:
        run(connection, "ANALYZE projects")

    @reads
    def plans(tx: Transaction, statement: PreparedStatement) -> tuple[int, int]:
        for number in range(30):
            tx.rows(statement, {"names": [f"{number}"]})
        generic, custom = tx.connection.exec_driver_sql(PLANS).one()
        return generic, custom

    generic, custom = plans(postgresql, BY_KEY)
    assert generic > custom


def test_many_rows_may_have_empty_and_fractional_fields(migrated: Database):
    """Numbers keep their values, and None stays NULL."""
    owners = (consumers.c.project_id, consumers.c.user_id, consumers.c.consumer_type_id)
    made = [{"uuid": f"{n}", "project_id": 1, "user_id": 2, "consumer_type_id": None} for n in range(3)]
    insert(migrated, PreparedInsert(consumers, consumers.c.uuid, *owners), made)
    assert rows(migrated, PreparedStatement(select(consumers.c.uuid, *owners).order_by(consumers.c.id))) == [
        (f"{n}", 1, 2, None) for n in range(3)
    ]
    amounts = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.5}
    columns = [inventories.c[name] for name in ("resource_provider_id", "resource_class_id", *amounts)]
    insert(
        migrated,
        PreparedInsert(inventories, *columns),
        [{"resource_provider_id": 1, "resource_class_id": 2, **amounts}],
    )
    assert rows(migrated, PreparedStatement(select(inventories.c.allocation_ratio))) == [(1.5,)]


def test_a_refused_statement_is_an_error_of_sqlalchemy(migrated: Database):
    twice = [{"uuid": "1", "name": "one"}, {"uuid": "1", "name": "two"}]
    with migrated.writer.begin() as connection, pytest.raises(IntegrityError):
        PreparedInsert(resource_providers, resource_providers.c.uuid, resource_providers.c.name).insert(
            connection, twice
        )
