"""Reads from a standby, and what happens when it fails. A database is its own standby here.

``tests/failover/test_read_scaling.py`` uses a real one.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from functools import partial
from threading import Event

import pytest
from sqlalchemy import event, text

from placement.allocators.ranking_profile import RankingProfile
from placement.domain.inventory import Claim, ProviderFilter
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import CandidateRequest, RequestGroup
from placement.errors import ConfigurationError
from placement.services.allocation_candidates import CandidateQuestion, allocation_candidates, explanation_of
from placement.services.bulk_read import read_inventory
from placement.services.journal import put_in_order
from placement.services.planner.candidates import NoCandidate
from placement.services.planner.claims import ClaimTerms, claim
from placement.services.planner.gang import ClaimMember
from placement.services.planner.questions import PlannerOptions
from placement.services.providers import create_provider, provider, providers
from placement.settings import DatabaseSettings
from placement.store.connection.database import Database, Transaction, reads_anywhere
from placement.store.lifecycle import standby as connection_to_standby
from placement.store.lifecycle.opening import open_database
from placement.store.lifecycle.schema import OLD_SCHEMA
from placement.store.lifecycle.standby import Standby, what_is_wrong
from placement.store.tables import VERSION_TABLE
from tests.claims import new_uuid
from tests.servers import free_port

REQUEST = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1}),))
EVERYBODY = ProviderFilter()


def member(uuid: str) -> ClaimMember:
    """Return a member with a request that cannot be served."""
    consumer = Claim(consumer_uuid=uuid, allocations={}, project_id="project", user_id="user")
    wanted = PlannerRequest(groups=tuple([PlannerGroup(group=group) for group in REQUEST.groups]))
    return ClaimMember(consumer, wanted, PlannerOptions(RankingProfile(), {}, {}))


@pytest.fixture
def database(server_url: str) -> Iterator[Database]:
    opened = open_database(DatabaseSettings(connection=server_url, slave_connection=server_url))
    yield opened
    opened.dispose()


@pytest.fixture
def sent(database: Database) -> Counter[str]:
    """The number of statements sent to each server."""
    counted: Counter[str] = Counter()
    for name, engine in zip(("primary", "standby"), database.engines, strict=True):
        event.listen(engine, "before_cursor_execute", partial(count, counted, name))
    return counted


def count(counted: Counter[str], name: str, *_statement) -> None:
    counted[name] += 1


def standby_of(database: Database) -> Standby:
    assert database.standby is not None
    return database.standby


@reads_anywhere
def read(tx: Transaction, statement: str = "SELECT 1") -> object:
    return tx.execute(text(statement)).scalar_one()


def expensive_reads(database: Database) -> None:
    allocation_candidates(database, CandidateQuestion(REQUEST))
    explanation_of(database, REQUEST)
    read_inventory(database, EVERYBODY)


def test_candidates_explanations_and_bulk_reads_go_to_the_standby(database: Database, sent: Counter[str]) -> None:
    if database.dialect == "mysql":
        put_in_order(database)  # MariaDB's journal rows are numbered on the primary.
    standby_of(database).examine()
    sent.clear()
    expensive_reads(database)
    looks_for_rows_without_numbers = 1 if database.dialect == "mysql" else 0
    assert sent["primary"] == looks_for_rows_without_numbers
    assert sent["standby"] > 0


def test_everything_else_goes_to_the_primary(database: Database, sent: Counter[str]) -> None:
    standby_of(database).examine()
    sent.clear()
    uuid = new_uuid()
    create_provider(database, uuid=uuid, name="compute1")
    assert provider(database, uuid).name == "compute1"
    assert len(providers(database, EVERYBODY).rows) == 1
    with pytest.raises(NoCandidate):  # planned and explained there, where the latest claims are visible
        claim(database, [member(uuid)], ClaimTerms(digest=""))
    assert sent["primary"] > 0
    assert sent["standby"] == 0


def test_the_first_look_is_made_beside_the_first_request(database: Database, sent: Counter[str]) -> None:
    may_look, looked, standby = Event(), Event(), standby_of(database)
    examine = standby.examine

    def when_allowed() -> None:
        may_look.wait(30)
        examine()
        looked.set()

    standby.examine = when_allowed  # type: ignore[method-assign]
    assert read(database) == 1
    assert sent["standby"] == 0
    may_look.set()
    assert looked.wait(30)
    sent.clear()
    assert read(database) == 1
    assert (sent["primary"], sent["standby"]) == (0, 1)


def test_without_its_standby_a_server_starts_and_says_once_that_it_is_missing(
    postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    missing = f"postgresql://postgres@127.0.0.1:{free_port()}/placement"
    database = open_database(DatabaseSettings(connection=postgresql_url, slave_connection=missing))
    try:
        for _ in range(3):
            standby_of(database).examine()
            expensive_reads(database)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "cannot be reached" in caplog.text
    finally:
        database.dispose()


def test_a_standby_that_fails_is_given_up_until_the_next_look(
    database: Database, sent: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Its connections break: the request is answered nevertheless, and no other request tries it meanwhile."""
    caplog.set_level(logging.INFO)
    standby = standby_of(database)
    standby.examine()
    read(database)
    sent.clear()

    def fail(connection, cursor, *_statement):
        connection.connection.dbapi_connection.close()

    event.listen(standby.database.engine, "before_cursor_execute", fail)
    assert [read(database) for _ in range(3)] == [1, 1, 1]
    assert (sent["primary"], sent["standby"]) == (3, 1)
    assert database.retries["standby"] == 1
    event.remove(standby.database.engine, "before_cursor_execute", fail)
    standby.examine()
    sent.clear()
    assert read(database) == 1
    assert (sent["primary"], sent["standby"]) == (0, 1)
    said = [record.levelno for record in caplog.records if record.name == connection_to_standby.__name__]
    assert said == [logging.INFO, logging.WARNING, logging.INFO]


def test_a_read_that_the_standby_cancels_is_made_by_the_primary_and_the_standby_stays(
    postgresql_url: str, sent: Counter[str], database: Database
) -> None:
    """PostgreSQL cancels readers on a standby that conflict with changes from the primary, with 40001."""
    if database.dialect != "postgresql":
        pytest.skip("MariaDB has no such errors")
    standby = standby_of(database)
    standby.examine()
    sent.clear()
    conflict = "DO $$ BEGIN RAISE EXCEPTION 'conflict with recovery' USING ERRCODE = '40001'; END $$"

    @event.listens_for(standby.database.engine, "before_cursor_execute", retval=True)
    def cancel(_connection, _cursor, _statement, parameters, *_rest):
        return conflict, parameters

    assert read(database) == 1
    assert sent["primary"] == 1
    assert standby.may_serve()


def test_usage_is_summed_where_the_standby_has_no_triggers_yet(database: Database) -> None:
    standby = standby_of(database)
    standby.examine()
    assert standby.database.keeps_usage
    with database.engine.begin() as connection:
        if database.dialect == "postgresql":
            connection.execute(text("ALTER TABLE allocations DISABLE TRIGGER USER"))
        else:
            names = connection.execute(text("SHOW TRIGGERS WHERE `Table` = 'allocations'")).scalars().all()
            for name in names:
                connection.execute(text(f"DROP TRIGGER {name}"))
    standby.examine()
    assert not standby.database.keeps_usage
    assert database.keeps_usage, "that is the primary's own matter"


def test_a_standby_with_an_older_schema_is_not_in_use(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text(f"DELETE FROM {VERSION_TABLE}"))
    assert what_is_wrong(database.engine, standby_of(database).database) == OLD_SCHEMA


@pytest.mark.parametrize("other", ["sqlite:////tmp/nowhere.sqlite", "mysql+pymysql://nobody@127.0.0.1/placement"])
def test_a_database_of_another_kind_is_no_standby(postgresql_url: str, other: str) -> None:
    with pytest.raises(ConfigurationError, match="slave_connection"):
        open_database(DatabaseSettings(connection=postgresql_url, slave_connection=other))
