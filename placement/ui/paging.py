"""Paging through long lists: which page is requested, and the links to others."""

from dataclasses import dataclass
from urllib.parse import urlencode

from flask import Request

from placement.errors import Invalid

SIZE = 50
LAST = 100_000
"""Nobody turns that many pages; a search is the better way."""


@dataclass(frozen=True, slots=True)
class Paging:
    """A page of a list: ``number`` counts from 1; ``path`` and ``query`` are those of the request."""

    number: int
    path: str
    query: tuple[tuple[str, str], ...]
    size: int = SIZE

    @property
    def first(self) -> int:
        """How many rows precede this page."""
        return (self.number - 1) * self.size

    def url(self, number: int) -> str:
        """Return the link to another page of the same list."""
        others = [(name, value) for name, value in self.query if name != "page" and value]
        return f"{self.path}?{urlencode([*others, ('page', number)])}"


def paging_of(request: Request, *, size: int = SIZE) -> Paging:
    """Return the page that a request asks for with ``page``.

    Raises:
        Invalid: it is not a number from 1 to LAST.
    """
    text = request.args.get("page", "1")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= LAST):
        raise Invalid(f"page must be a number from 1 to {LAST}.")
    query = tuple(request.args.items(multi=True))
    return Paging(int(text), request.script_root + request.path, query, size)
