"""The console if callers are identified by keystone tokens, which a browser does not have."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from placement.app import create_app
from placement.settings import load
from tests.fakes.keystone import Issued, Keystone
from tests.ui.visitor import Document, Visitor


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with Keystone() as running:
        running.tokens["good"] = Issued("alice", roles=["admin"], project="p1")
        yield running


@pytest.fixture
def app(keystone: Keystone, sqlite_url: str, tmp_path: Path) -> Iterator[Flask]:
    path = tmp_path / "placement.conf"
    options = [f"{name} = {value}" for name, value in keystone.configuration().items()]
    path.write_text("\n".join(["[placement_database]", f"connection = {sqlite_url}", "[keystone_authtoken]", *options]))
    application = create_app(load([str(path)], {}, search=False))
    yield application
    application.extensions["placement"].database.dispose()


def test_without_a_token_a_page_tells_how_to_get_in(app: Flask):
    answer = Visitor(app).open("/ui/")
    assert answer.status_code == 401
    assert "x-auth-token" in Document(answer.text).text


def test_headers_that_claim_an_identity_open_nothing(app: Flask):
    claims = {"x-identity-status": "Confirmed", "x-roles": "admin", "x-user-id": "root", "x-project-id": "p1"}
    assert Visitor(app, headers=claims).open("/ui/").status_code == 401
    assert Visitor(app, headers={**claims, "x-auth-token": "bad"}).open("/ui/").status_code == 401


def test_a_proxy_lets_visitors_in_by_adding_a_token(app: Flask):
    assert Visitor(app, headers={"x-auth-token": "good"}).open("/ui/").status_code == 200
