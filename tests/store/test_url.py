"""Database URLs of real configuration files."""

import logging

import pytest

from placement.errors import ConfigurationError
from placement.store.lifecycle.opening import normalised

SECRET = "s3cr3t"


def connect_arguments(connection: str, parameters: str = "") -> tuple[str, object]:
    url = normalised(connection, parameters)
    positional, keywords = url.get_dialect()().create_connect_args(url)
    return url.drivername, positional or keywords


POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg2", "postgresql+psycopg", "postgresql+psycopg2cffi")
MYSQL = ("mysql", "mysql+pymysql", "mysql+mysqldb", "mysql+mysqlconnector")
PARTS = {"host": "db", "user": "placement", "password": "p@ss"}
OF_MYSQL = {**PARTS, "database": "placement", "charset": "utf8"}


@pytest.mark.parametrize(
    ("scheme", "query", "driver", "expected"),
    [
        *[(scheme, "", "postgresql+psycopg", {**PARTS, "dbname": "placement"}) for scheme in POSTGRESQL],
        *[(scheme, "?charset=utf8&plugin=dbcounter", "mysql+pymysql", OF_MYSQL) for scheme in MYSQL],
    ],
)
def test_every_spelling_of_a_database_means_one_driver(scheme: str, query: str, driver: str, expected: object) -> None:
    assert connect_arguments(f"{scheme}://placement:p%40ss@db/placement{query}") == (driver, expected)


def test_parameters_of_another_driver_are_dropped_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        _, arguments = connect_arguments("postgresql+psycopg2://u@h/db?charset=utf8&sslmode=require")
    assert arguments == {"host": "h", "user": "u", "dbname": "db", "sslmode": "require"}
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == ["charset"]


@pytest.mark.parametrize("connection", ["mysql://u@h/db", "mysql://u@h/db?charset=utf8mb4"])
def test_connection_parameters_are_appended_to_the_query(connection: str) -> None:
    _, arguments = connect_arguments(connection, "connect_timeout=5")
    assert isinstance(arguments, dict)
    assert arguments["connect_timeout"] == 5
    assert ("charset" in arguments) == ("charset" in connection)


@pytest.mark.parametrize(
    ("hosts", "expected"), [("one:5432,two:5433", {"host": "one,two", "port": "5432,5433"}), ("h", {"host": "h"})]
)
def test_several_hosts_with_ports_reach_libpq_as_lists_and_a_comma_in_a_password_is_none(hosts: str, expected) -> None:
    _, arguments = connect_arguments(f"postgresql://u:a,b@{hosts}/db?target_session_attrs=any")
    assert arguments == {**expected, "user": "u", "password": "a,b", "dbname": "db", "target_session_attrs": "any"}


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_a_sqlite_file_is_found_by_its_absolute_path(scheme: str) -> None:
    assert connect_arguments(f"{scheme}:////var/lib/placement.sqlite?charset=utf8") == (
        "sqlite", ["/var/lib/placement.sqlite"]
    )  # fmt: skip


@pytest.mark.parametrize("connection", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"])
def test_sqlite_in_memory_is_refused(connection: str) -> None:
    with pytest.raises(ConfigurationError, match="name a file"):
        normalised(connection)


@pytest.mark.parametrize(
    "connection",
    [f"oracle://u:{SECRET}@h/db", f"postgresql://u:{SECRET}@h:port/db", f"u:{SECRET}@h", ""],
    ids=["unknown database", "port that is no number", "no scheme", "empty"],
)
def test_a_refused_url_is_told_in_one_sentence_without_the_password(connection: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        normalised(connection)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
