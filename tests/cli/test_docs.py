"""The generated reference pages are current, and say what the code does."""

import re
from pathlib import Path

import click
import pytest
import yaml

from placement.api.routes import ROUTES
from placement.cli.docs import man, pages, written
from placement.cli.main import main
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


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TYPED = re.compile(r"(?:^ {4}|\$ |`|\| |&& |/)placement ((?:[a-z]+ ?)[^\n`#|>;]*)", re.MULTILINE)
ASKED = re.compile(r"\b(GET|POST|PUT|DELETE) +(/[\w/{}-]+)")


def unknown_words(command: str) -> list[str]:
    """Return the subcommand or the options that the command ``placement`` does not have."""
    found: click.Command | None = main
    words = command.split()
    while isinstance(found, click.Group) and words and re.fullmatch("[a-z][a-z-]*", words[0]):
        found = found.get_command(click.Context(main), words[0])
        if found is None:
            return [words[0]]
        words.pop(0)
    assert found is not None
    options = {"--help", *[option for each in found.params for option in each.opts]}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in options]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_shows_commands_and_routes_that_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    commands = {typed: unknown for typed in TYPED.findall(text) if (unknown := unknown_words(typed))}
    served = {(route.method, re.sub("<[^>]*>|{[^}]*}", "{}", route.path)) for route in ROUTES}
    asked = {(method, re.sub("{[^}]*}", "{}", path).rstrip("/") or "/") for method, path in ASKED.findall(text)}
    assert (commands, asked - served) == ({}, set())
