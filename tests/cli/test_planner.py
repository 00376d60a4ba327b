"""``placement planner check`` shows what a planner file means, before a server reads it."""

from pathlib import Path

import pytest

from tests.cli.commands import Command

SAMPLE = Path(__file__).parents[2] / "etc/placement/planner.yaml"


def test_the_sample_is_valid(placement: Command) -> None:
    found = placement.process("planner", "check", str(SAMPLE))
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(f"{SAMPLE} is valid.\n  profiles: default")


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_file_is_the_defaults(placement: Command, text: str) -> None:
    (placement.home / "planner.yaml").write_text(text)
    found = placement.run("planner", "check", "planner.yaml")
    assert "planner.yaml is empty: the defaults are in force." in found.stdout
    assert "numa (HW_NUMA_ROOT)" in found.stdout


def test_without_a_name_it_is_the_file_that_the_server_reads(placement: Command) -> None:
    assert placement.run("planner", "check").stdout == "There is no planner file: the defaults are in force.\n"
    options = placement.configured("sqlite://", "levels:\n  numa: HW_NUMA_ROOT\n")
    assert f"{placement.home}/planner.yaml is valid." in placement.run("planner", "check", *options).stdout
    placement.configured("sqlite://", "levels: 1\n")
    assert placement.run("planner", "check", *options).returncode == 1


def test_names_are_imported_from_keystones_lists(placement: Command) -> None:
    (placement.home / "projects.json").write_text('[{"ID": "1f0c", "Name": "research"}, {"ID": "3c2b", "Name": "Zoë"}]')
    (placement.home / "users.json").write_text('[{"ID": "0a9b", "Name": "ann"}]')
    done = placement.run("names", "import", "--projects", "projects.json", "--users", "users.json")
    assert done.stdout == "names:\n  projects:\n    1f0c: research\n    3c2b: Zoë\n  users:\n    0a9b: ann\n"
    (placement.home / "names.yaml").write_text(done.stdout)
    (placement.home / "planner.yaml").write_text("names: names.yaml\n")
    assert "names: 2 projects, 1 users" in placement.run("planner", "check", "planner.yaml").stdout
