"""Replaying the story against an in-process server."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from placement.api.routing import Route
from placement.app import create_app
from placement.openapi.story import STORY, Step
from placement.settings import AccessLogSettings, DatabaseSettings, Settings

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SAME_ID = "req-00000000-0000-0000-0000-000000000000"
TIME, SAME_TIME = re.compile(r'"(time|since)":"[^"]+"'), r'"\1":"2026-11-22T12:00:00.000Z"'
AGE, SAME_AGE = re.compile(r'"age_s":[0-9.e-]+'), '"age_s":0.5'


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """A step and its result; ``route`` is the path as in the route."""

    step: Step
    route: str
    status: int
    body: Any


def examples() -> list[PlayedStep]:
    """Replay the story on a database of its own and return the results."""
    with tempfile.TemporaryDirectory() as directory:
        database = DatabaseSettings(connection=f"sqlite:///{Path(directory) / 'story.sqlite'}", sync_on_startup=True)
        settings = Settings(
            database=database,
            auth_strategy="noauth2",
            auth_is_implicit=True,
            access_log=AccessLogSettings(enabled=False),
        )
        app = create_app(settings)
        try:
            return played_on(app)
        finally:
            app.extensions["placement"].database.dispose()


def played_on(app: Any, steps: Sequence[Step] = STORY) -> list[PlayedStep]:
    """Replay the story on an application whose database has no providers yet."""
    return [_played(app, step) for step in steps]


def _played(app: Any, step: Step) -> PlayedStep:
    headers = {
        "x-auth-token": "admin",
        "x-roles": "admin,service",
        "accept": "application/json",
        "openstack-api-version": f"placement {step.version}",
    }
    sent = {} if step.body is None else {"json": step.body}
    answer = app.test_client().open(step.path, method=step.method, headers=headers, **sent)
    endpoint, _ = app.url_map.bind("localhost").match(step.path.partition("?")[0])
    body = TIME.sub(SAME_TIME, AGE.sub(SAME_AGE, REQUEST_ID.sub(SAME_ID, answer.text)))
    answer.close()
    return PlayedStep(step, str(endpoint), answer.status_code, _parsed(body))


def _parsed(text: str) -> Any:
    return orjson.loads(text) if text else None


def is_example_of(example: PlayedStep, route: Route) -> bool:
    """Tell whether an example belongs to a route's path and method."""
    return (example.step.method, example.route) == (route.method, route.path)
