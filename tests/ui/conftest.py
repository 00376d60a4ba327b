"""The console in process: an application on a fresh database, and a visitor who opens its pages."""

from collections.abc import Iterator

import pytest
from flask import Flask

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
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


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    return Visitor(app)


@pytest.fixture
def demo(app: Flask) -> None:
    """Put the cloud of ``placement demo`` into the application, with three consumers (tests.ui.clouds)."""
    load_demo(app.extensions["placement"].database)
