"""The server in process: an application on a fresh database, and a client that authenticates as the admin."""

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from placement.api.candidate_query import search_options
from placement.app import create_app
from placement.domain.search_plan import SearchLimits
from placement.settings import DatabaseSettings, PlannerSettings, Settings
from placement.settings.planner.sections import load_planner
from tests.api.documented import check


class Api:
    """A client of one application: ``api.get("/traits", version="1.6")``; it is a ``Call``, too."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.server = app.extensions["placement"]
        self.database = self.server.database
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
        return self.request("PUT", path, **({} if body is None else {"json": body}), **options)

    def delete(self, path: str, **options) -> TestResponse:
        return self.request("DELETE", path, **options)

    def __call__(self, method: str, path: str, version: str, body: object = None) -> tuple[int, Any]:
        answer = self.request(method, path, version=version, **({} if body is None else {"json": body}))
        return answer.status_code, answer.get_json(silent=True)


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[Api]:
    """Serve a database in process, with the given groups of settings."""
    app = create_app(Settings(database=DatabaseSettings(connection=url), auth_strategy="noauth2", **settings))
    yield Api(app)
    app.extensions["placement"].database.dispose()


def with_settings(
    app: Flask, *, options: Mapping[str, Any] | None = None, planner_yaml: str | None = None, **groups: Any
) -> Api:
    """Return a client of a server on the same database, with other settings.

    Args:
        app: an application on the database.
        options: options of [placement].
        planner_yaml: the text of another planner file.
        groups: groups of settings by name.
    """
    settings = app.extensions["placement"].settings
    changed = {"placement": replace(settings.placement, **options)} if options else {}
    changed |= {} if planner_yaml is None else {"planner": planner_of(planner_yaml)}
    return Api(create_app(replace(settings, **changed, **groups)))


def planner_of(text: str) -> PlannerSettings:
    """Return the settings in the text of a planner file."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        return load_planner(Path(file.name))


def with_limits(api: Api, **limits: int) -> None:
    """Change the limits of searches in a running application."""
    object.__setattr__(api.server, "search", search_options(api.server.settings, SearchLimits(**limits)))


@pytest.fixture
def app(database_url: str, request: pytest.FixtureRequest) -> Iterator[Flask]:
    """An application on an empty database, with the planner file PLANNER_YAML if the module of the test has one."""
    with serving(database_url, planner=planner_of(getattr(request.module, "PLANNER_YAML", ""))) as api:
        yield api.app


@pytest.fixture
def api(app: Flask) -> Api:
    return Api(app)


def stop_background(app: Flask) -> None:
    """Begin no more work in the background, whose statements would count, and wait for what is under way."""
    for work in app.extensions["placement"].background:
        work.due = math.inf
    wait_for_background(app)


def wait_for_background(app: Flask) -> None:
    for work in app.extensions["placement"].background:
        if work.thread is not None:
            work.thread.join()


def compares_without_case(api: Api) -> bool:
    """Whether the database compares names without case: MariaDB's collations do."""
    return is_on_mariadb(api.app)


def is_on_mariadb(app: Flask) -> bool:
    dialect: str = app.extensions["placement"].database.dialect
    return dialect in {"mysql", "mariadb"}
