"""Visitors see exactly what the API would show them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from placement.app import create_app
from placement.cli.demo import uuid_of
from placement.policies import operations
from placement.settings import load
from placement.ui.blueprint import PAGES
from tests.ui.clouds import load_demo
from tests.ui.visitor import Document, Visitor

ADDRESSES = {
    "overview": "/ui/",
    "providers": "/ui/providers",
    "provider": f"/ui/providers/{uuid_of('compute1')}",
    "maintenance": f"/ui/providers/{uuid_of('compute1')}/maintenance",
    "project": "/ui/project?id=blue",
    "search": "/ui/search",
    "consumers": "/ui/consumers",
    "consumer": f"/ui/consumers/{uuid_of('vm0')}",
    "request": "/ui/request?query=resources=VCPU:1",
}
"""A page of each kind, by its endpoint."""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The current policy file; it is read again when it changes."""
    path = tmp_path / "policy.yaml"
    path.write_text("{}")
    return path


@pytest.fixture
def app(sqlite_url: str, tmp_path: Path, policy: Path) -> Iterator[Flask]:
    """An application with a policy file, on the demo cloud."""
    lines = ["[placement_database]", f"connection = {sqlite_url}", "[api]", "auth_strategy = noauth2"]
    path = tmp_path / "placement.conf"
    path.write_text("\n".join([*lines, "[oslo_policy]", f"policy_file = {policy}"]))
    application = create_app(load([str(path)], {}, search=False))
    load_demo(application.extensions["placement"].database)
    yield application
    application.extensions["placement"].database.dispose()


def test_pages_ask_for_rights_of_the_api():
    for page in PAGES:
        rules = {*page.rules, *page.any_of}
        assert rules
        assert rules <= set(dict(operations()))


@pytest.mark.parametrize("endpoint", sorted(ADDRESSES))
def test_each_right_of_a_page_is_needed(visitor: Visitor, policy: Path, endpoint: str):
    (page,) = [page for page in PAGES if page.endpoint == endpoint]
    assert visitor.open(ADDRESSES[endpoint]).status_code == 200
    for number, rule in enumerate(page.rules):
        policy.write_text(f'"{rule}": "!"{" " * number}\n')  # of another length, so that the change is noticed at once
        answer = visitor.open(ADDRESSES[endpoint])
        if endpoint == "overview" and answer.status_code == 303:
            continue  # to a page that the visitor may open
        assert answer.status_code == 403, rule
        assert f"Policy does not allow {rule} to be performed." in Document(answer.text).text


def test_scores_are_for_those_who_may_ask_for_them(visitor: Visitor, policy: Path):
    assert "score" in visitor.page(ADDRESSES["request"]).text
    policy.write_text('"placement:planner:scores": "!"\n')
    page = visitor.page(ADDRESSES["request"])
    assert "VCPU of" in page.text
    assert "score" not in page.text


def test_explanations_are_for_those_who_may_ask_for_them(visitor: Visitor, policy: Path):
    path = "/ui/request?query=resources=VCPU:99"
    assert "Cause:" in visitor.page(path).text
    policy.write_text('"placement:planner:explain": "!"\n')
    page = visitor.page(path)
    assert "No candidates" in page.text
    assert "Cause:" not in page.text


def test_the_navigation_leads_only_where_the_visitor_may_go(visitor: Visitor, policy: Path):
    assert "/ui/consumers" in visitor.page("/ui/providers").links("href")
    policy.write_text('"placement:allocations:list": "!"\n')
    page = visitor.page("/ui/providers")
    assert "/ui/consumers" not in page.links("href")
    assert "/ui/" in page.links("href")
