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


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+psycopg2", "postgresql+psycopg", "postgresql+psycopg2cffi"]
)
def test_every_spelling_of_postgresql_means_psycopg(scheme: str) -> None:
    driver, arguments = connect_arguments(f"{scheme}://placement:p%40ss@db.example/placement")
    assert driver == "postgresql+psycopg"
    assert arguments == {"host": "db.example", "user": "placement", "password": "p@ss", "dbname": "placement"}


@pytest.mark.parametrize("scheme", ["mysql", "mysql+pymysql", "mysql+mysqldb", "mysql+mysqlconnector"])
def test_every_spelling_of_mysql_means_pymysql(scheme: str) -> None:
    driver, arguments = connect_arguments(f"{scheme}://placement:pw@db/placement?charset=utf8&plugin=dbcounter")
    assert driver == "mysql+pymysql"
    assert arguments == {
        "host": "db", "user": "placement", "password": "pw", "database": "placement", "charset": "utf8"
    }  # fmt: skip


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


def test_several_hosts_with_ports_reach_libpq_as_lists() -> None:
    _, arguments = connect_arguments("postgresql://u:a,b@one:5432,two:5433/db?target_session_attrs=read-write")
    assert arguments == {
        "host": "one,two", "port": "5432,5433", "user": "u", "password": "a,b", "dbname": "db",
        "target_session_attrs": "read-write",
    }  # fmt: skip


def test_a_comma_in_a_password_is_not_a_list_of_hosts() -> None:
    _, arguments = connect_arguments("postgresql://u:a,b@h/db")
    assert arguments == {"host": "h", "user": "u", "password": "a,b", "dbname": "db"}


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
