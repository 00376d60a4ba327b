"""Consumers in the console: the list with its search, and one consumer with its allocations."""

import pytest
from flask import Flask

from placement.cli.demo_story import uuid_of
from tests.api.conftest import Api
from tests.ui.visitor import Document, Visitor

VM0, VM1, VOLUME0 = (uuid_of(name) for name in ("vm0", "vm1", "volume0"))


def test_without_consumers_the_page_says_so(visitor: Visitor):
    assert "There are no consumers yet." in visitor.page("/ui/consumers").text


def test_consumers_are_listed_with_what_they_hold(demo: None, visitor: Visitor):
    rows = visitor.page("/ui/consumers").table("Consumers")
    assert rows[VM0][:4] == ["blue", "somebody", "INSTANCE", "16 VCPU 8 GiB MEMORY_MB 1 PGPU"]
    assert rows[VOLUME0][:4] == ["red", "somebody", "unknown", "50 GiB DISK_GB"]


SEARCHES = {
    f"uuid={VM1}": {VM1},
    f"uuid={VM1[:9].upper()}": {VM1},
    "project=bl": {VM0, VM1},
    "project=blue&type=INSTANCE": {VM0, VM1},
    "type=unknown": {VOLUME0},
    "project=lue": set(),
    "project=%25": set(),
    f"uuid={VM0}&type=unknown": set(),
}


def test_a_search_narrows_by_uuid_project_and_type(demo: None, visitor: Visitor):
    for query, found in SEARCHES.items():
        page = visitor.page(f"/ui/consumers?{query}")
        assert set(page.table("Consumers")) == found, query
        assert ("No consumer matches." in page.text) == (not found)


def test_a_consumer_is_shown_with_its_allocations(demo: None, visitor: Visitor):
    page = visitor.page(f"/ui/consumers/{VM1}")
    assert "Project blue ( its hosts on the map ) User somebody Type INSTANCE Generation 1" in page.text
    assert page.table("Allocations") == {
        "compute2 numa1": ["compute2", "VCPU", "4"],
        "storage1": ["its own", "DISK_GB", "200 GiB"],
    }
    for link in page.links("href"):
        if not link.startswith("#"):
            assert visitor.follow(link, seen_at=f"/ui/consumers/{VM1}").status_code == 200, link


@pytest.mark.parametrize("identity", ["compute1", "not a uuid", f"{VM0}x", uuid_of("nobody")])
def test_an_address_of_no_consumer_is_not_found(visitor: Visitor, identity: str):
    answer = visitor.open(f"/ui/consumers/{identity}")
    assert answer.status_code == 404
    assert f"No consumer with uuid {identity} has allocations." in Document(answer.text).text


def test_what_a_consumer_took_and_gave_back_is_told_also_when_it_is_gone(app: Flask, demo: None, visitor: Visitor):
    page = visitor.page(f"/ui/consumers/{VM0}")
    taken = [row[1:] for row in page.cells("What changed")]
    assert ["compute1 numa0 in compute1", "VCPU 16 taken", "not this server"] in taken
    Api(app).delete(f"/allocations/{VM0}")
    page = visitor.page(f"/ui/consumers/{VM0.upper()}")
    assert "Project blue User somebody Holds nothing any more" in page.text
    rows = [row[1:] for row in page.cells("What changed")]
    assert ["compute1 numa0 in compute1", "VCPU 16 given back", "admin"] in rows[: len(taken)]
    assert rows[len(taken) :] == taken


def test_a_consumer_that_is_not_there_is_told_in_a_page(visitor: Visitor):
    answer = visitor.open(f"/ui/consumers/{VM0}")
    assert answer.status_code == 404
    assert f"No consumer with uuid {VM0} has allocations." in Document(answer.text).text
