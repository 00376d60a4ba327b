"""Visitors see exactly what the API would show them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from placement.cli.demo import uuid_of
from placement.policies import operations
from placement.ui.blueprint import PAGES
from tests.conftest import Configured
from tests.fakes.keystone import Issued, Keystone
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
def app(configured: Configured, policy: Path) -> Flask:
    """An application with a policy file, on the demo cloud."""
    application = configured(api={"auth_strategy": "noauth2"}, oslo_policy={"policy_file": str(policy)})
    load_demo(application.extensions["placement"].database)
    return application


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


@pytest.fixture
def behind_keystone(configured: Configured) -> Iterator[Flask]:
    """An application whose callers are identified by tokens, which a browser does not have."""
    with Keystone() as keystone:
        keystone.tokens["good"] = Issued("alice", roles=["admin"], project="p1")
        yield configured(keystone_authtoken=keystone.configuration())


def test_without_a_token_a_page_tells_how_to_get_in_and_a_proxy_may_add_one(behind_keystone: Flask):
    answer = Visitor(behind_keystone).open("/ui/")
    assert answer.status_code == 401
    assert "x-auth-token" in Document(answer.text).text
    claims = {"x-identity-status": "Confirmed", "x-roles": "admin", "x-user-id": "root", "x-project-id": "p1"}
    tokens = {"": 401, "bad": 401, "good": 200}
    for token, status in tokens.items():
        sent = {"x-auth-token": token} if token else {}
        assert Visitor(behind_keystone, headers={**claims, **sent}).open("/ui/").status_code == status, token
