"""The server in process, as in the tests of the API."""

import pytest
from flask import Flask

from placement.store.connection.database import Database
from tests.api.conftest import api, app

__all__ = ["api", "app", "served"]


@pytest.fixture
def served(app: Flask) -> Database:
    """The server's database object, with its retry count."""
    served: Database = app.extensions["placement"].database
    return served
