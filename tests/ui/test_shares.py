"""The page of fair shares: the tree with what every queue holds, in parts of limited size."""

import pytest
from flask import Flask

from placement.cli.fair_share import tree_report
from tests import clouds
from tests.api.conftest import Api, with_settings
from tests.clouds import provider
from tests.http_calls import ask
from tests.stored_clouds import stored
from tests.ui.visitor import Document, Visitor

PATH = "/ui/fair-share"
PLANNER_YAML = """
fair_share:
  classes: [VCPU, PGPU]
  keep_s: 0
  tree: {all/research: {weight: 3, projects: [p1, p2]}, all/products: {projects: [p3]}}
  default: all/others
"""


@pytest.fixture
def cloud(app: Flask) -> clouds.Cloud:
    """Ten CPUs and ten GPUs; p1 has six CPUs, p3 two GPUs."""
    made = stored(app, provider("host", VCPU=10, PGPU=10))
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 6}, project="p1")
    clouds.allocate(Api(app), made.providers["host"], {"PGPU": 2}, project="p3")
    return made


def bars(page: Document) -> list[tuple[str, str]]:
    """Return the colour and the width of every non-empty bar."""
    rects = [attributes for tag, attributes in page.tags if tag == "rect"]
    return [(str(each["class"]), str(each["width"])) for each in rects if each["class"] in ("part", "above")]


def test_the_tree_shows_what_everybody_holds_beside_its_entitlement(visitor: Visitor, cloud: clouds.Cloud):
    page = visitor.page(PATH)
    assert "4 VCPU free of 10 8 PGPU free of 10" in page.text
    assert "all 6 VCPU 60 %" in page.text
    assert "products 2 PGPU 20 % 10 -8 PGPU 1" in page.text
    assert "research 6 VCPU 60 % 10 -4 VCPU 3" in page.text
    assert "p1 6 VCPU 60 % 10 -4 VCPU 1" in page.text
    assert "p2 blocked nothing 1" in page.text
    assert bars(page) == [("part", width) for width in ("60.00", "20.00", "20.00", "60.00", "60.00")]


def test_the_one_to_be_served_next_comes_first(visitor: Visitor, cloud: clouds.Cloud):
    names = [word for word in visitor.page(PATH).words if word in ("p1", "p2", "p3", "products", "research")]
    assert names == ["products", "p3", "research", "p1", "p2"]


def test_who_would_give_back_is_told_alike_by_the_api_the_command_and_the_console(visitor: Visitor, app: Flask):
    """Of ten CPUs, three quarters are for research, and p1 holds nine."""
    made = stored(app, provider("host", VCPU=10, PGPU=10))
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 9}, project="p1")
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 1}, project="p3")
    document = ask(Api(app), "GET", "/planner/v1/fair-share", "1.39")
    gives = {node["path"]: node["gives"] for node in document["nodes"] if node["gives"]}
    assert gives == {"all/research": {"VCPU": 1}, "all/research/p1": {"VCPU": 1}}
    assert [line.split()[0] for line in tree_report(document).lines() if " +1.5 VCPU  1 VCPU " in line] == [
        "research",
        "p1",
    ]
    assert visitor.page(PATH).text.count("+1.5 VCPU 1 VCPU") == 2


def test_what_is_lacking_is_told_of_every_class_by_the_command_and_the_console(visitor: Visitor, app: Flask):
    """p1 mainly holds CPUs, and is entitled to half of the GPUs, of which it has two in ten."""
    made = stored(app, provider("host", VCPU=10, PGPU=10))
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 8, "PGPU": 2}, project="p1")
    clouds.allocate(Api(app), made.providers["host"], {"PGPU": 8}, project="p2")
    printed = {
        line.split()[0]: line
        for line in tree_report(ask(Api(app), "GET", "/planner/v1/fair-share", "1.39")).lines()
        if line
    }
    page = visitor.page(PATH).text
    for lacks, share in (("-3 PGPU, -2 VCPU", "0.8 VCPU"), ("+3 PGPU", "0.8 PGPU")):
        assert lacks in page
        assert any(lacks in line and share in line for line in printed.values())


def test_a_branch_can_be_opened_and_left_again(visitor: Visitor, cloud: clouds.Cloud):
    (link,) = [link for link in visitor.page(PATH).links("href") if "research" in link]
    page = Document(visitor.follow(link, seen_at=PATH).text)
    assert "Fair shares of research" in page.text
    assert "p3" not in page.words
    assert any(link.endswith("at=all") for link in page.links("href"))


def test_a_branch_that_is_not_there_is_not_found(visitor: Visitor, cloud: clouds.Cloud):
    assert visitor.open(f"{PATH}?at=all/nobody").status_code == 404


def test_readers_see_the_way_to_their_own_project(app: Flask, cloud: clouds.Cloud):
    reader = Visitor(app, headers={"x-auth-token": "somebody:p1", "x-roles": "reader"})
    page = reader.page(PATH)
    assert "You see the path to your own project." in page.text
    assert {"all", "research", "p1"} <= set(page.words)
    assert not {"products", "p2", "p3"} & set(page.words)
    assert reader.open(f"{PATH}?at=all/products").status_code == 404


def test_more_in_use_than_there_is_can_be_shown(app: Flask):
    """A provider may have more usage than capacity."""
    made = stored(app, provider("host", VCPU=10, PGPU=10))
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 10}, project="p1")
    path = f"/resource_providers/{made.providers['host']}/inventories/VCPU"
    body = {"resource_provider_generation": ask(Api(app), "GET", path, "1.39")["resource_provider_generation"]}
    ask(Api(app), "PUT", path, "1.39", {**body, "total": 10, "reserved": 5})
    assert "p1 blocked 10 VCPU over 100 %" in Visitor(app).page(PATH).text


def test_thousands_of_projects_are_shown_in_parts(app: Flask):
    members = [f"project{number:05}" for number in range(2_000)]
    queues = {f"all/queue{number}": {"projects": members[number::20]} for number in range(20)}
    visitor = Visitor(with_settings(app, planner_yaml=f"fair_share: {{tree: {queues}}}").app)
    response = visitor.open(PATH)
    assert len(response.data) < 150_000
    assert "more inside" in response.text
    seen: set[str] = set()
    link = f"{PATH}?at=all/queue3"
    while link:
        page = visitor.page(link)
        seen |= {word for word in page.words if word.startswith("project0")}
        link = next((str(tag["href"]) for _, tag in page.tags if tag.get("rel") == "next"), "")
    assert seen == set(members[3::20])
