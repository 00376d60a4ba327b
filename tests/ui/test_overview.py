"""The first page counts what there is."""

from placement.domain.inventory import Inventory
from placement.services.inventories import NewInventories, replace_inventories
from placement.services.providers import create_provider
from tests.rows_of_a_cloud import uuid_of
from tests.ui.visitor import Visitor


def test_an_empty_cloud_is_told_as_such(visitor: Visitor):
    text = visitor.page("/ui/").text
    assert "0 provider trees" in text
    assert "No provider has an inventory yet." in text


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


def test_trees_come_by_the_class_of_which_most_is_in_use(demo: None, visitor: Visitor):
    page = visitor.page("/ui/")
    assert page.items("Fullest trees") == ["compute1", "compute2", "storage1"]  # 1/2 of PGPU, 4/32 VCPU, 250/10000
    assert page.items("Emptiest trees") == ["compute3", "storage1", "compute2", "compute1"]


def test_capacity_is_a_whole_number_for_each_provider(app, visitor: Visitor):
    """8 times 1.1 is 8.8, of which 8 can be allocated, on each of the two."""
    database = app.extensions["placement"].database
    for name in ("one", "two"):
        create_provider(database, uuid=uuid_of(name), name=name)
        inventories = {"VCPU": Inventory(total=8, allocation_ratio=1.1), "PGPU": Inventory(total=4, reserved=4)}
        new = NewInventories(inventories, may_be_all_reserved=True)
        replace_inventories(database, uuid_of(name), new, generation=0)
    rows = visitor.page("/ui/").table("Capacity")
    assert rows["VCPU"] == ["", "0", "16", "0 %", "0", "16", "2"]
    assert rows["PGPU"] == ["", "0", "0", "\N{EN DASH}", "8", "0", "2"]


def test_what_changed_last_comes_first(app, demo: None, visitor: Visitor):
    create_provider(app.extensions["placement"].database, uuid=uuid_of("newest"), name="newest")
    rows = visitor.page("/ui/").table("Changed lately")
    assert next(iter(rows)) == "newest"
    assert rows["newest"] == ["0", "just now"]
    assert len(rows) == 10
