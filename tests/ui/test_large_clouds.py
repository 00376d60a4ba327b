"""Large clouds and long, hostile names: pages stay small and well-formed, and the number of statements is constant."""

from urllib.parse import urlencode

import pytest
from flask import Flask

from tests.api.test_statement_counts import statements
from tests.bench.rows import provider_uuid
from tests.ui.long_names import DOMAIN, HOSTILE, PROJECTS, load_long_named
from tests.ui.racks import fill_racks, host_name
from tests.ui.visitor import Visitor

pytestmark = pytest.mark.any_database

PLANNER_YAML = "fair_share: {keep_s: 0}"
"""Usage is read for each page: otherwise the number of statements would depend on timing."""

HOSTS, PROVIDERS_EACH = 430, 5
MAX_STATEMENTS, MAX_BYTES = 18, 300_000

HOST = host_name(0, in_rack=25)
NESTED = "resources_N=VCPU:2&required_N=HW_NUMA_ROOT&resources_G=PGPU:1&same_subtree=_N,_G&group_policy=none"
PATHS = (
    "/ui/",
    "/ui/providers",
    "/ui/providers?q=numa0&resources=VCPU:1",
    "/ui/providers?resources=PGPU:1&kind=DISK_GB,MEMORY_MB,PGPU,VCPU&sort=fullest&full=no",
    "/ui/providers?q=gpu+1&list=trees&changed=hour&disabled=no&sort=changed",
    "/ui/providers?required=HW_NUMA_ROOT&page=3",
    f"/ui/providers/{provider_uuid(HOST)}",
    f"/ui/providers/{provider_uuid(f'{HOST}-numa1-gpu0')}",
    f"/ui/providers/{provider_uuid(HOST)}/maintenance",
    "/ui/consumers",
    "/ui/consumers?project=bl&page=2",
    "/ui/project?id=blue",
    "/ui/search",
    "/ui/request?query=resources=DISK_GB:1",
    "/ui/request?query=resources=DISK_GB:2001",
    f"/ui/request?{urlencode({'query': NESTED})}",
)
GPU = "resources_N=VCPU:8&required_N=HW_NUMA_ROOT&resources_G=PGPU:1&group_policy=none&same_subtree=_N,_G"
GPU_HOST = f"/ui/providers/{provider_uuid(f'gpu-b00-01.{DOMAIN}')}"
PATHS_OF_LONG_NAMES = (
    "/ui/",
    "/ui/providers",
    "/ui/providers?q=gpu+04&list=trees&sort=fullest",
    "/ui/providers?list=providers&page=2",
    GPU_HOST,
    f"{GPU_HOST}/maintenance",
    *[f"/ui/providers/{provider_uuid(name)}" for name in (f"smartnic-000.{DOMAIN}", f"deep-000.{DOMAIN}", *HOSTILE)],
    "/ui/consumers",
    *[f"/ui/project?id={name}" for name in PROJECTS],
    f"/ui/request?{urlencode({'query': GPU})}",
    f"/ui/request?{urlencode({'query': 'resources_N=VCPU:97&required_N=HW_NUMA_ROOT'})}",
    "/ui/fair-share",
)


def sent(app: Flask, paths: tuple[str, ...] = PATHS, *, most_bytes: int = MAX_BYTES) -> dict[str, int]:
    """Open every page, which has no more bytes than that, and return the number of statements for each."""
    visitor = Visitor(app)
    counts = {}
    for path in paths:
        with statements(app) as seen:
            response = visitor.open(path)
        assert (response.status_code, len(response.data) < most_bytes) == (200, True), path
        assert "\u202e" not in response.text, path
        counts[path] = len(seen)
    return counts


def test_pages_take_as_many_statements_for_2000_providers_as_for_600(app: Flask):
    database = app.extensions["placement"].database
    fill_racks(database, 130)  # so that every list has a second part
    sent(app)  # names are looked up once
    few = sent(app)
    fill_racks(database, HOSTS, after=130)
    sent(app)  # the columns of the cloud are read once
    assert sent(app) == few
    assert max(few.values()) <= MAX_STATEMENTS
    overview = Visitor(app).page("/ui/")
    assert f"{HOSTS:,} provider trees {HOSTS * PROVIDERS_EACH:,} providers" in overview.text


def test_of_more_than_1000_candidates_the_first_1000_can_be_reached(app: Flask):
    fill_racks(app.extensions["placement"].database, 1110, sparse=True)  # some of them are full
    visitor = Visitor(app)
    path = "/ui/request?query=resources=DISK_GB:1"
    assert "More than 1,000 candidates" in visitor.page(path).text
    last = visitor.page(f"{path}&page=100")
    assert last.text.count("serves") == 10
    assert not [tag for _, tag in last.tags if tag.get("rel") == "next"]
    limited = visitor.page(f"{path}%26limit=1000").text
    assert ("Best first" in limited, "More than" in limited) == (True, False)


def test_pages_of_a_cloud_with_long_names_stay_small_and_whole(app: Flask):
    load_long_named(app.extensions["placement"].database, 200)
    for path in PATHS_OF_LONG_NAMES:
        Visitor(app).page(path)  # every tag is closed; names are looked up once
    reads_usage = 1  # of the queues, which the overview keeps otherwise
    assert max(sent(app, PATHS_OF_LONG_NAMES).values()) <= MAX_STATEMENTS + reads_usage
