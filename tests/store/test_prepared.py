"""Prepared statements give the same result on every kind of database, whatever their values."""

import pytest
from sqlalchemy import bindparam, select
from sqlalchemy.exc import IntegrityError

from placement.store.connection.database import Database, Transaction, reads, writes
from placement.store.connection.statements import MAX_SHORT, PreparedStatement, RowChange, row_insert
from placement.store.tables import projects, resource_providers
from tests.store.rows import run

NAMES = ["plain", 'with "quotes"', "back\\slash", "a,b", "{curly}", "NULL", "'", "$1", "%s", "ünï", ""]

PROJECT = projects.c.external_id
INSERT = row_insert(projects, PROJECT)
_NAMED = select(PROJECT).where(PROJECT.in_(bindparam("names", expanding=True))).order_by(projects.c.id)
NAMED, BY_KEY = PreparedStatement(_NAMED), PreparedStatement(_NAMED, by_key=True)
PLANS = (
    "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE strpos(statement, 'ORDER BY projects.id') > 0"
)


@writes
def insert(tx: Transaction, statement: RowChange, rows: list) -> None:
    tx.write_rows(statement, rows)


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


def test_a_refused_statement_is_an_error_of_sqlalchemy(migrated: Database):
    twice = [{"uuid": "1", "name": "one"}, {"uuid": "1", "name": "two"}]
    with migrated.writer.begin() as connection, pytest.raises(IntegrityError):
        row_insert(resource_providers, resource_providers.c.uuid, resource_providers.c.name).send(connection, twice)
