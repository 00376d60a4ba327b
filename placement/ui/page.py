"""What a page of the console is, and how it is answered."""

from dataclasses import dataclass
from typing import Any

from flask import Response, g, render_template, request

from placement.api.call import Call, Server
from placement.api.routing import View
from placement.api.versions import MAXIMUM
from placement.ui.security import allows

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page and what must hold before it is shown.

    Args:
        path: where it is found below /ui, in werkzeug's notation.
        view: called with the Call and the parts of the path.
        rules: the policy rules of the API requests that tell the same; the caller must pass them all.
        any_of: of these the caller must pass one, if there are any; which of them means what is the view's business.
        endpoint: its name for ``url_for("ui.NAME")``.
        title: its name in the navigation; None keeps it out.
        below: the endpoint of the page it belongs to in the navigation, if it is not there itself.
    """

    path: str
    view: View
    rules: tuple[str, ...]
    endpoint: str
    any_of: tuple[str, ...] = ()
    title: str | None = None
    below: str | None = None


def call_of(server: Server) -> Call:
    """Return the request being served, as the views see it."""
    return Call(server, request, MAXIMUM, g.identity)


def show(template: str, *, status: int = 200, **values: Any) -> Response:
    """Answer with a page made from a template of ``ui/``."""
    return Response(render_template(f"ui/{template}", **values), status, content_type=HTML)


def navigation(pages: tuple[Page, ...], call: Call) -> list[Page]:
    """Return the pages that the caller may open, for the links on top of each."""
    return [page for page in pages if page.title is not None and _opens(page, call)]


def _opens(page: Page, call: Call) -> bool:
    one_of = not page.any_of or any(call.is_allowed(rule) for rule in page.any_of)
    return one_of and allows(call, page.rules)
