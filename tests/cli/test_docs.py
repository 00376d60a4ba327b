"""The generated reference pages are current, and say what the code does."""

import re
from pathlib import Path

import pytest
import yaml

from placement.cli.docs import man, pages, written
from placement.errors import ConfigurationError
from placement.settings.planner.keys import KEYS
from placement.settings.planner.sections import load_planner

ROOT = Path(__file__).parents[2]
PARENTS = sorted({key.path.rpartition(".")[0] for key in KEYS if not key.path.endswith("*")})
NO_KEY = "no-such-key"


def nested(path: list[str]) -> object:
    """Return a document with a key that does not exist below a path; what is below ``queues`` is a list."""
    if not path:
        return {NO_KEY: 1}
    below = [nested(path[2:])] if path[0] == "queues" else nested(path[1:])
    return {path[0]: below, **({"devices": "PGPU"} if path[0] == "flavors" and path[1:] == ["PGPU"] else {})}


def test_the_reference_pages_are_current() -> None:
    """If this fails: ``placement docs --output docs/reference``."""
    for name, text in written("markdown").items():
        assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == text, name


@pytest.mark.parametrize("parent", PARENTS)
def test_the_keys_below_a_key_of_the_planner_file_are_those_that_the_server_accepts(
    parent: str, tmp_path: Path
) -> None:
    """The error for an unknown key lists the known ones."""
    names = {"profiles": "PGPU", "fair_share": "root/a"}
    steps = parent.replace("*", names.get(parent.partition(".")[0], "a")).split(".")
    file = tmp_path / "planner.yaml"
    file.write_text(yaml.safe_dump(nested([step for step in steps if step])))
    with pytest.raises(ConfigurationError) as refused:
        load_planner(file)
    accepted = re.search(r"one of the keys ([\w, ]+), found", str(refused.value))
    assert accepted is not None
    depth = len(parent.split(".")) if parent else 0
    described = {key.path.split(".")[depth] for key in KEYS if key.path.startswith(f"{parent}." if parent else "")}
    same_as_above = {"projects", "guarantee", "deserved", "limit"} if parent == "fair_share.queues.*" else set()
    assert (described | same_as_above) - {"consumer_types"} == set(accepted[1].split(", "))


@pytest.mark.parametrize("page", [*pages()], ids=lambda page: page.name)
def test_a_man_page_has_no_line_that_man_would_take_for_a_request(page) -> None:
    requests = {line.split()[0] for line in man(page).splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi"}
