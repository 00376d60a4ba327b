"""The documents: links and mentions lead somewhere, no page is long or winding, and programs can start."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "tests", "integrations", "api-ref")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *[path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")]])
CODE = [path for top in ("placement", "migrations", "tests", "etc") for path in (ROOT / top).rglob("*.py")]
SAMPLES = [path for top in ("etc", "debian", "devstack") for path in (ROOT / top).rglob("*") if path.is_file()]
MENTIONED = re.compile(r"`([\w/]+/\w+\.py)`")
LINKED = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
PAGE = re.compile(r"\bdocs/[\w/.-]+\.(?:md|svg)\b")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(document: Path, target: str, anchor: str) -> bool:
    path = (document.parent / target).resolve() if target else document
    return path.exists() and (not anchor or path.suffix != ".md" or anchor in anchors(path))


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_link_and_every_name_of_a_file_leads_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [link for link in LINKED.findall(text) if not leads_somewhere(document, *link)]
    modules = [name for name in MENTIONED.findall(text) if not any(f"/{name}" in str(path) for path in CODE)]
    assert (links, modules) == ([], [])


def test_code_and_samples_name_documents_that_are_there() -> None:
    names = {(named(path), name) for path in [*CODE, *SAMPLES] for name in PAGE.findall(path.read_text("utf-8"))}
    assert {(path, name) for path, name in names if not (ROOT / name).exists()} == set()


WORDS_OF_A_PAGE, WORDS_OF_A_SENTENCE = 1500, 25
NO_PROSE = re.compile(r"^```.*?^```$|^<!--.*?-->$|^(?: {4}|\||#)[^\n]*$", re.MULTILINE | re.DOTALL)


def sentence_lengths(text: str) -> list[int]:
    """Return the words of each sentence of a page's prose: paragraphs, items of lists and quotations."""
    prose = re.sub(r"\]\([^)]*\)", "]", NO_PROSE.sub("", text))
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[*>-]|\d+\.) )", prose)
    sentences = [each for paragraph in paragraphs for each in re.split(r"(?<=[.!?:])\s+", paragraph.strip())]
    return [len(re.findall(r"\w[\w'/.-]*", each)) for each in sentences if re.search(r"\w", each)]


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path.name != "CHANGELOG.md"], ids=named)
def test_a_page_is_short_and_so_are_its_sentences(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    lengths = sentence_lengths(text)
    average = sum(lengths) / max(len(lengths), 1)
    print(
        f"{named(document)}: {len(text.split())} words, {average:.1f} in a sentence, {max(lengths, default=0)} in one"
    )
    assert len(text.split()) <= WORDS_OF_A_PAGE
    assert average <= WORDS_OF_A_SENTENCE


MODULE = re.compile(r"python -m (tests[\w.]*\w)")
ENVIRONMENT = re.compile(r"tox -e ([\w,-]*\w)")
OPTION = re.compile(r"\[(\w+)\] ([a-z_]+)\b(?=[ `,.;:)=])")


def options_of_the_sample() -> dict[str, set[str]]:
    """Return the options that placement.conf knows, by section."""
    sections = re.split(r"^\[(\w+)\]$", (ROOT / "etc/placement/placement.conf").read_text("utf-8"), flags=re.MULTILINE)
    named = dict(zip(sections[1::2], sections[2::2], strict=True))
    return {name: set(re.findall(r"^#(\w+) =", text, re.MULTILINE)) for name, text in named.items()}


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path.name != "CHANGELOG.md"], ids=named)
def test_modules_environments_and_options_in_a_document_exist(document: Path) -> None:
    text, known = document.read_text(encoding="utf-8"), options_of_the_sample()
    places = {module: ROOT / module.replace(".", "/") for module in MODULE.findall(text)}
    modules = {
        m for m, path in places.items() if not path.with_suffix(".py").exists() and not (path / "__main__.py").exists()
    }
    described = (ROOT / "tox.ini").read_text(encoding="utf-8")
    named_environments = {name for names in ENVIRONMENT.findall(text) for name in names.split(",")}
    environments = {name for name in named_environments if name.islower() and f"[testenv:{name}]" not in described}
    options = {(section, name) for section, name in OPTION.findall(text) if name not in known.get(section, {name})}
    assert (modules, environments, options) == (set(), set(), set())


PROGRAMS = sorted(
    {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "tests").rglob("*.py")
        if '__name__ == "__main__"' in path.read_text("utf-8")
    }
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_tests_finds_what_it_imports(program: str) -> None:
    try:
        import_module(program)
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith(("placement", "tests")):
            raise
        pytest.skip(f"needs {missing.name}")
