"""Files mentioned in the documents exist: moving a file requires updating its mentions."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")])
CODE = [path for top in ("placement", "migrations", "tests", "etc") for path in (ROOT / top).rglob("*.py")]
MENTIONED = re.compile(r"`([\w/]+/\w+\.py)`")
LINKED = re.compile(r"\]\((?!https?:)([^)#\s]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_files_that_are_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [name for name in LINKED.findall(text) if not (document.parent / name).exists()]
    modules = [name for name in MENTIONED.findall(text) if not any(f"/{name}" in str(path) for path in CODE)]
    assert links + modules == []
