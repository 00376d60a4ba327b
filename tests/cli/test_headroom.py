"""``placement headroom`` and ``placement flavors import``."""

import json

import pytest

from tests.cli.commands import Command
from tests.databases import migrate, open_database
from tests.small_clouds import Inventory, Node, load

FLAVORS = "flavors:\n  small: resources=VCPU:2\n  wide: resources=VCPU:6\n  none: resources=PCPU:1\n"


@pytest.fixture
def cloud(placement: Command) -> str:
    """The default database: three hosts with eight CPUs, one of which is in use."""
    directory = placement.home / ".local/share/placement"
    directory.mkdir(parents=True)
    url = f"sqlite:///{directory / 'placement.sqlite'}"
    migrate(url)
    database = open_database(url)
    load(
        database,
        {number: Node(number, None, number, {"VCPU": Inventory(8, used=5 * (number == 2))}) for number in (1, 2, 3)},
    )
    database.dispose()
    return url


def configure(placement: Command, url: str) -> str:
    (placement.home / "planner.yaml").write_text(FLAVORS)
    file = placement.home / "placement.conf"
    file.write_text(f"[placement_database]\nconnection = {url}\n")
    return str(file)


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_a_query_is_counted(placement: Command, cloud: str) -> None:
    done = placement.run("headroom", "resources=VCPU:6")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 more fit.\nOf 1 tree without room 1 lacks VCPU.\nFree where none fits: 3 VCPU.\n" in done.stdout
    assert ["node1", "1", "####################"] in cells(done.stdout)
    assert ["node1", "3", "1"] in cells(done.stdout)


def test_flavors_are_counted(placement: Command, cloud: str) -> None:
    done = placement.run("headroom", "--flavors", "--config-file", configure(placement, cloud))
    assert (done.returncode, done.stderr) == (0, "")
    rows = cells(done.stdout)
    assert ["small", "9", "3/3", "####################"] in rows
    assert ["wide", "2", "2/3", "##############......", "VCPU (1)"] in rows
    assert ["none", "0", "0/0", "...................."] in rows


def test_the_document_can_be_had_as_json(placement: Command, cloud: str) -> None:
    done = placement.run("headroom", "--json", "/allocation_candidates?resources=VCPU:6")
    assert json.loads(done.stdout)["fits"] == 2


@pytest.mark.parametrize("arguments", [[], ["resources=VCPU:1", "--flavors"]])
def test_either_a_query_or_the_flavors_are_asked_for(placement: Command, arguments: list[str]) -> None:
    assert "either a query or --flavors" in placement.run("headroom", *arguments).stderr


def test_without_flavors_the_command_says_how_to_get_some(placement: Command, cloud: str) -> None:
    assert "placement flavors import" in placement.run("headroom", "--flavors").stderr


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


def test_flavors_are_imported(placement: Command) -> None:
    (placement.home / "flavors.json").write_text(json.dumps(LISTED))
    done = placement.run("flavors", "import", "flavors.json")
    assert done.stdout == (
        "flavors:\n"
        "  m1.tiny: resources=DISK_GB:1,MEMORY_MB:512,VCPU:1\n"
        "  g1.large: resources=DISK_GB:110,MEMORY_MB:65536,PGPU:1,VCPU:8\n"
    )
    assert done.stderr == "g1.large: not asked of Placement: hw:numa_nodes\n"


def test_private_flavors_are_listed(placement: Command) -> None:
    listed = [{**LISTED[0], "Is Public": True}, {**SHOWN, "os-flavor-access:is_public": False}]
    (placement.home / "flavors.json").write_text(json.dumps(listed))
    done = placement.run("flavors", "import", "flavors.json")
    assert done.stdout.endswith("  old: resources=MEMORY_MB:512,VCPU:1\nprivate_flavors:\n- old\n")


def test_one_flavor_is_imported(placement: Command) -> None:
    (placement.home / "flavor.json").write_text(json.dumps(SHOWN))
    done = placement.run("flavors", "import", "flavor.json")
    assert done.stdout == "flavors:\n  old: resources=MEMORY_MB:512,VCPU:1\n"
    assert done.stderr == "old: not asked of Placement: hw:a\n"


def test_flavors_that_are_no_request_are_left_out(placement: Command) -> None:
    """The server did not start with the section that was printed."""
    nothing = {"Name": "nothing", "VCPUs": 0, "RAM": 0, "Disk": 0}
    policy = {"resources1:PGPU": "1", "resources2:PGPU": "1", "group_policy": "any"}
    alone = {"Name": "alone", "VCPUs": 1, "RAM": 1, "Disk": 0, "Properties": policy}
    (placement.home / "flavors.json").write_text(json.dumps([nothing, LISTED[0], alone]))
    done = placement.run("flavors", "import", "flavors.json")
    assert done.stdout == "flavors:\n  m1.tiny: resources=DISK_GB:1,MEMORY_MB:512,VCPU:1\n"
    first, second = done.stderr.splitlines()
    assert first == "nothing: left out: There must be at least one resources or resources[$S] parameter."
    assert second.startswith("alone: left out: Invalid query string parameters: 'any' is not one of ['none'")


@pytest.mark.parametrize("text", ["{", "[1]", '[{"Name": "a", "RAM": "much"}]', '{"ram": 1}'])
def test_what_are_no_flavors_is_refused(placement: Command, text: str) -> None:
    (placement.home / "flavors.json").write_text(text)
    done = placement.run("flavors", "import", "flavors.json")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")


def test_what_a_server_refuses_is_told_in_its_words(placement: Command, cloud: str) -> None:
    with placement.running("serve", "--port", "0") as server:
        done = placement.run("headroom", "--url", server.url(), "resources=CUSTOM_NOBODY_HAS:1")
    assert (done.returncode, done.stdout) == (1, "")
    reason = "Invalid resource class in resources parameter: No such resource class CUSTOM_NOBODY_HAS."
    assert done.stderr.endswith(f"answered 400: {reason}\n")
