"""The console in process: an application on a fresh database, and a visitor who opens its pages."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from flask import Flask

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings, load
from tests import servers
from tests.ui.clouds import load_demo
from tests.ui.visitor import Visitor


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings(database=DatabaseSettings(connection=database_url), auth_strategy="noauth2")


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    """An application on an empty database, once on SQLite and once on PostgreSQL."""
    application = create_app(settings)
    yield application
    application.extensions["placement"].database.dispose()


Configured = Callable[[Mapping[str, Mapping[str, str]]], Flask]


@pytest.fixture
def configured(sqlite_url: str, tmp_path: Path) -> Iterator[Configured]:
    """Makes an application of sections of placement.conf."""
    made: list[Flask] = []

    def application(sections: Mapping[str, Mapping[str, str]]) -> Flask:
        file = servers.write_configuration(tmp_path, {"placement_database": {"connection": sqlite_url}, **sections})
        made.append(create_app(load([str(file)], {}, search=False)))
        return made[-1]

    yield application
    for each in made:
        each.extensions["placement"].database.dispose()


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    return Visitor(app)


@pytest.fixture
def demo(app: Flask) -> None:
    """Put the cloud of ``placement demo`` into the application, with three consumers (tests.ui.clouds)."""
    load_demo(app.extensions["placement"].database)
