"""One project in the console: its allocations, where they are, and how they compare with its share."""

import pytest
from flask import Flask
from sqlalchemy import insert, select

from placement.cli.demo import uuid_of
from placement.store.console.consumers import MAX_SUMMED
from placement.store.tables import allocations, consumers
from tests import clouds
from tests.api.conftest import Api
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.visitor import Visitor

PLANNER_YAML = """
fair_share:
  classes: [VCPU]
  keep_s: 0
  tree: {all/left: {projects: [p1]}, all/right: {projects: [a/../b]}}
"""
PATH = "/ui/project?id="


@pytest.fixture
def cloud(app: Flask) -> clouds.Cloud:
    """Ten CPUs, of which p1 has nine and a/../b one."""
    made = stored(app, provider("host", VCPU=10), provider("other", MEMORY_MB=2048))
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 9}, project="p1")
    clouds.allocate(Api(app), made.providers["other"], {"MEMORY_MB": 1024}, project="p1")
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 1}, project="a/../b")
    return made


def test_a_project_is_shown_with_its_sums_and_hosts(visitor: Visitor, cloud: clouds.Cloud):
    page = visitor.page(f"{PATH}p1")
    assert "9 VCPU 1 GiB MEMORY_MB 2 consumers of type" in page.text
    assert page.cells("Hosts") == [["host", "1", "9 VCPU"], ["other", "1", "1 GiB MEMORY_MB"]]


def test_of_many_consumers_only_the_first_are_added_up(visitor: Visitor, app: Flask):
    host = stored(app, provider("host", VCPU=2 * MAX_SUMMED)).providers["host"]
    clouds.allocate(Api(app), host, {"VCPU": 1}, project="large")
    uuids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(1, MAX_SUMMED + 5)]
    with app.extensions["placement"].database.writer.begin() as connection:
        owner = connection.execute(select(consumers.c.project_id, consumers.c.user_id)).one()
        held = connection.execute(select(allocations.c.resource_provider_id, allocations.c.resource_class_id)).one()
        connection.execute(insert(consumers), [{**owner._mapping, "uuid": uuid} for uuid in uuids])
        rows = [{**held._mapping, "consumer_id": uuid, "used": 1} for uuid in uuids]
        connection.execute(insert(allocations), rows)
    page = visitor.page(f"{PATH}large")
    assert "It has 5,005 consumers: the sums and hosts on this page are those of 5,000 of them." in page.text
    assert page.cells("Hosts") == [["host", "5,000", "5,000 VCPU"]]


def test_who_is_over_would_give_back_to_who_is_under(visitor: Visitor, cloud: clouds.Cloud):
    over = visitor.page(f"{PATH}p1")
    assert over.cells("Its share") == [["VCPU", "", "9", "5", "+4", "4"]]
    assert "In the queue all/left of weight 1, in which its own weight is 1" in over.text
    under = visitor.page(f"{PATH}a/../b")
    assert under.cells("Its share") == [["VCPU", "", "1", "5", "-4", ""]]
    assert under.items("Projects that would give back to it") == ["p1"]
    assert over.items("Projects that would give back to it") == []


def test_the_consumers_that_would_give_back_are_told_for_a_claim(visitor: Visitor, app: Flask):
    host = stored(app, provider("host", VCPU=10)).providers["host"]
    for project, amount in (("p1", 5), ("a/../b", 1)):
        clouds.allocate(Api(app), host, {"VCPU": amount}, project=project)
    page = f"{PATH}a/../b"
    assert "None: judging by amounts, it fits already." in visitor.page(f"{page}&claim=VCPU:1").text
    borrower = clouds.allocate(Api(app), host, {"VCPU": 4}, project="p1")
    asked = visitor.page(page)
    assert "VCPU:4" in [tag.get("value") for _, tag in asked.tags]
    assert "make room" not in asked.text
    told = visitor.page(f"{page}&claim=VCPU:4").text
    assert f"by amounts alone: 1. Consumer Project Gives back {borrower} p1 4 VCPU" in told
    assert "No choice of consumers makes room" in visitor.page(f"{page}&claim=VCPU:5").text
    assert "None of the requested classes counts towards fair shares" in visitor.page(f"{page}&claim=MEMORY_MB:1").text
    assert "Badly formed resources parameter" in visitor.page(f"{page}&claim=VCPU").text


def test_projects_consumers_and_providers_lead_to_the_map(visitor: Visitor, cloud: clouds.Cloud):
    host = cloud.providers["host"]
    consumer = next(link for link in visitor.page("/ui/consumers").links("href") if "/consumers/" in link)
    for path, led in ((f"{PATH}p1", "project=p1"), (consumer, "project="), (f"/ui/providers/{host}", f"host={host}")):
        (link,) = [link for link in visitor.page(path).links("href") if f"/map?{led}" in link]
        assert visitor.follow(link, seen_at=path).status_code == 200, link


def test_a_project_of_any_name_is_linked_from_its_consumers(visitor: Visitor, cloud: clouds.Cloud):
    links = [link for link in visitor.page("/ui/consumers").links("href") if "project?" in link]
    assert len(links) == 3
    for link in links:
        assert visitor.follow(link, seen_at="/ui/consumers").status_code == 200, link
    assert any("p1" in link for link in visitor.page("/ui/fair-share").links("href"))


def test_a_reader_sees_its_own_project_without_hosts_and_starts_there(app: Flask, cloud: clouds.Cloud):
    """The first page is for those who may list providers: readers used to get a 403 there."""
    reader = Visitor(app, headers={"x-auth-token": "somebody:p1", "x-roles": "reader"})
    start = reader.open("/ui/")
    assert (start.status_code, start.headers["location"]) == (303, f"{PATH}p1")
    page = reader.page(f"{PATH}p1")
    assert "9 VCPU" in page.text
    assert "Its share" in page.text
    assert "Hosts" not in page.text
    assert "Who would give back" not in page.text
    assert reader.open(f"{PATH}a/../b").status_code == 403


def test_a_project_that_holds_nothing_is_told_as_such(visitor: Visitor):
    assert "Nothing." in visitor.page(f"{PATH}nobody").text
    assert visitor.open("/ui/project").status_code == 400


def test_the_search_leads_to_what_is_called_so(app: Flask, visitor: Visitor, demo: None):
    found = {
        uuid_of("compute1").upper(): f"/ui/providers/{uuid_of('compute1')}",
        "compute1": f"/ui/providers/{uuid_of('compute1')}",
        uuid_of("vm0"): f"/ui/consumers/{uuid_of('vm0')}",
        "blue": "/ui/project?id=blue",
        "gpu 1": "/ui/providers?q=gpu+1",
    }
    for text, place in found.items():
        answer = visitor.open("/ui/search", query_string={"q": text})
        assert (answer.status_code, answer.headers["location"]) == (303, place), text
    reader = Visitor(app, headers={"x-auth-token": "somebody:p1", "x-roles": "reader"})
    assert reader.open("/ui/search?q=compute1").status_code == 403
