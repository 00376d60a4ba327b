"""Turn the database URLs found in operators' files into URLs for the drivers this server uses.

Deployment tools write ``mysql+pymysql://``, ``postgresql+psycopg2://`` or ``postgres://``, with query parameters for
those drivers. No message from this module shows a URL, because it may contain a password.
"""

import inspect
import logging
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from placement.errors import ConfigurationError

LOG = logging.getLogger(__name__)

SQLITE_PARAMETERS = frozenset({"uri", "timeout", "check_same_thread", "cached_statements", "detect_types"})

_SEVERAL_HOSTS = re.compile(
    r"(?P<start>[\w+]+://(?:[^:/]*(?::[^@]*)?@)?)(?P<hosts>[^/?@]*,[^/?@]*)(?P<rest>(?:[/?].*)?)"
)


def normalised(connection: str, parameters: str = "", *, option: str = "connection") -> URL:
    """Return the URL to connect with; its string form hides the password.

    Args:
        connection: ``[placement_database] connection``.
        parameters: ``connection_parameters``: ``name=value&...``, appended to the query.
        option: the option that holds the URL, for messages.

    Raises:
        ConfigurationError: the URL is unusable; the message does not repeat it.
    """
    url = _parsed(connection.strip(), parameters.strip().lstrip("?&"), option)
    dialect = url.drivername.partition("+")[0]
    if dialect not in _DIALECTS:
        raise ConfigurationError(
            "The database URL must begin with postgresql://, mysql+pymysql:// or sqlite:///, "
            f"not with {url.drivername}://."
        )
    return _DIALECTS[dialect](url)


def missing_file(url: URL) -> Path | None:
    """Return the file that a normalised URL of SQLite names, if it does not exist."""
    if url.get_backend_name() != "sqlite" or "uri" in url.query:
        return None
    file = Path(url.database or "")
    return None if file.exists() else file


def _parsed(connection: str, parameters: str, option: str) -> URL:
    connection, hosts = _without_several_hosts(connection)
    if parameters:
        connection += ("&" if "?" in connection else "?") + parameters
    try:
        url = make_url(connection)
    except (ArgumentError, ValueError):
        # Without the cause, whose message may contain parts of the URL.
        raise ConfigurationError(f"The database URL cannot be read; see [placement_database] {option}.") from None
    return url.update_query_pairs([("host", host) for host in hosts], append=True) if hosts else url


def _without_several_hosts(connection: str) -> tuple[str, list[str]]:
    """Split off the hosts of ``//one:5432,two:5432/``, which libpq accepts but SQLAlchemy expects in the query."""
    match = _SEVERAL_HOSTS.fullmatch(connection)
    if match is None:
        return connection, []
    return match["start"] + match["rest"], match["hosts"].split(",")


def _postgresql(url: URL) -> URL:
    # Imported late, so that a server on SQLite starts faster.
    from psycopg import pq  # noqa: PLC0415

    keywords = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    return _with_known_query(url.set(drivername="postgresql+psycopg"), keywords)


def _mariadb(url: URL) -> URL:
    try:
        driver = import_module("pymysql.connections")
    except ImportError:
        raise ConfigurationError(
            "MySQL and MariaDB need PyMySQL, which is not installed: pip install 'placement-server[mariadb]'."
        ) from None
    dialect = url.drivername.partition("+")[0]
    return _with_known_query(
        url.set(drivername=f"{dialect}+pymysql"), {*inspect.signature(driver.Connection).parameters}
    )


def _sqlite(url: URL) -> URL:
    url = url.set(drivername="sqlite")
    if url.database in (None, "", ":memory:", "file::memory:") or url.query.get("mode") == "memory":
        raise ConfigurationError(
            "SQLite in memory cannot be shared by the threads of a server; name a file: sqlite:////path/to/a/file."
        )
    return url if "uri" in url.query else _with_known_query(url, SQLITE_PARAMETERS)


def _with_known_query(url: URL, keywords: set[str] | frozenset[str]) -> URL:
    """Drop parameters meant for other drivers, with which this one would refuse to connect."""
    unknown = sorted(set(url.query) - keywords)
    if unknown:
        LOG.warning("Parameters of the database URL that the driver does not know are ignored: %s", ", ".join(unknown))
    return url.difference_update_query(unknown)


_DIALECTS: Mapping[str, Callable[[URL], URL]] = {
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "mysql": _mariadb,
    "mariadb": _mariadb,
    "sqlite": _sqlite,
}
