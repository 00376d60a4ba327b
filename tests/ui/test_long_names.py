"""Pages of a cloud with long and hostile names: small, with a fixed number of statements, and well-formed."""

import pytest
from flask import Flask

from placement.settings import DatabaseSettings, Settings
from tests.api.test_statement_counts import statements
from tests.bench.rows import provider_uuid
from tests.ui.long_names import DOMAIN, HOSTILE, PROJECTS, load_long_named
from tests.ui.visitor import Visitor

HOSTS = 200
MAX_BYTES, MAX_STATEMENTS = 300_000, 18

NESTED = (
    "resources_N%3DVCPU:8%26required_N=HW_NUMA_ROOT%26resources_G%3DPGPU:1%26group_policy=none%26same_subtree=_N,_G"
)


def page_of(name: str) -> str:
    return f"/ui/providers/{provider_uuid(name)}"


PATHS = (
    "/ui/",
    "/ui/providers",
    "/ui/providers?q=gpu+04&list=trees&sort=fullest",
    "/ui/providers?list=providers&page=2",
    *[page_of(f"{name}.{DOMAIN}") for name in ("gpu-b00-01", "smartnic-000", "deep-000")],
    f"{page_of(f'gpu-b00-01.{DOMAIN}')}/maintenance",
    *[page_of(name) for name in HOSTILE],
    "/ui/consumers",
    *[f"/ui/project?id={name}" for name in PROJECTS],
    f"/ui/request?query={NESTED}",
    "/ui/request?query=resources_N%3DVCPU:97%26required_N=HW_NUMA_ROOT",
    "/ui/fair-share",
)


@pytest.fixture
def settings(sqlite_url: str) -> Settings:
    """Independent of the kind of database."""
    return Settings(database=DatabaseSettings(connection=sqlite_url), auth_strategy="noauth2")


def test_pages_of_a_cloud_with_long_names_stay_small_and_whole(app: Flask):
    load_long_named(app.extensions["placement"].database, HOSTS)
    visitor = Visitor(app)
    for path in PATHS:
        visitor.page(path)  # every tag is closed; names are looked up once
        with statements(app) as seen:
            page = visitor.open(path)
        assert page.status_code == 200, path
        assert len(page.data) < MAX_BYTES, (path, len(page.data))
        assert len(seen) <= MAX_STATEMENTS, (path, len(seen))
        assert "\u202e" not in page.text, path
