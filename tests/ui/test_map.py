"""The map: a cell for every host, by groups and fill level, showing how many more copies of a request fit."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from flask import Flask

from placement.services.journal import read_trail
from placement.store.connection.database import reads_anywhere
from placement.store.console.consumers import roots_of_project
from placement.store.journal.reading import EntryFilter
from placement.ui.map_address import look_back
from tests import clouds
from tests.api.conftest import Api, with_settings
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.racks import DOMAIN, fill_racks, host_name, kinds
from tests.ui.test_large_clouds import sent
from tests.ui.visitor import Document, Visitor

GPU = "resources=VCPU:8,MEMORY_MB:65536,PGPU:1"
MAX_STATEMENTS = 20
SWITCH, LOCK = "CUSTOM_HW_PCIE_SWITCH", "CUSTOM_PCIE_LOCK"


def planner(zones: int, racks: int) -> str:
    """Return a planner file with zones, racks, switches that have a lock, a flavor and two profiles."""
    return f"""
levels: {{pcie: {SWITCH}}}
exclusive: {{pcie: {LOCK}}}
aggregates: {kinds(zones, racks)}
flavors: {{g1.large: "{GPU}"}}
default_profile: spread
profiles:
  spread: {{fit: {{resources: {{VCPU: {{type: LeastAllocated}}}}}}}}
  pack: {{fit: {{resources: {{VCPU: {{type: MostAllocated}}}}}}}}
"""


PLANNER_YAML = planner(2, 2)


@pytest.fixture
def racks(app: Flask) -> None:
    """Two zones with a rack of eleven hosts each: empty, one tenth used, two tenths, and so on."""
    fill_racks(app.extensions["placement"].database, 22, zones=2, in_rack=11)


def cells(page: Document) -> list[dict[str, str | None]]:
    return [attributes for tag, attributes in page.tags if tag == "button" and attributes.get("name") == "host"]


def words(page: Document) -> dict[str, str]:
    found = {}
    for cell in cells(page):
        name, _, rest = (cell["title"] or "").partition(" ")
        found[name] = rest
    return found


def figures(page: Document) -> str:
    return page.text[page.text.index("Show ") : page.text.index("empty to full")]


def test_every_host_is_a_cell_in_its_zone_and_rack_by_how_full_it_is(racks: None, visitor: Visitor):
    page = visitor.page("/ui/map")
    assert len(cells(page)) == 22
    assert "zone eu-west-1a rack b00" in page.text
    assert [row[:2] for row in page.cells("The same as a table")] == [
        ["zone eu-west-1a", "11"],
        ["rack b00", "11"],
        ["zone eu-west-1b", "11"],
        ["rack b01", "11"],
    ]
    first = {cell["title"]: (cell["class"] or "").split()[0] for cell in cells(page)[:11]}
    assert first["gpu-b00-00 0 %"] == "f0"
    assert first["gpu-b00-05 50 %"] == "f5"
    assert first["gpu-b00-10 100 %"] == "f10"
    assert list(first.values()) == ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10"]


def test_another_class_colours_the_map(racks: None, visitor: Visitor):
    page = visitor.page("/ui/map?class=DISK_GB")
    assert words(page)["gpu-b00-05"] == "50 %"
    assert "of DISK_GB in use" in page.text
    refused = visitor.open("/ui/map?class=FPGA")
    assert refused.status_code == 404
    assert "No provider has inventory of FPGA." in Document(refused.text).text
    assert len(cells(Document(refused.text))) == 22


def test_a_request_colours_the_map_by_what_is_scarcest_of_it(racks: None, visitor: Visitor):
    assert "of PGPU in use" not in visitor.page("/ui/map").text
    assert "empty to full of PGPU" in visitor.page(f"/ui/map?query={quote(GPU)}").text
    assert "empty to full of VCPU" in visitor.page(f"/ui/map?query={quote(GPU)}&class=VCPU").text


def test_hosts_without_the_class_can_be_left_out(demo: None, visitor: Visitor):
    assert len(cells(visitor.page("/ui/map?class=PGPU"))) == 4
    assert sorted(words(visitor.page("/ui/map?class=PGPU&only=yes"))) == ["compute1", "compute2"]


def test_each_cell_tells_how_many_more_fit_as_headroom_does(racks: None, visitor: Visitor, app: Flask):
    page = visitor.page(f"/ui/map?query={quote(GPU)}")
    _, found = Api(app)("GET", f"/planner/v1/headroom?{GPU}&limit=1000", "1.39")
    assert isinstance(found, dict)
    assert f"{found['fits']} fit {found['trees_with_room']} of 22 hosts have room" in figures(page)
    names = {host["name"].removesuffix(DOMAIN): f"{host['fits']} fit" for host in found["trees"]}
    assert {name: said.split(", ")[1] for name, said in words(page).items() if "no room" not in said} == names
    assert f"{found['stranded']['PGPU']} of it stranded" in figures(page)


def test_free_devices_where_none_fits_are_marked(racks: None, visitor: Visitor):
    page = visitor.page(f"/ui/map?query={quote(GPU)}")
    marked = {(cell["title"] or "").split()[0] for cell in cells(page) if "s" in (cell["class"] or "").split()}
    assert marked == {name for name, said in words(page).items() if "stranded" in said} != set()
    assert words(page)["gpu-b00-10"] == "50 %, no room, 1 PGPU stranded"


@pytest.mark.parametrize(
    "text",
    [
        "g1.large",
        f'10.0.0.9 "GET /placement/allocation_candidates?limit=1000&{GPU} HTTP/1.1" status: 200 len: 9000',
        f"http://host/x?{GPU}",
    ],
)
def test_a_flavor_and_what_was_copied_ask_the_same_as_a_query_string(racks: None, visitor: Visitor, text: str):
    plain, other = (visitor.page(f"/ui/map?query={quote(one)}") for one in (GPU, text))
    assert figures(plain) == figures(other)
    assert words(plain) == words(other)


def test_what_is_no_request_is_told_beside_the_map(racks: None, visitor: Visitor):
    answer = visitor.open("/ui/map?query=resources%3DNO_SUCH_CLASS:1")
    page = Document(answer.text)
    assert answer.status_code == 400
    assert "No answer: Invalid resource class in resources parameter: No such resource class NO_SUCH_CLASS" in page.text
    assert len(cells(page)) == 22
    assert "resources=NO_SUCH_CLASS:1" in [tag.get("value") for _, tag in page.tags]


def test_disabled_hosts_are_hatched(visitor: Visitor, app: Flask):
    stored(app, provider("up", VCPU=8), provider("down", VCPU=8, traits=("COMPUTE_STATUS_DISABLED",)))
    page = visitor.page("/ui/map")
    assert {cell["title"]: cell["class"] for cell in cells(page)} == {"up 0 %": "f0", "down 0 %, disabled": "f0 d"}
    assert "1 disabled" in page.text


def test_the_hosts_of_a_project_light_up(visitor: Visitor, app: Flask):
    made = stored(app, provider("one", VCPU=8), provider("two", VCPU=8))
    clouds.allocate(Api(app), made.providers["two"], {"VCPU": 2}, project="red")
    page = visitor.page("/ui/map?project=red")
    assert {cell["title"]: cell["class"] for cell in cells(page)} == {"one 0 %": "f0", "two 25 %": "f3 l"}
    assert "1 with red" in page.text


def test_the_hosts_of_a_project_are_the_same_for_few_consumers_and_for_many(racks: None, app: Flask):
    database, find = app.extensions["placement"].database, reads_anywhere(roots_of_project)
    assert len(find(database, "blue", many=1_000_000)) == 20
    assert find(database, "blue", many=0) == find(database, "blue", many=1_000_000)
    assert find(database, "nobody", many=0) == set()


def card(visitor: Visitor, name: str, query: str = "") -> Document:
    key = next(cell["value"] for cell in cells(visitor.page("/ui/map")) if (cell["title"] or "").startswith(name))
    return visitor.page(f"/ui/map/host?host={key}&query={quote(query)}")


def test_a_host_tells_the_one_condition_in_the_way_and_shows_its_tree(visitor: Visitor, app: Flask):
    tree = provider("full", provider("full-numa0", provider("full-numa0-gpu0", PGPU=1), VCPU=8), MEMORY_MB=4096)
    made = stored(app, tree, provider("free", VCPU=8, MEMORY_MB=4096, PGPU=1))
    clouds.allocate(Api(app), made.providers["full-numa0"], {"VCPU": 6})
    asked = "resources=VCPU:4,MEMORY_MB:1024,PGPU:1"
    told = card(visitor, "full", asked)
    assert "Only one condition prevents one more: 4 VCPU free ; full numa0 has" in told.text
    assert "full numa0 / gpu0 PGPU 0 of 1" in told.text
    assert "One more fits here." in card(visitor, "free", asked).text
    assert "in the way" not in card(visitor, "full").text
    assert "It is not the only obstacle." in card(visitor, "full", "resources=VCPU:4,MEMORY_MB:9999,PGPU:1").text


def test_what_a_host_lacks_is_judged_with_the_pools_that_it_draws_from(visitor: Visitor, app: Flask):
    pool = provider("pool", DISK_GB=100, traits=("MISC_SHARES_VIA_AGGREGATE",), aggregates=("a",))
    made = stored(app, provider("host", VCPU=8, aggregates=("a",)), pool)
    clouds.allocate(Api(app), made.providers["pool"], {"DISK_GB": 30})
    assert "One more fits here." in card(visitor, "host", "resources=VCPU:4,DISK_GB:50").text
    assert (
        "Only one condition prevents one more: 80 GiB DISK_GB free"
        in card(visitor, "host", "resources=VCPU:4,DISK_GB:80").text
    )


def test_the_card_stands_on_the_map_too_and_its_link_leads_to_the_host(racks: None, visitor: Visitor):
    key = cells(visitor.page("/ui/map"))[3]["value"]
    page = visitor.page(f"/ui/map?query={quote(GPU)}&host={key}")
    assert f"{host_name(3, in_rack=11)} " in page.text
    link = next(link for link in page.links("href") if f"/providers/{key}" in link)
    assert key is not None
    assert visitor.follow(link, seen_at="/ui/map").status_code == 200
    assert "No host has a uuid that begins with this text." in visitor.page("/ui/map?host=zzzz").text


def test_two_profiles_show_two_maps_with_the_hosts_that_change_places_marked(racks: None, visitor: Visitor):
    page = visitor.page(f"/ui/map?query={quote('resources=VCPU:1')}&profile=spread&profile=pack")
    spread, packed_ = cells(page)[:22], cells(page)[22:]
    assert len(packed_) == 22
    best = [
        next(title for cell in some if "place 1" in (title := cell["title"] or "").split(", "))
        for some in (spread, packed_)
    ]
    assert best[0].startswith("gpu-b00-00 0 %")
    assert re.match("gpu-b0[01]-09 9[0-9] %", best[1])
    marked = [cell["title"] for cell in spread if "m" in (cell["class"] or "").split()]
    assert f"spread best first; {len(marked)} are placed differently in the other" in page.text
    assert marked
    one = visitor.page(f"/ui/map?query={quote('resources=VCPU:1')}&profile=pack")
    assert "pack best first" in one.text
    assert "spread best first" in one.text
    assert visitor.open(f"/ui/map?query={quote(GPU)}&profile=none").status_code == 400


def test_a_group_is_opened_by_its_name(racks: None, visitor: Visitor):
    page = visitor.page("/ui/map?group=eu-west-1b")
    assert len(cells(page)) == 11
    assert "Map of zone eu-west-1b" in page.text
    assert len(cells(visitor.page("/ui/map?group=nowhere"))) == 22


def test_a_cell_asks_for_the_same_map_with_its_host(racks: None, visitor: Visitor):
    page = visitor.page(f"/ui/map?query={quote(GPU)}&class=PGPU&project=blue&group=eu-west-1b&host=0")
    hidden = {tag["name"]: tag["value"] for name, tag in page.tags if name == "input" and tag.get("type") == "hidden"}
    assert hidden == {"query": GPU, "class": "PGPU", "project": "blue", "group": "eu-west-1b"}


def test_the_past_is_told_by_the_journal(visitor: Visitor, app: Flask):
    made = stored(app, provider("host", VCPU=8))
    before = now(app)
    clouds.allocate(Api(app), made.providers["host"], {"VCPU": 4})
    assert words(visitor.page("/ui/map"))["host"] == "50 %"
    assert words(visitor.page(f"/ui/map?at={before}"))["host"] == "0 %"
    assert "of what there is now" in visitor.page(f"/ui/map?at={before}").text
    long_ago = visitor.open("/ui/map?at=2001-01-01T00:00")
    assert long_ago.status_code == 410
    assert "does not reach back that far" in long_ago.text
    assert visitor.open("/ui/map?at=yesterday").status_code == 400


@pytest.mark.parametrize(
    ("minutes", "links", "steps"), [(10, None, 0), (50, [0], 2), (200, [0, 1, 3], 12), (9000, [0, 1, 3, 6, 12, 24], 96)]
)
def test_the_slider_goes_back_as_far_as_the_journal(minutes: int, links: list[int] | None, steps: int):
    found = look_back(datetime.now(UTC).replace(tzinfo=None) - timedelta(minutes=minutes))
    assert (found and [*found.links]) == links
    assert found is None or steps <= found.steps <= steps + 1


def now(app: Flask) -> str:
    """Return the moment right after the newest row of the journal."""
    newest = read_trail(app.extensions["placement"].database, EntryFilter(), limit=1)[0].time
    return quote((newest + timedelta(microseconds=1)).isoformat())


@pytest.fixture
def held_switch(app: Flask) -> dict[str, str]:
    """Two hosts with a GPU each: one consumer holds a switch exclusively, another uses the other host's GPU."""
    hosts = []
    for name in ("held", "used"):
        gpu = provider(f"{name}-gpu0", PGPU=1)
        switch = provider(f"{name}-switch0", gpu, traits=(SWITCH,), CUSTOM_PCIE_LOCK=10)
        hosts.append(provider(name, switch, VCPU=8))
    made = stored(app, *hosts)
    clouds.allocate(Api(app), made.providers["held-switch0"], {LOCK: 10})
    clouds.allocate(Api(app), made.providers["used-gpu0"], {"PGPU": 1})
    return made.providers


def test_a_place_that_is_held_exclusively_has_room_for_nobody_else(held_switch: dict[str, str], visitor: Visitor):
    """On the map, and for those who leave a host."""
    request = quote("resources=PGPU:1")
    assert "0 fit 0 of 2 hosts have room 0 PGPU free" in visitor.page(f"/ui/map?query={request}").text
    shown = visitor.page(f"/ui/map/host?host={held_switch['held']}&query={request}").text
    assert "One more fits here." not in shown
    assert "Only one condition prevents one more: places that nobody else holds exclusively" in shown
    leaving = visitor.page(f"/ui/providers/{held_switch['used']}/maintenance")
    assert [row[-1] for row in leaving.cells("Consumers to move, and where to")] == ["nowhere"]


@pytest.mark.each_database
def test_a_map_with_all_that_it_can_show(visitor: Visitor, app: Flask):
    made = stored(app, provider("one", VCPU=8), provider("two", VCPU=8))
    before = now(app)
    clouds.allocate(Api(app), made.providers["two"], {"VCPU": 2}, project="red")
    asked = f"query={quote('resources=VCPU:3')}&project=red&profile=spread&profile=pack"
    page = visitor.page(f"/ui/map?{asked}&host={cells(visitor.page('/ui/map'))[0]['value']}")
    assert words(page) == {"one": "0 %, 2 fit, place 2", "two": "25 %, 2 fit, place 1"}
    assert "4 fit 2 of 2 hosts have room" in figures(page)
    assert "1 with red" in page.text
    assert "One more fits here." in page.text
    assert words(visitor.page(f"/ui/map?at={before}"))["two"] == "0 %"


LARGE = ("/ui/map", f"/ui/map?query={quote(GPU)}", f"/ui/map?query={quote(GPU)}&project=blue&class=PGPU")


def test_a_thousand_hosts_fit_into_150_kb_and_more_are_folded_by_zone(app: Flask):
    """With as many racks as the cloud has."""
    app = with_settings(app, planner_yaml=planner(5, 90)).app
    database = app.extensions["placement"].database
    fill_racks(database, 1000, zones=5, sparse=True)
    sent(app, LARGE)  # names are looked up once
    assert max(sent(app, LARGE, most_bytes=150_000).values()) <= MAX_STATEMENTS
    assert len(cells(Visitor(app).page("/ui/map"))) == 1000
    fill_racks(database, 2001, zones=5, after=1000, sparse=True)
    sent(app, LARGE)  # the columns of the cloud are read once
    assert max(sent(app, LARGE, most_bytes=30_000).values()) <= MAX_STATEMENTS
    page = Visitor(app).page(LARGE[1])
    assert cells(page) == []
    assert "zone eu-west-1a" in page.text
    assert len(cells(Visitor(app).page("/ui/map?group=eu-west-1b"))) == 200
