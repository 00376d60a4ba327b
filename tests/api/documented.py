"""Checks answers against the API reference, at the microversion that was requested."""

from functools import cache

import orjson
from flask import Flask
from jsonschema_rs import Draft202012Validator
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import RequestRedirect
from werkzeug.test import TestResponse

from placement.api.fields import Json
from placement.api.versions import MAXIMUM, Version
from placement.openapi.answers import COMPONENTS, answer_at

JSON = "application/json"
SCHEMAS = {"schemas": COMPONENTS}


def check(app: Flask, answer: TestResponse) -> None:
    """Compare an answer with its schema; HTML pages, unknown paths and streams have none."""
    request = answer.request
    try:
        path, _ = app.url_map.bind("localhost").match(request.path)
    except (NotFound, MethodNotAllowed, RequestRedirect):
        return
    if request.method == "HEAD" or answer.is_streamed or (answer.data and answer.mimetype != JSON):
        return
    schema = _validator(_version(answer), request.method, str(path), answer.status_code)
    what = f"{request.method} {request.path} answered with {answer.status_code}"
    if schema is None:
        assert not answer.data, f"{what} and a body that is not documented"
    else:
        wrong = [f"{error.instance_path}: {error.message}" for error in schema.iter_errors(orjson.loads(answer.data))]
        assert not wrong, f"{what}: {wrong}"


def parsed(text: str) -> Version:
    return Version(*map(int, text.split(".")))


def validator(schema: Json) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": SCHEMAS}, validate_formats=True)


def _version(answer: TestResponse) -> Version:
    """Return the microversion named in an answer; earlier failures have the same form in all microversions."""
    named = answer.headers.get("openstack-api-version", "").rpartition(" ")[2]
    return parsed(named) if named else MAXIMUM


@cache
def _validator(version: Version, method: str, path: str, status: int) -> Draft202012Validator | None:
    schema = answer_at(version, method, path, status)
    return None if schema is None else validator(schema)
