"""The first page counts what exists."""

from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from flask import Flask
from sqlalchemy import delete, update

from placement.cli.demo import uuid_of as demo_uuid
from placement.domain.inventory import Inventory
from placement.services.console.hosts import AT_LEAST
from placement.services.inventories import NewInventories, replace_inventories
from placement.services.providers import provider as provider_of
from placement.services.whole_trees import DrainBy, drain
from placement.settings import JournalSettings, UiSettings
from placement.store.tables import allocations, consumers, resource_providers
from tests.api.conftest import with_settings
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.visitor import Document, Visitor


def test_an_empty_cloud_is_told_as_such(visitor: Visitor):
    text = visitor.page("/ui/").text
    assert "0 provider trees" in text
    assert "No provider has an inventory yet. Point nova" in text


def test_capacity_and_use_are_summed_up_by_class(demo: None, visitor: Visitor):
    page = visitor.page("/ui/")
    assert "4 provider trees 16 providers 3 consumers" in page.text
    rows = page.table("Capacity")
    assert rows["VCPU"] == ["", "20", "72", "28 %", "0", "52", "5"]
    assert rows["MEMORY_MB"] == ["", "8 GiB", "280 GiB", "3 %", "8 GiB", "272 GiB", "5"]
    assert rows["PGPU"] == ["", "1", "3", "33 %", "0", "2", "3"]
    assert rows["DISK_GB"] == ["", "250 GiB", "10.3 TiB", "2 %", "0 GiB", "10 TiB", "2"]


def test_devices_tell_on_how_many_trees_a_request_still_fits(demo: None, visitor: Visitor):
    rows = visitor.page("/ui/").table("Fragmentation of devices")
    assert rows == {
        "SRIOV_NET_VF": ["24", "2", "2", "2", "2", "16"],
        "FPGA": ["2", "2", "0", "0", "0", "1"],
        "PGPU": ["2", "2", "0", "0", "0", "1"],
    }


def test_the_fullest_and_the_emptiest_are_told_by_kind_of_tree(demo: None, visitor: Visitor):
    """A pool of disks is not the emptiest host."""
    page = visitor.page("/ui/")
    assert "1 tree with DISK_GB" in page.text
    assert page.items("Fullest")[0] != page.items("Emptiest")[0] or len(page.items("Fullest")) == 1
    kinds = [words for words in page.text.split(" with ") if words.startswith(("VCPU", "DISK_GB"))]
    assert len(kinds) >= 2
    assert all(
        "compute" not in words.split("Emptiest")[1].split(" tree")[0] for words in kinds if words[:7] == "DISK_GB"
    )


def test_trees_that_are_alike_are_counted(app, visitor: Visitor):
    stored(app, *[provider(f"host{number}", VCPU=8) for number in range(7)])
    page = visitor.page("/ui/")
    assert "7 trees with VCPU" in page.text
    assert "Nothing is in use." in page.text
    assert page.items("Emptiest") == ["host0", "host1", "host2"]
    assert "7 are 0 % full" in page.text
    (link,) = [link for link in page.links("href") if "sort=emptiest" in link]
    assert len(visitor.page(link).table("Providers")) == 7


def test_bars_of_trees_that_stand_side_by_side_have_one_scale(app, visitor: Visitor):
    stored(app, provider("large", VCPU=80), provider("small", VCPU=20))
    for path, lengths in (("/ui/", ["100", "100", "25"]), ("/ui/providers?kind=VCPU", ["100", "25"])):
        tracks = [tag["width"] for name, tag in visitor.page(path).tags if tag.get("class") == "track"]
        assert tracks == lengths, path
    assert {tag["width"] for _, tag in visitor.page("/ui/providers").tags if tag.get("class") == "track"} == {"100"}


def test_fragmentation_leads_to_the_hosts_that_it_counts(demo: None, visitor: Visitor):
    """The list contains as many trees as the number says."""
    page = visitor.page("/ui/")
    links = [link for link in page.links("href") if "resources=" in link]
    assert links
    for link in links:
        listed = Document(visitor.follow(link, seen_at="/ui/").text)
        rows = page.table("Fragmentation of devices")
        name, amount = parse_qs(urlsplit(link).query)["resources"][0].split(":")
        assert len(listed.table("Providers")) == int(rows[name][1 + AT_LEAST.index(int(amount))]), link


def test_the_room_for_flavors_is_told(app: Flask, demo: None):
    flavors = {"small": "resources=VCPU:4", "large": "resources=VCPU:17&root_required=HW_NUMA_ROOT"}
    served = with_settings(app, planner_yaml=f"flavors: {flavors}")
    rows = Visitor(served.app).page("/ui/").table("Room for flavors")
    assert (rows["small"][:2], rows["large"][:2]) == (["13", "3"], ["0", "0"])


def test_capacity_is_a_whole_number_for_each_provider(app, visitor: Visitor):
    """8 times 1.1 is 8.8, of which 8 can be allocated on each of the two providers."""
    stocks = {"VCPU": {"total": 8, "allocation_ratio": 1.1}, "PGPU": {"total": 4, "reserved": 4}}
    stored(app, provider("one", **stocks), provider("two", **stocks))
    rows = visitor.page("/ui/").table("Capacity")
    assert rows["VCPU"] == ["", "0", "16", "0 %", "0", "16", "2"]
    assert rows["PGPU"] == ["", "0", "0", "\N{EN DASH}", "8", "0", "2"]


def test_without_a_journal_the_providers_that_changed_last_are_told(app, demo: None):
    stored(app, provider("newest"))
    without = with_settings(app, journal=JournalSettings(enabled=False))
    rows = Visitor(without.app).page("/ui/").table("Recently changed")
    assert next(iter(rows)) == "newest"
    assert rows["newest"] == ["0", "just now"]
    assert len(rows) == 10


def test_what_needs_attention_comes_first_with_a_link(app: Flask, demo: None, visitor: Visitor):
    """A host with more in use than it has, a disabled one with room, and a flavor that fits nowhere."""
    page = visitor.page("/ui/")
    assert "What needs attention" not in page.text
    flavor, ui = "'resources=PGPU:1,VCPU:64'", UiSettings(manual="https://manual.example/docs/")
    app = with_settings(app, planner_yaml=f"flavors: {{g1.huge: {flavor}}}", ui=ui).app
    database = app.extensions["placement"].database
    numa, root = demo_uuid("compute1-numa0"), demo_uuid("compute3")
    less = NewInventories({"VCPU": Inventory(total=8), "MEMORY_MB": Inventory(total=65536)}, may_be_all_reserved=True)
    replace_inventories(database, numa, less, generation=provider_of(database, numa).generation)
    drain(database, root, by=DrainBy.TRAIT)
    with database.writer.begin() as connection:
        old = {"created_at": datetime(2020, 1, 1), "updated_at": None}
        connection.execute(
            update(resource_providers).where(resource_providers.c.uuid == demo_uuid("storage1")).values(old)
        )
    page = Visitor(app).page("/ui/")
    assert page.text.index("What needs attention") < page.text.index("Capacity")
    assert [link for link in page.items("What needs attention") if link != "How to"] == [
        "More VCPU in use than capacity: 1 host.",
        "Disabled, with free capacity: 1 host.",
        "Unchanged for 30 days: 1 host.",
        "g1.huge fits 0 more times.",
        "2 PGPU are free on hosts without room for g1.huge.",
    ]
    manual = "https://manual.example/docs/how-to/explain-no-candidates.md"
    for link in ("/ui/providers?sort=fullest&full=yes", "/ui/providers?disabled=yes&sort=emptiest", manual):
        assert link in page.links()
    assert "placement host enable NAME" in page.text
    assert next(iter(Visitor(app).page("/ui/providers?sort=unchanged").table("Providers"))).startswith("storage1")


def test_what_runs_in_the_background_and_finds_something_is_told(demo: None, visitor: Visitor, app: Flask):
    """A consumer that lost its allocations long ago, and caches that were wrong."""
    server = app.extensions["placement"]
    volume, old = demo_uuid("volume0"), {"created_at": datetime(2020, 1, 1), "updated_at": None}
    with server.database.writer.begin() as connection:
        connection.execute(delete(allocations).where(allocations.c.consumer_id == volume))
        connection.execute(update(consumers).where(consumers.c.uuid == volume).values(old))
    server.audit.look()
    server.database.note_drop("difference")
    text = visitor.page("/ui/").text
    assert "Consumers without allocations: 1, as of the last hourly audit." in text
    assert "Cached trees differed from the tables at 20" in text
