"""The examples of the pages about fair shares are read and run."""

import doctest
from dataclasses import replace
from pathlib import Path

from placement.allocators.fair_share.queues import Queue, tree_of
from placement.api.planner.fair_share import tree_json
from placement.cli.fair_share import tree_report
from placement.services.fair_share.shares import Reading, shares_of_reading
from placement.settings.planner.values import FairShareSettings
from tests.unit.test_planner_file import read

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "how-to" / "give-a-tenant-a-share.md"
LIBRARY = DOCS / "explanation" / "fair-shares.md"


def test_the_example_in_python_gives_what_it_shows() -> None:
    result = doctest.testfile(str(LIBRARY), module_relative=False)
    assert (result.failed, result.attempted) == (0, 6)


def test_the_sample_of_the_planner_file_can_be_used(tmp_path: Path) -> None:
    _, _, rest = PAGE.read_text().partition("```yaml\n")
    settings = read(tmp_path, rest.partition("```")[0]).fair_share
    assert settings.queues.weights["root/eng/prod"] == 4
    assert replace(settings, classes=FairShareSettings().classes).keep_s == FairShareSettings().keep_s


def test_the_tree_is_what_the_command_prints() -> None:
    queues = tree_of(
        [
            Queue("root/n1", (), ("p1",)),
            Queue("root/n2/n21", (), ("p21",)),
            Queue("root/n2/n22", (), ("p22",)),
        ]
    )
    settings = FairShareSettings(("VCPU", "PGPU"), "project", queues)
    usage = {"p1": {"PGPU": 5}, "p21": {"VCPU": 10}, "p22": {"PGPU": 4}}
    shares = shares_of_reading(Reading(usage, {"VCPU": 10, "PGPU": 10}), settings, age_s=0)
    printed = list(tree_report(tree_json(shares, settings)).lines())
    shown = "\n".join(f"    {line}".rstrip() for line in printed[2:-3])
    assert shown in PAGE.read_text()
