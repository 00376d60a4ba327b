"""The frame around every page: the region, the visitor, the time, and the navigation."""

from datetime import UTC, datetime
from typing import Any

from flask import g, request, url_for

from placement.api.call import Call, Server
from placement.ui.page import Page, call_of, navigation
from placement.ui.projects import PROJECT_RULE

REFRESH_S = 10
START = "overview"


def frame(server: Server, pages: tuple[Page, ...]) -> dict[str, Any]:
    """Return the variables that every template has."""
    page: Page | None = g.get("page")
    identity = g.get("identity")
    links = [] if identity is None else navigation(pages, call_of(server))
    return {
        "navigation": links,
        "here": page and (page.below or page.endpoint),
        "region": server.settings.ui.title,
        "colour": server.settings.ui.colour,
        "who": identity,
        "searches": any(link.endpoint in ("providers", "consumers") for link in links),
        "sees_map": any(link.endpoint == "map" for link in links),
        "now": datetime.now(UTC),
        "refresh_s": REFRESH_S if request.args.get("refresh") == str(REFRESH_S) else 0,
    }


def elsewhere(pages: tuple[Page, ...], call: Call) -> str | None:
    """Return where to send a caller who may not see the overview: to its own project, or to any other page."""
    project = call.identity.project_id
    if project and call.is_allowed(PROJECT_RULE, project_id=project):
        return url_for("ui.project", id=project)
    others = navigation(pages, call)
    return url_for(f"ui.{others[0].endpoint}") if others else None
