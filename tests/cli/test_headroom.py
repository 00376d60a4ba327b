"""``placement headroom`` and ``placement flavors import``."""

import json

import pytest

from tests.cli.commands import Command, cells
from tests.small_clouds import Inventory, Node, load
from tests.worked_flavors import AT_ROOT

FLAVORS = "flavors:\n  small: resources=VCPU:2\n  wide: resources=VCPU:6\n  none: resources=PCPU:1\n"


@pytest.fixture
def cloud(placement: Command) -> str:
    """The default database: three hosts with eight CPUs, one of which is in use."""
    hosts = {number: Node(number, None, number, {"VCPU": Inventory(8, used=5 * (number == 2))}) for number in (1, 2, 3)}
    return placement.with_database(lambda database: load(database, hosts))


def test_a_query_is_counted(placement: Command, cloud: str) -> None:
    done = placement.run("headroom", "resources=VCPU:6")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 more fit.\nOf 1 tree without room 1 lacks VCPU.\nFree where none fits: 3 VCPU.\n" in done.stdout
    assert ["node1", "1", "####################"] in cells(done.stdout)
    assert ["node1", "3", "1"] in cells(done.stdout)
    assert placement.run("headroom", "resources=VCPU:9").returncode == 3


def test_flavors_are_counted(placement: Command, cloud: str) -> None:
    done = placement.run("headroom", "--flavors", *placement.configured(cloud, FLAVORS))
    assert (done.returncode, done.stderr) == (3, ""), "one of them fits nowhere"
    rows = cells(done.stdout)
    assert ["small", "9", "3", "3", "####################"] in rows
    assert ["wide", "2", "2", "3", "##############......", "VCPU (1)"] in rows
    assert ["none", "0", "0", "0", "...................."] in rows


def test_without_flavors_the_command_says_how_to_get_some(placement: Command, cloud: str) -> None:
    assert "placement flavors import" in placement.run("headroom", "--flavors").stderr


TINY = f"resources=DISK_GB:1,MEMORY_MB:512,VCPU:1{AT_ROOT}"
LISTED = [
    {"ID": "1", "Name": "m1.tiny", "RAM": 512, "Disk": 1, "Ephemeral": 0, "VCPUs": 1, "Swap": "", "Properties": None},
    {
        "ID": "2",
        "Name": "g1.large",
        "RAM": 65536,
        "Disk": 100,
        "Ephemeral": 10,
        "VCPUs": 8,
        "Swap": 0,
        "Properties": {"resources:PGPU": "1", "hw:numa_nodes": "2"},
    },
]
SHOWN = {"name": "old", "ram": 512, "disk": 0, "OS-FLV-EXT-DATA:ephemeral": 0, "vcpus": 1, "properties": "hw:a='1'"}


LARGE = f"resources=DISK_GB:110,MEMORY_MB:65536,PGPU:1,VCPU:8{AT_ROOT}"
OLD = f"resources=MEMORY_MB:512,VCPU:1{AT_ROOT}"
PRIVATE = [{**LISTED[0], "Is Public": True}, {**SHOWN, "os-flavor-access:is_public": False}]
OWNED = AT_ROOT.replace("root_required=", "root_required=OWNER_NOVA,")


@pytest.mark.parametrize(
    ("document", "options", "printed", "remarks"),
    [
        (LISTED, "", f"m1.tiny: {TINY}\n  g1.large: {LARGE}\n", "g1.large: not asked of Placement: hw:numa_nodes\n"),
        (SHOWN, "", f"old: {OLD}\n", "old: not asked of Placement: hw:a\n"),
        (
            PRIVATE,
            "",
            f"m1.tiny: {TINY}\n  old: {OLD}\nprivate_flavors:\n- old\n",
            "old: not asked of Placement: hw:a\n",
        ),
        (LISTED[0], "--root-required OWNER_NOVA", f"m1.tiny: {TINY.replace(AT_ROOT, OWNED)}\n", ""),
    ],
    ids=["a list", "one", "a private one", "traits that nova requires"],
)
def test_flavors_are_imported(placement: Command, document: object, options: str, printed: str, remarks: str) -> None:
    (placement.home / "flavors.json").write_text(json.dumps(document))
    done = placement.run("flavors", "import", *options.split(), "flavors.json")
    assert (done.stdout, done.stderr) == (f"flavors:\n  {printed}", remarks)


NOT_ENOUGH = "There must be at least one resources or resources[$S] parameter."
NO_POLICY = "Placement refuses more than one numbered group without group_policy."
MASK = "nova refuses hw:cpu_dedicated_mask=0,1: it must select some of the flavor's CPUs, not all."
MIXED = "hw:cpu_policy='mixed', hw:cpu_dedicated_mask='0,1'"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"VCPUs": 0}, NOT_ENOUGH),
        ({"VCPUs": 1, "RAM": "much"}, "ram is 'much', not a number."),
        ({"VCPUs": 1, "Properties": 5}, "the properties are neither an object nor text."),
        ({"VCPUs": 1, "Properties": MIXED}, MASK),
        ({"VCPUs": 1, "Properties": {"resources1:PGPU": "1", "resources2:PGPU": "1"}}, NO_POLICY),
        ({"VCPUs": 1, "Name": 5}, "a flavor needs a name."),
        (5, "a flavor needs a name."),
    ],
)
def test_a_bad_flavor_is_left_out_with_its_reason(placement: Command, bad: object, reason: str) -> None:
    listed = [{"Name": "bad", **bad} if isinstance(bad, dict) else bad, LISTED[0]]
    (placement.home / "flavors.json").write_text(json.dumps(listed))
    done = placement.run("flavors", "import", "flavors.json")
    name = "flavor 1" if "name" in reason else "bad"
    assert (done.returncode, done.stdout) == (0, f"flavors:\n  m1.tiny: {TINY}\n")
    assert done.stderr == f"{name}: left out: {reason}\n"
