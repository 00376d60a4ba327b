"""``placement headroom`` and ``placement flavors import``: flavors.yaml."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import Command, cells
from tests.small_clouds import Inventory, Node, load
from tests.worked_flavors import AT_ROOT

IMPORTED = yaml.safe_load(Path(__file__).with_name("flavors.yaml").read_text(encoding="utf-8"))["imported"]
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


@pytest.mark.parametrize("row", IMPORTED, ids=[row["says"] for row in IMPORTED])
def test_flavors_are_imported_and_bad_ones_left_out_with_a_reason(placement: Command, row: dict[str, Any]) -> None:
    (placement.home / "flavors.json").write_text(json.dumps(row["document"]))
    done = placement.run("flavors", "import", *row.get("options", "").split(), "flavors.json")
    expected = (0, row["printed"].replace("AT_ROOT", AT_ROOT), row["remarks"])
    assert (done.returncode, done.stdout, done.stderr) == expected
