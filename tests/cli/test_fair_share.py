"""``placement fair-share`` prints the tree with bars, from the database or from a server."""

import json
import re

import pytest

from placement.cli.fair_share import tree_report
from tests.cli.commands import Command
from tests.small_clouds import Inventory, Node, load

PLANNER = """
fair_share:
  classes: [VCPU]
  tree:
    root/eng: {weight: 3}
    root/eng/dev: {weight: 2, projects: [p1]}
    root/sci: {projects: [p2]}
"""


@pytest.fixture
def cloud(placement: Command) -> str:
    """The default database, a quarter of which is held by a consumer without a project."""
    return placement.with_database(
        lambda database: load(database, {1: Node(1, None, 1, {"VCPU": Inventory(8, used=2)})})
    )


def test_the_tree_of_the_planner_file_is_printed_with_bars(placement: Command, cloud: str) -> None:
    done = placement.run("fair-share", *placement.configured(cloud, PLANNER))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "Free: VCPU 6 of 8."
    assert " ".join(lines[2].split()) == "queue holds class amount entitled over gives weight share state"
    assert lines[4].split() == ["root", "25%", "#####...............", "VCPU", "2", "8", "-6", "VCPU"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[5:] if line}
    assert rows["eng"] == ["0%", "....................", "3", "0", "blocked"]
    assert rows["default"] == ["25%", "#####...............", "VCPU", "2", "8", "-6", "VCPU", "1", "0.25", "VCPU"]
    assert rows["unknown"] == ["25%", "#####...............", "VCPU", "2", "8", "-6", "VCPU", "1", "0.25", "VCPU"]
    assert [line.split()[0] for line in lines[4:12]] == ["root", "default", "unknown", "eng", "dev", "p1", "sci", "p2"]


def test_amounts_have_the_units_of_the_console(placement: Command, cloud: str) -> None:
    document = json.loads(placement.run("fair-share", "--json").stdout)
    root = document["nodes"][0]
    root["under"], root["over"] = {"MEMORY_MB": 1048576.4}, {"VCPU": 2.54321}
    assert "-1 TiB MEMORY_MB, +2.5 VCPU" in "\n".join(tree_report(document).lines())


def test_projects_go_by_their_names_and_ids_on_demand(placement: Command, cloud: str) -> None:
    options = placement.configured(cloud, f"{PLANNER}names: {{projects: {{p1: research}}}}\n")
    printed = placement.run("fair-share", *options).stdout
    assert re.search(r"^ +research .* p1$", printed, re.MULTILINE)
    chosen = placement.run("fair-share", *options, "--columns", "queue,id").stdout
    assert re.search(r"^ +research +p1$", chosen, re.MULTILINE)


def test_without_a_planner_file_all_projects_are_equal(placement: Command, cloud: str) -> None:
    done = placement.run("fair-share", "--json")
    document = json.loads(done.stdout)
    assert document["classes"] == ["VCPU", "MEMORY_MB"]
    assert [node["path"] for node in document["nodes"]][:2] == ["root", "root/default"]


def node(path: str, **more: object) -> dict[str, object]:
    usage = {"VCPU": 0}
    amounts = {"entitled": {"VCPU": 1}, "over": {"VCPU": 2}, "under": {}, "gives": {"VCPU": 2}}
    return {
        "path": path,
        "weight": 1.0,
        "usage": usage,
        "held": 0.0,
        "weighted_share": 0.0,
        "dominant": None,
        "blocked": False,
        **amounts,
        **more,
    }


def test_bars_end_where_there_is_no_more_and_names_cannot_move_the_cursor() -> None:
    nodes = [
        node("root"),
        node("root/a", held=1.5, usage={"VCPU": 3}, blocked=True),
        node("root/b", held=0.001, usage={"VCPU": 1}),
        node("root/c", project_id="p\x1b[2J"),
    ]
    document = {"partition": None, "classes": ["VCPU"], "free": {"VCPU": -1}, "totals": {"VCPU": 2}, "nodes": nodes}
    lines = list(tree_report(document).lines())
    assert lines[0] == "Free: VCPU -1 of 2."
    assert lines[5].split() == ["a", "150%", "#" * 20, "VCPU", "3", "1", "+2", "VCPU", "2", "VCPU", "1", "0", "blocked"]
    assert lines[6].split()[2] == "#" + "." * 19
    assert "p?[2J" in lines[7]
