"""``placement explain`` prints a waterfall."""

import io

import pytest

from placement.cli.questions import explanation_report
from tests.cli.commands import Command, cells
from tests.small_clouds import Inventory, Node, load

QUERY = "resources=VCPU:6&required=HW_NUMA_ROOT"
PLANNER = f"flavors:\n  g1.large: {QUERY}\n"


@pytest.fixture
def cloud(placement: Command) -> str:
    """The default database: three hosts, one of them with a NUMA node, two too small."""
    hosts = {
        1: Node(1, None, 1, {"VCPU": Inventory(8, used=1)}),
        2: Node(2, None, 2, {"VCPU": Inventory(4)}),
        3: Node(3, None, 3, {"VCPU": Inventory(8, used=4)}, traits=frozenset({"HW_NUMA_ROOT"})),
    }
    return placement.with_database(lambda database: load(database, hosts))


def test_the_waterfall_shows_what_each_condition_leaves(placement: Command, cloud: str):
    done = placement.run("explain", QUERY)
    assert (done.returncode, done.stderr) == (3, "")
    rows = cells(done.stdout)
    assert ["inventory of VCPU", "3", "3", "####################"] in rows
    assert ["6 VCPU free", "1", "1", "#######............."] in rows
    assert ["trait HW_NUMA_ROOT in the tree", "0", "...................."] in rows
    cause = "No tree is left after this condition: trait HW_NUMA_ROOT in the tree (unsuffixed group)."
    assert f"Cause: {cause}" in done.stdout
    assert "1 tree fails only this condition: 6 VCPU free" in done.stdout
    assert ["node3", "asked 6, free 4"] in rows


PASTED = {
    "the line of a log": f'10.0.0.1 "GET /placement/allocation_candidates?{QUERY} HTTP/1.1" status: 200',
    "the name of a flavor": "g1.large",
    "a command": "openstack allocation candidate list --resource VCPU=6 --required HW_NUMA_ROOT",
    "standard input": "-",
}


@pytest.mark.parametrize("text", PASTED.values(), ids=PASTED)
def test_whatever_the_console_takes_can_be_explained(
    placement: Command, cloud: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(QUERY))
    done = placement.run("explain", *placement.configured(cloud, PLANNER), text)
    assert (done.returncode, done.stderr) == (3, "")
    assert "trait HW_NUMA_ROOT in the tree" in done.stdout


def test_an_unknown_flavor_is_told_with_the_one_that_may_be_meant(placement: Command, cloud: str) -> None:
    done = placement.run("explain", *placement.configured(cloud, PLANNER), "g1.lagre")
    assert done.returncode == 2
    assert "'g1.lagre' is no query string" in done.stderr
    assert "Did you mean 'g1.large'?" in done.stderr


def test_before_candidates_could_be_asked_for_a_query_is_read_at_the_newest_microversion(
    placement: Command, cloud: str
):
    assert cloud
    assert placement.run("explain", "--microversion", "1.5", QUERY).stdout == placement.run("explain", QUERY).stdout


def test_a_query_is_sent_with_whatever_it_contains(placement: Command):
    with placement.running("serve", "--port", "0") as server:
        query = "resources=VCPU:1 ,MEMORY_MB:1&required=CUSTOM_É%2CHW_NUMA_ROOT"
        done = placement.run("explain", "--url", server.url(), query)
    assert "No such trait(s): CUSTOM_É" in done.stderr


def test_names_of_providers_cannot_move_the_cursor():
    provider = {"uuid": "u", "name": "host\x1b[2J", "root_provider_uuid": "u", "asked": 1, "free": 0}
    near_miss = {"message": "1 tree fails.", "providers": [provider]}
    document = {
        "trees_with_candidates": 0,
        "complete": False,
        "cause": {"message": "None is left."},
        "demands": [],
        "trees": [],
        "near_misses": [near_miss],
        "hints": [],
    }
    text = "\n".join(explanation_report(document).lines())
    assert "host?[2J" in text
    assert "hit its budget" in text
