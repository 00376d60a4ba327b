"""Configuration and database for the database commands; options may precede or follow a subcommand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from placement.errors import ConfigurationError
from placement.settings import Settings, load, with_own_database
from placement.store.connection.database import Database
from placement.store.connection.engines import engine_for
from placement.store.lifecycle import schema
from placement.store.lifecycle.opening import missing_file, normalised

F = TypeVar("F", bound=Callable[..., Any])

FLAGS_WITHOUT_EFFECT = (("--debug", "-d"), ("--nodebug",), ("--use-syslog",), ("--nouse-syslog",))
"""Logging options of the reference's commands that deployment tools may pass; these commands do not log."""
VALUES_WITHOUT_EFFECT = (
    ("--log-config-append", "--log-config"),
    ("--log-date-format",),
    ("--log-dir", "--logdir"),
    ("--log-file", "--logfile"),
    ("--syslog-log-facility",),
)


def configured(command: F) -> F:
    """Add the configuration options to a command or group; ``chosen_settings`` reads them."""
    for names in FLAGS_WITHOUT_EFFECT:
        command = click.option(*names, "_ignored", is_flag=True, hidden=True, expose_value=False)(command)
    for names in VALUES_WITHOUT_EFFECT:
        command = click.option(*names, "_ignored", hidden=True, expose_value=False)(command)
    command = _remembered("--config-dir", "A directory of *.conf files, read after --config-file.")(command)
    return _remembered("--config-file", "placement.conf, instead of the usual locations; repeatable.")(command)


def _remembered(name: str, text: str) -> Callable[[F], F]:
    def remember(context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> None:
        # A group is parsed before its subcommand, so its values come first.
        context.meta[name] = (*context.meta.get(name, ()), *values)

    return click.option(name, multiple=True, metavar="PATH", help=text, expose_value=False, callback=remember)


def url_without_passwords(database: Database) -> str:
    """Return the URL of a database for display."""
    return str(database.engine.url.difference_update_query(["password", "sslpassword"]))


def chosen_settings() -> Settings:
    """Return the settings selected by the options of the running command and its groups.

    Raises:
        ConfigurationError: as ``settings.load``.
    """
    meta = click.get_current_context().meta
    return load(meta["--config-file"], config_dirs=meta["--config-dir"])


@contextmanager
def connected(settings: Settings, *, creates: bool = False) -> Iterator[Database]:
    """Yield the configured database unchanged; it is connected to, and if it ``creates`` the file made, on first use.

    Raises:
        ConfigurationError: the URL is unusable, or the SQLite file does not exist.
    """
    url = normalised(settings.database.connection, settings.database.connection_parameters)
    # Connecting would create it empty, at a mistyped path, too.
    if not creates and (file := missing_file(url)) is not None:
        raise ConfigurationError(f"There is no database file {file}; 'placement db upgrade' creates it.")
    database = Database(engine_for(url, sqlite_synchronous=settings.database.sqlite_synchronous))
    try:
        yield database
    finally:
        database.dispose()


@contextmanager
def readable(settings: Settings, *, with_journal: bool = False) -> Iterator[Database]:
    """Yield the database that ``placement serve`` would use, unchanged.

    Raises:
        ConfigurationError: there is no database, or it has no tables, or not the journal that is needed.
    """
    with connected(with_own_database(settings)) as database:
        state = schema.current(database.engine)
        if state.is_empty:
            raise ConfigurationError("The database has no Placement tables.")
        if with_journal and not schema.has_journal(database.engine):
            raise ConfigurationError("The database has no journal: run 'placement db upgrade' on it first.")
        database.keeps_usage, database.keeps_journal = state.keeps_usage, state.keeps_journal
        yield database
