"""The pages of the console: what defines one, how it is rendered, paging through long lists, and lists as files."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Request, Response, g, render_template, request

from placement.api.call import Call, Server
from placement.api.routing import View
from placement.api.versions import MAXIMUM
from placement.errors import Invalid
from placement.ui.security import allows

HTML = "text/html; charset=utf-8"
PAGE_SIZE = 50
MAX_CSV_ROWS = 10_000

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet would run a text that begins so, and anybody may choose a name."""

LAST_PAGE = 100_000
"""Nobody turns that many pages; a search is the better way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page and its preconditions.

    The caller must pass all ``rules``, those of the API requests that return the same data, and one of ``any_of``; the
    view decides which of these matters. Without a title it is not in the navigation, but may be ``below`` an entry
    there.
    """

    path: str
    view: View
    rules: tuple[str, ...]
    endpoint: str
    any_of: tuple[str, ...] = ()
    title: str | None = None
    below: str | None = None


def call_of(server: Server) -> Call:
    """Return the current request as views see it."""
    return Call(server, request, MAXIMUM, g.identity)


def show(template: str, *, status: int = 200, **values: Any) -> Response:
    """Answer with a page rendered from a template of ``ui/``."""
    return Response(render_template(f"ui/{template}", **values), status, content_type=HTML)


def navigation(pages: tuple[Page, ...], call: Call) -> list[Page]:
    """Return the pages in the navigation that the caller may open."""
    titled = [page for page in pages if page.title is not None and allows(call, page.rules)]
    return [page for page in titled if not page.any_of or any(map(call.is_allowed, page.any_of))]


@dataclass(frozen=True, slots=True)
class Paging:
    """A page of a list: ``number`` counts from 1; ``path`` and ``query`` are those of the request."""

    number: int
    path: str
    query: tuple[tuple[str, str], ...]
    size: int = PAGE_SIZE

    @property
    def first(self) -> int:
        """How many rows precede this page."""
        return (self.number - 1) * self.size

    def url(self, number: int) -> str:
        """Return the link to another page of the same list."""
        return self._url("page", number)

    @property
    def csv_url(self) -> str:
        """The link to the whole list as a CSV file."""
        return self._url("format", "csv")

    def sorted_by(self, order: str) -> str:
        """Return the link to the same list in another order."""
        return self._url("sort", order)

    def _url(self, key: str, value: object) -> str:
        parameters = [(name, text) for name, text in self.query if name not in ("page", key) and text]
        return f"{self.path}?{urlencode([*parameters, (key, value)])}"


def page_number(request: Request) -> int:
    """Return the number in ``page``, from 1 to LAST_PAGE; else raise Invalid."""
    text = request.args.get("page", "1")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= LAST_PAGE):
        raise Invalid(f"page must be a number from 1 to {LAST_PAGE}.")
    return int(text)


def paging_of(request: Request, *, size: int = PAGE_SIZE) -> Paging:
    """Return the page that a request asks for with ``page``.

    Raises:
        Invalid: it is not a number from 1 to LAST_PAGE.
    """
    query = tuple(request.args.items(multi=True))
    return Paging(page_number(request), request.script_root + request.path, query, size)


def wants_csv(request: Request) -> bool:
    """Tell whether a list is asked for as a file."""
    return request.args.get("format") == "csv"


def csv_file(name: str, rows: Iterable[Mapping[str, object]]) -> Response:
    """Answer with a CSV file; its columns are all keys of the rows. Texts that look like formulas are quoted."""
    listed = [{key: _harmless(value) for key, value in row.items()} for row in rows]
    text = csv_text(list(dict.fromkeys(key for row in listed for key in row)), listed)
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response(text, content_type="text/csv; charset=utf-8", headers=headers)


def csv_text(header: Sequence[str], rows: Iterable[Mapping[str, object]], *, with_header: bool = True) -> str:
    """Return rows as CSV."""
    written = io.StringIO()
    writer = csv.DictWriter(written, header, lineterminator="\n")
    if with_header:
        writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
