"""``placement planner import``: Volcano's documents, converted to the planner file: planner_import.yaml."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from placement.settings.planner.sections import load_planner
from tests.cli.commands import Command

TABLE = yaml.safe_load(Path(__file__).with_name("planner_import.yaml").read_text(encoding="utf-8"))
REMARK = "# Left out: "


@pytest.mark.parametrize("row", TABLE["imported"], ids=[row["says"] for row in TABLE["imported"]])
def test_a_document_becomes_a_planner_file_that_names_what_it_leaves_out(
    placement: Command, row: dict[str, Any]
) -> None:
    (placement.home / "volcano.yaml").write_text(row["document"])
    done = placement.run("planner", "import", "volcano.yaml")
    assert (done.returncode, done.stderr, yaml.safe_load(done.stdout)) == (0, "", row["gives"])
    remarks = [line.removeprefix(REMARK) for line in done.stdout.splitlines() if line.startswith(REMARK)]
    assert remarks == row.get("left_out", [])
    (placement.home / "planner.yaml").write_text(done.stdout)
    load_planner(placement.home / "planner.yaml")


TOO_DEEP = ["a: " + "[" * 2000, "This is not YAML: it nests too deeply."]


@pytest.mark.parametrize(("document", "reason"), [*TABLE["refused"], TOO_DEEP], ids=lambda text: text[:40])
def test_what_is_not_volcanos_or_would_be_refused_is_refused_with_the_reason(
    placement: Command, document: str, reason: str
) -> None:
    (placement.home / "volcano.yaml").write_text(document)
    done = placement.run("planner", "import", "volcano.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr
