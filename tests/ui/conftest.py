"""The console in process: an application on a fresh database, and a visitor who opens its pages."""

import pytest
from flask import Flask

from tests.api.conftest import app
from tests.ui.clouds import load_demo
from tests.ui.visitor import Visitor

__all__ = ["app"]


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    return Visitor(app)


@pytest.fixture
def demo(app: Flask) -> None:
    """Put the cloud of ``placement demo`` into the application, with three consumers (tests.ui.clouds)."""
    load_demo(app.extensions["placement"].database)
