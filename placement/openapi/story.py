"""A plausible sequence of requests that covers every operation, replayed against a server in this process.

The answers become the examples of the API reference.
"""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import orjson
import yaml

from placement.api.routing import Route
from placement.app import create_app
from placement.settings import AccessLogSettings, DatabaseSettings, Settings

HOST = "9c2e4f0a-59d4-4c38-a1a8-6f8b1f0f3a01"
NUMA = "4f1f7a52-6c0d-4f39-9d0e-0a5d3c6b7e02"
SERVER = "5f0b1f8e-3c5d-4c0e-9f1a-2f6f6e2f7a02"
_UUIDS = {
    "HOST": HOST,
    "NUMA": NUMA,
    "OTHER_HOST": "d0c7b0de-0f2e-4b52-8b5c-2f4f0c9f1b03",
    "AGGREGATE": "7f0a3c1e-2b6d-4f88-8a2f-5f0b0e9d6c04",
    "SERVER": SERVER,
    "VOLUME": "1c5e7b1a-8b57-4d0f-8d43-9c7e6a1f2b05",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One request, the example of the operation that it reaches."""

    title: str
    method: str
    path: str
    body: Any = None
    version: str = "1.39"


def _steps() -> tuple[Step, ...]:
    text = Path(__file__).with_name("story.yaml").read_text(encoding="utf-8")
    steps = yaml.safe_load(Template(text).substitute(_UUIDS))
    return tuple(Step(step.pop("title"), *step.pop("request").split(" "), **step) for step in steps)


STORY = _steps()

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
    return PlayedStep(step, str(endpoint), answer.status_code, orjson.loads(body) if body else None)


def is_example_of(example: PlayedStep, route: Route) -> bool:
    """Tell whether an example belongs to a route's path and method."""
    return (example.step.method, example.route) == (route.method, route.path)
