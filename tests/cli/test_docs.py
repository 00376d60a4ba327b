"""The generated reference pages are current, and say what the code does."""

import ast
from pathlib import Path

import pytest

from placement.cli.docs import man, pages, written
from placement.domain.flavor_texts import NUMBERS
from placement.settings.planner.keys import KEYS
from placement.settings.planner.sections import SECTIONS

ROOT = Path(__file__).parents[2]
READERS = ("devices", "fair_share", "fragmentation", "profiles", "sections")


def words_of_readers() -> set[str]:
    """Return the keys that the readers of the planner file accept: the texts in their calls of ``fields``."""
    words = {*NUMBERS, *SECTIONS, "consumer_types", "projects"}
    for name in READERS:
        for node in ast.walk(ast.parse((ROOT / f"placement/settings/planner/{name}.py").read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="fields"), args=arguments):
                    words |= {each.value for each in arguments if isinstance(each, ast.Constant)}
                case ast.Assign(targets=[ast.Name(id="keys" | "_PROMISES")], value=ast.Tuple(elts=elements)):
                    words |= {each.value for each in elements if isinstance(each, ast.Constant)}
    return words


def test_the_reference_pages_are_current() -> None:
    """If this fails: ``placement docs --output docs/reference``."""
    for name, text in written("markdown").items():
        assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == text, name


def test_every_key_of_the_planner_file_has_its_line() -> None:
    described = {part for key in KEYS for part in key.path.split(".")} - {"*"}
    assert described == words_of_readers()


@pytest.mark.parametrize("page", [*pages()], ids=lambda page: page.name)
def test_a_man_page_has_no_line_that_man_would_take_for_a_request(page) -> None:
    requests = {line.split()[0] for line in man(page).splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi"}
