"""Providers in the console: the list with its search, and one provider in its tree."""

import csv
import io
import re
import shlex
from datetime import datetime

from sqlalchemy import update

from placement.cli.demo import uuid_of
from placement.services.allocations import delete_allocations
from placement.services.names import replace_aggregates, replace_provider_traits
from placement.services.providers import create_provider, update_provider
from placement.services.providers import provider as provider_of
from placement.services.whole_trees import DrainBy, drain, enable
from placement.store.tables import placement_journal, resource_providers
from tests.api.conftest import Api, with_settings
from tests.clouds import allocate, provider
from tests.stored_clouds import stored
from tests.ui.visitor import Document, Visitor

HOSTILE = "<script>alert(1)</script>\"'&amp; %_"


def names(visitor: Visitor, query: str) -> list[str]:
    """Return the providers that a search finds, in order."""
    rows = visitor.page(f"/ui/providers?{query}").table("Providers")
    return [first.partition(" in ")[0] if " in " in first else first.split()[0] for first in rows]


def test_trees_are_listed_with_what_all_of_each_has_in_use(demo: None, visitor: Visitor):
    rows = visitor.page("/ui/providers").table("Providers")
    assert [name.split()[0] for name in rows] == ["compute1", "compute2", "compute3", "storage1"]
    assert "VCPU 16 of 32 MEMORY_MB 8 GiB of 128 GiB" in rows["compute1 8 providers"][0]


def test_a_search_finds_providers_inside_trees(demo: None, visitor: Visitor):
    numa1 = uuid_of("compute1-numa1")
    assert names(visitor, "q=NUMA") == ["compute1 numa0", "compute1 numa1", "compute2 numa0", "compute2 numa1"]
    assert names(visitor, f"q={numa1[:13].upper()}") == ["compute1 numa1"]
    assert names(visitor, "required=HW_NUMA_ROOT&resources=VCPU:13") == ["compute1 numa1", "compute2 numa0"]
    assert names(visitor, f"member_of={uuid_of('rack1')}&required=!STORAGE_DISK_SSD") == ["compute2", "storage1"]
    assert names(visitor, "q=%25") == names(visitor, "q=compute_") == []  # not SQL's wildcards
    assert names(visitor, "q=numa+compute2") == ["compute2 numa0", "compute2 numa1"]
    assert names(visitor, "q=numa+compute2&list=trees") == ["compute2"]
    assert names(visitor, "q=numa+gpu") == []


FAULTS = {
    "required=CUSTOM_NONE": "No such trait(s): CUSTOM_NONE",
    "resources=VCPU": "Badly formed resources parameter",
    "resources=CUSTOM_NONE:1": "No such resource class CUSTOM_NONE",
    "member_of=here": "parameter to contain valid UUID(s). Got: here",
    "kind=CUSTOM_NONE": "No such resource class CUSTOM_NONE",
    "sort=upwards": "sort must be one of name, fullest",
    "page=0": "page must be a number",
    "page=-1": "page must be a number",
    "page=%C2%B2": "page must be a number",
    f"page={'9' * 5000}": "page must be a number",
    "q=%00": "a NUL character",
    "q=a&q=%00": "a NUL character",
}


def test_a_search_that_means_nothing_is_told_why(visitor: Visitor):
    for query, message in FAULTS.items():
        answer = visitor.open(f"/ui/providers?{query}")
        assert answer.status_code == 400, query
        assert message in Document(answer.text).text


def test_long_lists_come_in_parts(app, visitor: Visitor):
    stored(app, *[provider(f"host{number:03}") for number in range(51)])
    first = visitor.page("/ui/providers?q=host")
    assert "Providers 1\N{EN DASH}50 of 51" in first.text
    (following,) = [link for link in first.links() if "page=" in link]
    last = Document(visitor.follow(following, seen_at="/ui/providers").text)
    assert list(last.table("Providers")) == ["host050 alone"]
    assert "Providers 51\N{EN DASH}51 of 51" in last.text
    assert "The list ends before this page." in visitor.page("/ui/providers?page=3").text


def test_what_is_left_is_asked_of_trees_as_the_overview_counts_it(demo: None, visitor: Visitor):
    """Two NUMA nodes have sixteen CPUs each, and no provider has seventeen: nothing used to be found."""
    assert names(visitor, "resources=VCPU:17") == ["compute2"]
    assert names(visitor, "resources=VCPU:17&list=providers") == []
    assert names(visitor, "resources=PGPU:1,VCPU:16") == ["compute1", "compute2"]
    assert names(visitor, "required=HW_NUMA_ROOT&list=trees") == ["compute1", "compute2"]


def test_facets_narrow_by_the_tree(app, demo: None, visitor: Visitor):
    database = app.extensions["placement"].database
    assert names(visitor, "kind=DISK_GB") == ["storage1"]
    assert names(visitor, "kind=DISK_GB&sort=fullest&full=no") == ["storage1"]
    assert names(visitor, "full=yes") == []
    generation = provider_of(database, uuid_of("compute3")).generation
    replace_provider_traits(database, uuid_of("compute3"), ["COMPUTE_STATUS_DISABLED"], generation=generation)
    assert names(visitor, "disabled=yes") == ["compute3"]
    assert names(visitor, "disabled=no&changed=hour") == ["compute1", "compute2", "storage1"]
    drain(database, uuid_of("storage1"), by=DrainBy.RESERVE)
    assert names(visitor, "disabled=yes") == ["compute3", "storage1"], "a drained host takes nobody either"
    assert "drained" in visitor.page(f"/ui/providers/{uuid_of('storage1')}").text
    enable(database, uuid_of("storage1"))
    assert names(visitor, "disabled=yes") == ["compute3"]


def test_headings_sort_the_list_and_keep_what_is_sought(demo: None, visitor: Visitor):
    page = visitor.page("/ui/providers?resources=VCPU:1&page=1")
    for order in ("name", "fullest", "changed"):
        assert f"/ui/providers?resources=VCPU%3A1&sort={order}" in page.links("href")
    page = visitor.page("/ui/providers?sort=fullest")
    assert "/ui/providers?sort=emptiest" in page.links("href")
    assert [tag["aria-sort"] for _, tag in page.tags if "aria-sort" in tag] == ["descending"]
    assert visitor.page("/ui/providers?sort=unchanged").cells("Providers")


def test_further_conditions_are_folded_unless_they_are_set(demo: None, visitor: Visitor):
    for query, is_open in (("", False), ("q=compute&sort=fullest", False), ("full=no", True)):
        (filters,) = [tag for name, tag in visitor.page(f"/ui/providers?{query}").tags if tag.get("class") == "filters"]
        assert ("open" in filters) is is_open, query


def test_trees_are_narrowed_to_a_group_of_the_planner_file(app, demo: None):
    rows = {f"row{number}": uuid_of(f"row{number}") for number in range(501)}
    kinds = {"rack": {"r1": uuid_of("rack1"), "none": uuid_of("nowhere")}, "row": rows}
    visitor = Visitor(with_settings(app, planner_yaml=f"aggregates: {kinds}").app)
    assert names(visitor, "group=rack:r1") == ["compute1", "compute2", "storage1"]
    assert names(visitor, "group=rack:r1&q=numa0&resources=VCPU:13") == ["compute2 numa0"]
    assert names(visitor, "group=rack:none") == []
    page = visitor.page("/ui/providers")
    offered = [tag.get("value") for name, tag in page.tags if name == "option" and ":" in (tag.get("value") or "")]
    assert offered == ["rack:r1", "rack:none"]
    refused = visitor.open("/ui/providers?group=rack:r9")
    assert refused.status_code == 400
    assert "planner.yaml names no aggregates rack:r9." in Document(refused.text).text


def test_a_list_follows_what_it_is_made_of(app, demo: None):
    """Names, groups, kinds and what disables a host are remembered from page to page."""
    planner, database = f"aggregates: {{rack: {{r1: {uuid_of('rack1')}}}}}", app.extensions["placement"].database
    visitor = Visitor(with_settings(app, planner_yaml=planner).app)
    assert names(visitor, "group=rack:r1&disabled=no") == ["compute1", "compute2", "storage1"]
    update_provider(database, uuid_of("compute1"), name="zone10")
    update_provider(database, uuid_of("compute3"), name="zone9")
    replace_aggregates(database, uuid_of("compute3"), [uuid_of("rack1")])
    create_provider(database, uuid=uuid_of("new"), name="zone8")
    assert names(visitor, "") == ["compute2", "storage1", "zone8", "zone9", "zone10"]
    assert names(visitor, "group=rack:r1") == ["compute2", "storage1", "zone9", "zone10"]
    drain(database, uuid_of("compute2"), by=DrainBy.TRAIT)
    drain(database, uuid_of("compute3"), by=DrainBy.RESERVE)
    assert names(visitor, "disabled=yes") == ["compute2", "zone9"]
    assert names(visitor, "kind=MEMORY_MB,VCPU") == ["zone9"]


def test_a_tree_has_changed_as_the_journal_tells(app, demo: None, visitor: Visitor):
    """A release changes no row of a provider."""
    database = app.extensions["placement"].database
    long_ago = datetime(2020, 1, 1)
    with database.writer.begin() as connection:
        connection.execute(update(resource_providers).values(updated_at=None, created_at=long_ago))
        connection.execute(update(placement_journal).values(time=long_ago))
    assert names(visitor, "changed=week") == []
    delete_allocations(database, uuid_of("vm0"))
    assert names(visitor, "changed=hour") == ["compute1"]
    assert names(visitor, "changed=hour&list=providers") == ["compute1 gpu0", "compute1 numa0"]


def test_a_list_has_the_order_that_is_asked_for(app, demo: None, visitor: Visitor):
    assert names(visitor, "sort=fullest") == ["compute1", "compute2", "storage1", "compute3"]
    assert names(visitor, "sort=emptiest") == ["compute3", "storage1", "compute2", "compute1"]
    stored(app, provider("newest"))
    assert names(visitor, "sort=changed")[0] == "newest"


def test_a_provider_is_drawn_in_its_tree(demo: None, visitor: Visitor):
    page = visitor.page(f"/ui/providers/{uuid_of('compute1-numa1')}")
    numa_nodes = ["compute1 numa0", "compute1 gpu0", "compute1 numa1", "compute1 fpga0", "compute1 gpu1"]
    assert page.items("Tree") == ["compute1", *numa_nodes, "compute1 nic0", "compute1 nic1"]
    current = [attributes["href"] for _, attributes in page.tags if attributes.get("aria-current") == "true"]
    assert current == [f"/ui/providers/{uuid_of('compute1-numa1')}"]
    assert page.table("Inventory")["VCPU"] == ["0", "16", "16", "0", "1", "1\N{EN DASH}all"]
    assert "numa 8 providers in its tree, 0 consumers of its own." in page.text
    assert "The whole tree VCPU 16 of 32" in page.text
    assert "Traits HW_NUMA_ROOT Aggregates none" in page.text


def test_who_shares_and_who_is_shared_with_is_linked(demo: None, visitor: Visitor):
    host = visitor.page(f"/ui/providers/{uuid_of('compute2')}")
    assert host.items("Providers that share with this tree") == ["storage1", uuid_of("rack1")]
    pool = visitor.page(f"/ui/providers/{uuid_of('storage1')}")
    assert pool.items("Shared with 2 trees") == ["compute1", "compute2"]
    assert pool.items("Providers that share with this tree") == []


def test_the_consumers_of_a_tree_are_listed_with_their_sums(demo: None, visitor: Visitor):
    page = visitor.page(f"/ui/providers/{uuid_of('compute1')}")
    row = [uuid_of("vm0"), "blue", "INSTANCE", "16 VCPU 8 GiB MEMORY_MB 1 PGPU", "2", "just now"]
    assert page.cells("Who consumes this tree") == [row]
    below = visitor.page(f"/ui/providers/{uuid_of('compute1-numa0')}")
    assert below.cells("Who consumes it") == [row]
    (gpu,) = visitor.page(f"/ui/providers/{uuid_of('compute1-gpu0')}").cells("Who consumes it")
    assert gpu[3:5] == ["1 PGPU", "1"]
    assert "Nothing is allocated from it" in visitor.page(f"/ui/providers/{uuid_of('compute3')}").text


def test_turning_the_consumers_stays_at_their_list(app, demo: None, visitor: Visitor):
    for _ in range(60):
        allocate(Api(app), uuid_of("storage1"), {"DISK_GB": 1})
    links = visitor.page(f"/ui/providers/{uuid_of('storage1')}").links("href")
    (following,) = [link for link in links if "page=2" in link]
    assert following.endswith("#consumers")


def test_what_is_reserved_is_drawn_on_the_scale_of_the_capacity(app, visitor: Visitor):
    """Five of ten are reserved: that is half, whatever the ratio."""
    made = stored(app, provider("host", VCPU={"total": 10, "reserved": 5, "allocation_ratio": 16.0})).providers
    rects = [tag for name, tag in visitor.page(f"/ui/providers/{made['host']}").tags if name == "rect"]
    assert [tag["width"] for tag in rects if tag["class"] == "reserved"] == ["50.00"]


def test_who_has_to_leave_a_host_is_listed_with_where_to(app, demo: None, visitor: Visitor):
    path = f"/ui/providers/{uuid_of('compute1-numa0')}/maintenance"
    page = visitor.page(path)
    assert "The only consumer fits elsewhere." in page.text
    ((_, project, holds, _, target),) = page.cells("Consumers to move, and where to")
    assert (project, holds, target) == ("blue", "8 GiB MEMORY_MB 1 PGPU 16 VCPU", "compute2")
    assert uuid_of("vm0") in page.words
    command = "openstack compute service set --disable --disable-reason maintenance compute1 nova-compute"
    assert any(words.startswith(command) for words in page.words)
    assert f"migrate --live-migration --host compute2 {uuid_of('vm0')}" in page.text
    assert "Nothing is allocated" in visitor.page(f"/ui/providers/{uuid_of('compute3')}/maintenance").text
    assert visitor.open(f"/ui/providers/{uuid_of('nothing')}/maintenance").status_code == 404


def test_where_nothing_else_has_room_that_is_told(app, demo: None, visitor: Visitor):
    """A disabled provider accepts nobody."""
    database = app.extensions["placement"].database
    generation = provider_of(database, uuid_of("compute2")).generation
    replace_provider_traits(database, uuid_of("compute2"), ["COMPUTE_STATUS_DISABLED"], generation=generation)
    assert "nowhere" in visitor.page(f"/ui/providers/{uuid_of('compute1')}/maintenance").text
    assert "disabled" in visitor.page(f"/ui/providers/{uuid_of('compute2-numa0')}").words


def test_a_command_names_a_host_as_a_shell_takes_it(app, visitor: Visitor):
    hidden = "rm\u202e-rf"
    made = stored(app, provider(HOSTILE), provider(hidden)).providers
    page = visitor.page(f"/ui/providers/{made[HOSTILE]}/maintenance")
    (line,) = [line for line in re.split(" (?:openstack|placement) ", page.text) if "compute service" in line]
    assert shlex.split(line)[-2] == HOSTILE
    assert "compute service" not in visitor.page(f"/ui/providers/{made[hidden]}/maintenance").text


def test_many_traits_come_in_groups(app, visitor: Visitor):
    traits = ["COMPUTE_NODE", "CUSTOM_OLD", *[f"HW_CPU_X86_{name}" for name in ("AVX", "AVX2", "BMI", "BMI2", "FMA3")]]
    made = stored(app, provider("host", traits=[*traits, "HW_GPU_API_VULKAN", "HW_NUMA_ROOT"])).providers
    page = visitor.page(f"/ui/providers/{made['host']}")
    assert "COMPUTE 1 COMPUTE_NODE CUSTOM 1 CUSTOM_OLD HW_CPU 5 HW_CPU_X86_AVX" in page.text


def test_of_a_large_tree_the_part_around_a_provider_is_drawn(app, visitor: Visitor):
    leaves = [[provider(f"leaf{number:03}") for number in range(part, 104, 2)] for part in range(2)]
    parts = [provider(f"part{number}", *below) for number, below in enumerate([*leaves, []])]
    made = stored(app, provider("root", *parts)).providers
    whole = visitor.page(f"/ui/providers/{made['root']}")
    assert len(whole.items("Tree")) == 100 + 1  # and the link to the rest
    assert whole.items("Tree")[-2:] == ["8 more below part1", "part2"]
    part = visitor.page(f"/ui/providers/{made['part1']}")
    assert part.items("Tree") == ["part1", *(f"leaf{number:03}" for number in range(1, 104, 2))]
    assert part.items("")[-2:] == ["Providers", "root"]


def test_what_is_too_much_to_draw_below_a_provider_is_in_a_list(app, visitor: Visitor):
    """The link used to lead to the page that it was on."""
    root = stored(app, provider("root", *[provider(f"leaf{number:03}") for number in range(104)])).providers["root"]
    page = visitor.page(f"/ui/providers/{root}")
    assert page.items("Tree")[-1] == "5 more below root"
    assert f"/ui/providers?in_tree={root}" in page.links("href")
    assert "of 105" in visitor.page(f"/ui/providers?in_tree={root}").text


def test_a_provider_that_is_not_there_is_told_in_a_page(visitor: Visitor):
    answer = visitor.open(f"/ui/providers/{uuid_of('nothing')}")
    assert answer.status_code == 404
    assert f"No resource provider with uuid {uuid_of('nothing')}" in Document(answer.text).text
    assert visitor.open("/ui/providers/nothing").status_code == 404


def test_names_are_shown_as_they_are_and_mean_nothing_to_the_browser(app, visitor: Visitor):
    child = f"{HOSTILE} child"
    made = stored(app, provider(HOSTILE, provider(child), aggregates=["a"])).providers
    for path in ("/ui/", "/ui/providers", f"/ui/providers/{made[child]}"):
        page = visitor.page(path)
        assert " ".join(HOSTILE.split()) in page.text
        assert not [tag for tag, attributes in page.tags if tag == "script" and "src" not in attributes]
    searched = visitor.page("/ui/providers?q=%3Cscript%3Ealert(1)%3C/script%3E%22")
    assert len(searched.table("Providers")) == 2
    (box,) = [attributes for tag, attributes in searched.tags if tag == "input" and attributes.get("id") == "q"]
    assert box["value"] == '<script>alert(1)</script>"'


def test_a_provider_with_every_trait_and_many_aggregates_fits_on_a_page(app, visitor: Visitor):
    traits = [f"CUSTOM_{number:03}" + "X" * 200 for number in range(450)]
    root = provider("root", traits=traits, aggregates=[f"aggregate{number}" for number in range(300)])
    answer = visitor.open(f"/ui/providers/{stored(app, root).providers['root']}")
    assert len(answer.data) < 300_000
    text = Document(answer.text).text
    assert "and 50 more" in text
    assert "and 250 more" in text


def test_names_sort_naturally_also_in_a_file(app, visitor: Visitor):
    stored(app, *[provider(f"u{number}.dc1") for number in (10, 9, 100, 1)])
    order = ["u1.dc1", "u9.dc1", "u10.dc1", "u100.dc1"]
    assert list(visitor.page("/ui/providers").table("Providers")) == [f"{name} alone" for name in order]
    rows = [*csv.DictReader(io.StringIO(visitor.open("/ui/providers?format=csv").text))]
    assert [row["provider"] for row in rows] == order


def test_a_name_is_no_formula_in_a_file(app, visitor: Visitor):
    stored(app, provider("=HYPERLINK(0)"))
    assert "'=HYPERLINK(0)" in visitor.open("/ui/providers?format=csv").text
