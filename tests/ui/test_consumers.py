"""Consumers in the console: the list with its search, and one consumer with its allocations."""

import csv
import io

import pytest
from flask import Flask

from placement.cli.demo import uuid_of
from tests.api.conftest import Api, with_settings
from tests.ui.visitor import Document, Visitor

VM0, VM1, VOLUME0 = (uuid_of(name) for name in ("vm0", "vm1", "volume0"))


def test_without_consumers_the_page_says_so(visitor: Visitor):
    assert "There are no consumers yet: each claim makes one" in visitor.page("/ui/consumers").text


def test_consumers_are_listed_with_what_they_hold(demo: None, visitor: Visitor):
    rows = visitor.page("/ui/consumers").table("Consumers")
    assert rows[VM0][4:] == ["just now", "just now"], "since when, and when it changed"
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
    (row,) = taken
    assert (row[0], row[2], "numa0" in row[1], "VCPU 16 taken" in row[1]) == ("compute1", "not this server", True, True)
    Api(app).delete(f"/allocations/{VM0}")
    page = visitor.page(f"/ui/consumers/{VM0.upper()}")
    assert "Project blue User somebody Holds nothing any more" in page.text
    rows = [row[1:] for row in page.cells("What changed")]
    assert "VCPU 16 given back" in rows[0][1]
    assert rows[1:] == taken


@pytest.fixture
def named(app: Flask, demo: None) -> Visitor:
    """A visitor of a server with names for a project and a user."""
    names = "{projects: {blue: Research}, users: {somebody: Ann}}"
    return Visitor(with_settings(app, planner_yaml=f"names: {names}").app)


def test_projects_and_users_go_by_their_names_and_are_found_by_them(named: Visitor) -> None:
    rows = named.page("/ui/consumers?project=sear").table("Consumers")
    assert {uuid: row[:2] for uuid, row in rows.items()} == {VM0: ["Research", "Ann"], VM1: ["Research", "Ann"]}
    assert named.open("/ui/search?q=Research").headers["location"].endswith("/ui/project?id=blue")
    assert "Project Research blue" in named.page("/ui/project?id=blue").text


def test_a_list_can_be_had_as_a_file(named: Visitor) -> None:
    answer = named.open("/ui/consumers?project=blue&format=csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="consumers.csv"'
    rows = {row["consumer"]: row for row in csv.DictReader(io.StringIO(answer.text))}
    assert set(rows) == {VM0, VM1}
    shown = [rows[VM0][key] for key in ("project", "project_id", "user", "VCPU", "MEMORY_MB")]
    assert shown == ["Research", "blue", "Ann", "16", "8192"]
