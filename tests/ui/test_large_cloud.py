"""3,000 providers remain usable: the number of statements is constant, and no page is too large for a browser."""

from dataclasses import replace
from urllib.parse import urlencode

import pytest
from flask import Flask

from placement.settings import Settings
from tests.api.test_statement_counts import statements
from tests.bench.rows import provider_uuid
from tests.ui.clouds import GrowingCloud
from tests.ui.visitor import Visitor

HOSTS, PROVIDERS_EACH = 430, 7
MAX_STATEMENTS = 18

NESTED = "resources_N=VCPU:2&required_N=HW_NUMA_ROOT&resources_V=SRIOV_NET_VF:1&same_subtree=_N,_V&group_policy=none"

PATHS = (
    "/ui/",
    "/ui/providers",
    "/ui/providers?q=numa0&resources=VCPU:1",
    "/ui/providers?resources=SRIOV_NET_VF:8&kind=DISK_GB,MEMORY_MB,SRIOV_NET_VF,VCPU&sort=fullest&full=no",
    "/ui/providers?q=host+1&list=trees&changed=hour&disabled=no&sort=changed",
    "/ui/providers?required=HW_NUMA_ROOT&page=3",
    f"/ui/providers/{provider_uuid('host0')}",
    f"/ui/providers/{provider_uuid('host0-numa1-pf0')}",
    f"/ui/providers/{provider_uuid('host0')}/maintenance",
    "/ui/consumers",
    "/ui/consumers?project=bl&page=2",
    "/ui/project?id=blue",
    "/ui/search",
    "/ui/request?query=resources=DISK_GB:1",
    "/ui/request?query=resources=DISK_GB:2001",
    f"/ui/request?{urlencode({'query': NESTED})}",
)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Usage is read for each page: otherwise the number of statements would depend on timing."""
    fair_share = replace(settings.planner.fair_share, keep_s=0)
    return replace(settings, planner=replace(settings.planner, fair_share=fair_share))


def sent(app: Flask) -> dict[str, int]:
    """Open every page and return the number of statements for each."""
    visitor = Visitor(app)
    counts = {}
    for path in PATHS:
        with statements(app) as seen:
            response = visitor.open(path)
        assert response.status_code == 200, path
        assert len(response.data) < 300_000, path
        counts[path] = len(seen)
    return counts


@pytest.mark.any_database
def test_pages_take_as_many_statements_for_3000_providers_as_for_1000(app: Flask):
    cloud = GrowingCloud(app.extensions["placement"].database)
    cloud.grow(130)  # so that every list has a second part
    sent(app)  # names are looked up once
    few = sent(app)
    cloud.grow(HOSTS - 130)
    sent(app)  # the columns of the cloud are read once
    assert sent(app) == few
    assert max(few.values()) <= MAX_STATEMENTS
    overview = Visitor(app).page("/ui/")
    assert f"{HOSTS:,} provider trees {HOSTS * PROVIDERS_EACH:,} providers" in overview.text


@pytest.mark.any_database
def test_of_more_than_1000_candidates_the_first_1000_can_be_reached(app: Flask):
    GrowingCloud(app.extensions["placement"].database).grow(1001)
    visitor = Visitor(app)
    path = "/ui/request?query=resources=DISK_GB:1"
    assert "More than 1,000 candidates" in visitor.page(path).text
    last = visitor.page(f"{path}&page=100")
    assert last.text.count("serves") == 10
    assert not [tag for _, tag in last.tags if tag.get("rel") == "next"]
    assert "Best first" in visitor.page(f"{path}%26limit=1000").text
    assert "More than" not in visitor.page(f"{path}%26limit=1000").text
