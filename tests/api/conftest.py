"""The server in process: an application on a fresh database, and a client that authenticates as the admin."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from tests.api.documented import check


class Api:
    """A client of one application: ``api.get("/traits", version="1.6")``."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self._client = app.test_client()

    def request(self, method: str, path: str, *, version: str = "1.39", headers=None, **options) -> TestResponse:
        """Send one request as the admin at a microversion; the answer must conform to the API reference."""
        sent = {"x-auth-token": "admin", "openstack-api-version": f"placement {version}", **(headers or {})}
        answer = self._client.open(path, method=method, headers=sent, **options)
        check(self.app, answer)
        return answer

    def get(self, path: str, **options) -> TestResponse:
        return self.request("GET", path, **options)

    def post(self, path: str, body: object = None, **options) -> TestResponse:
        return self.request("POST", path, json=body, **options)

    def put(self, path: str, body: object = None, **options) -> TestResponse:
        if body is None:
            return self.request("PUT", path, **options)
        return self.request("PUT", path, json=body, **options)

    def delete(self, path: str, **options) -> TestResponse:
        return self.request("DELETE", path, **options)

    def call(self, method: str, path: str, version: str, body: object = None) -> tuple[int, Any]:
        """Send a request in the form that tests/clouds.py expects."""
        answer = self.request(method, path, version=version, **({} if body is None else {"json": body}))
        return answer.status_code, answer.get_json(silent=True)


@pytest.fixture
def app(database_url: str) -> Iterator[Flask]:
    """An application on an empty database, once on SQLite and once on PostgreSQL."""
    application = create_app(Settings(database=DatabaseSettings(connection=database_url), auth_strategy="noauth2"))
    yield application
    application.extensions["placement"].database.dispose()


@pytest.fixture
def api(app: Flask) -> Api:
    """A client of that application."""
    return Api(app)


def stop_background(app: Flask) -> None:
    """Begin no more work in the background, whose statements would count, and wait for what is under way."""
    for work in app.extensions["placement"].background:
        work.due = math.inf
        if work.thread is not None:
            work.thread.join()


def compares_without_case(api: Api) -> bool:
    """Whether the database compares names without case: MariaDB's collations do."""
    return is_on_mariadb(api.app)


def is_on_mariadb(app: Flask) -> bool:
    dialect: str = app.extensions["placement"].database.dialect
    return dialect in {"mysql", "mariadb"}
