"""api-ref/ is what this release generates from its routes; generating it plays every example."""

import json
import re
from pathlib import Path

import pytest

from placement.api.routes import PLAIN_ROUTES, ROUTES
from placement.openapi.answers import answer_at
from placement.openapi.document import document, path_of
from placement.openapi.page import page
from placement.openapi.story import examples, is_example_of
from tests.api.documented import parsed, validator

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "api-ref"
WITHOUT_EXAMPLE = {("GET", "/metrics"), ("GET", "/resource_classes")}
"""The first is disabled by default, the second grows with every release of os-resource-classes."""


@pytest.fixture(scope="module")
def made() -> dict:
    return document()


def test_the_document_is_current(made: dict):
    """If this fails: ``placement openapi --output api-ref``."""
    kept = json.loads((DIRECTORY / "openapi.json").read_text())
    assert kept["paths"] == made["paths"]
    assert kept["components"] == made["components"]


def test_the_page_is_current(made: dict):
    assert (DIRECTORY / "index.html").read_text() == page(made)


def test_every_route_is_in_it(made: dict):
    routes = {(path_of(route), route.method.lower()) for route in ROUTES}
    assert routes == {(path, method) for path, methods in made["paths"].items() for method in methods}


def test_every_route_of_placement_has_an_example():
    played = examples()
    missing = {
        (route.method, route.path)
        for route in PLAIN_ROUTES
        if not any(is_example_of(example, route) for example in played)
    }
    assert missing == WITHOUT_EXAMPLE


def test_every_answer_with_a_body_has_a_schema(made: dict):
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            contents = [answer["content"] for answer in operation["responses"].values() if "content" in answer]
            assert all(each["schema"] for content in contents for each in content.values()), (method, path)


def test_every_example_is_answered_in_the_form_that_the_reference_says(made: dict):
    """An example without a schema has no body, like every answer that a test of the API gets, except for streams."""
    for example in examples():
        operation = made["paths"][re.sub("<([a-z_]+)>", r"{\1}", example.route)][example.step.method.lower()]
        assert str(example.status) in operation["responses"], example
        schema = answer_at(parsed(example.step.version), example.step.method, example.route, example.status)
        if schema is None:
            assert example.body is None, example.step.title
        else:
            validator(schema).validate(example.body)


def test_the_page_needs_nothing_from_elsewhere():
    loaded = re.findall(r"<[^>]*\s(?:src|href)=[\"']?([^\"'\s>]+)", (DIRECTORY / "index.html").read_text())
    assert [address for address in loaded if not address.startswith("#")] == []
