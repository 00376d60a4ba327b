"""A visitor of the console without a browser: opens pages, and inspects their links and text."""

from collections import defaultdict
from html.parser import HTMLParser
from urllib.parse import urljoin

from flask import Flask
from werkzeug.test import TestResponse

HEADINGS = ("h1", "h2", "h3")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Document(HTMLParser):
    """A parsed page: its tags with their attributes, its text by heading, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._heading = ""
        self._cells: dict[str, list[list[str]]] = defaultdict(list)
        self._links: dict[str, list[str]] = defaultdict(list)
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in HEADINGS:
            self._heading = ""
        elif tag == "tr":
            self._cells[self._heading].append([])
        elif tag in ("td", "th"):
            self._cells[self._heading][-1].append("")
        elif tag == "a" and "li" in self.open:
            self._links[self._heading].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> is out of place"

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._note(" ".join(data.split()))

    def _note(self, words: str) -> None:
        self.words.append(words)
        if self.open[-1] in HEADINGS:
            self._heading += words
        elif "td" in self.open or "th" in self.open:
            cells = self._cells[self._heading][-1]
            cells[-1] = f"{cells[-1]} {words}".strip()
        elif "a" in self.open and "li" in self.open:
            self._links[self._heading][-1] = f"{self._links[self._heading][-1]} {words}".strip()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def table(self, heading: str) -> dict[str, list[str]]:
        """Return the cells of the rows below a heading by the first cell of each, without the header row."""
        return {row[0]: row[1:] for row in self.cells(heading)}

    def cells(self, heading: str) -> list[list[str]]:
        return self._cells[heading][1:]

    def items(self, heading: str) -> list[str]:
        """Return the links in the lists below a heading."""
        return self._links[heading]

    def links(self, *names: str) -> list[str]:
        """Return the addresses in attributes of these names; by default, of links and forms."""
        wanted = names or ("href", "src", "action")
        return [value for _, attributes in self.tags for name in wanted if (value := attributes.get(name))]


class Visitor:
    """Opens pages of an application, mounted with or without a prefix."""

    def __init__(self, app: Flask, *, prefix: str = "", headers: dict[str, str] | None = None) -> None:
        self.app = app
        self.prefix = prefix
        self.headers = headers or {}
        self._client = app.test_client()

    def open(self, path: str, **options) -> TestResponse:
        """Request a path below the prefix."""
        options.setdefault("headers", self.headers)
        # Buffered, because a served file stays open until the answer has been read.
        return self._client.open(path, environ_overrides={"SCRIPT_NAME": self.prefix}, buffered=True, **options)

    def page(self, path: str) -> Document:
        response = self.open(path)
        assert response.status_code == 200, response.text
        assert response.mimetype == "text/html"
        return Document(response.text)

    def follow(self, link: str, *, seen_at: str) -> TestResponse:
        """Follow a link, like a browser that sees it on the page at ``seen_at``."""
        target = urljoin(f"{self.prefix}{seen_at}", link)
        assert target.startswith(self.prefix), f"{link} leads away from {self.prefix}"
        return self.open(target.removeprefix(self.prefix))
