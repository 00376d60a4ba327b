"""The console as a Flask blueprint: its pages by path, the frame around them, its headers, and errors as pages."""

import logging
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Flask, Response, g, render_template, request, url_for
from jinja2 import StrictUndefined
from werkzeug.exceptions import HTTPException

from placement.api.call import Call, Server
from placement.api.errors import SENTENCES, log_unexpected, status_of
from placement.api.planner.explain_json import telling_steps
from placement.api.planner.journal import follow_changes
from placement.api.routing import View
from placement.auth.strategy import CONSOLE_PATH
from placement.errors import NotFound, PlacementError
from placement.logs import RationedLog
from placement.ui import cloud_map, consumers, overview, shares, tree, try_request
from placement.ui.changes import in_words, sees_journal
from placement.ui.consumers import PROJECT_RULE
from placement.ui.filters import (
    ago,
    amount,
    facts,
    in_units,
    named,
    number,
    owner_named,
    percent,
    timestamp,
    visible,
    within,
)
from placement.ui.page import HTML, Page, call_of, navigation
from placement.ui.security import allows, authorize, refuse_nul, secure
from placement.ui.static_files import install_static_files, packed

LOG = logging.getLogger(__name__)

PAGES: tuple[Page, ...] = tuple(
    page for module in (overview, cloud_map, tree, consumers, try_request, shares) for page in module.PAGES
)
"""All pages; those with a title appear in the navigation, in this order."""

LIVE = Page(path="/live", view=follow_changes, endpoint="live", rules=())
"""What pages follow to show themselves again; its view checks policy as the journal's does."""

START_PAGE = "overview"

FILTERS = (named, visible, within, number, amount, percent, timestamp, ago, in_units, facts, in_words, telling_steps)
"""What templates call by name."""


def install_console(app: Flask, server: Server) -> None:
    """Install the console below /ui in an application."""
    console = Blueprint("ui", __name__, url_prefix=CONSOLE_PATH, template_folder="templates")
    for page in (*PAGES, LIVE):
        console.add_url_rule(page.path, page.endpoint, _endpoint(server, page))
    install_static_files(app, console)
    console.add_url_rule("/<path:path>", "elsewhere", _no_such_page)
    console.after_request(secure)
    console.after_request(packed)
    log = RationedLog(LOG)
    console.register_error_handler(Exception, lambda error: _error_page(server, log, error))
    console.context_processor(lambda: frame(server))
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters.update({function.__name__: function for function in FILTERS})
    owners = server.settings.planner.names
    app.jinja_env.filters["project_named"] = partial(owner_named, owners.projects)
    app.jinja_env.filters["user_named"] = partial(owner_named, owners.users)
    app.register_blueprint(console)


def _endpoint(server: Server, page: Page) -> View:
    def serve(**parts: str) -> Response:
        call = call_of(server)
        g.page, g.began = page, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        leads_to = elsewhere(call) if page.endpoint == START_PAGE and not allows(call, page.rules) else None
        if leads_to is not None:
            return Response(status=303, headers={"location": leads_to})
        authorize(call, page.rules)
        refuse_nul(request)
        return page.view(call, **parts)

    return serve


def _no_such_page(path: str) -> Response:
    raise NotFound(f"The console has no page {path}.")


def _error_page(server: Server, log: RationedLog, error: Exception) -> Response:
    status, message = HTTPStatus.INTERNAL_SERVER_ERROR, ""
    if isinstance(error, PlacementError):
        status, message = status_of(error), error.message
    elif isinstance(error, HTTPException):
        status, message = HTTPStatus(error.code or 500), error.description or ""
    else:
        log_unexpected(log, error)
    values: dict[str, Any] = {
        "status": int(status),
        "title": status.phrase,
        "sentence": SENTENCES.get(status, ""),
        "message": message,
        "strategy": server.settings.auth_strategy,
        "request_id": g.get("request_id", ""),
    }
    return Response(render_template("ui/error.html", **values), status, content_type=HTML)


def frame(server: Server) -> dict[str, Any]:
    """Return the variables that every template has."""
    page: Page | None = g.get("page")
    identity = g.get("identity")
    links = [] if identity is None else navigation(PAGES, call_of(server))
    return {
        "navigation": links,
        "here": page and (page.below or page.endpoint),
        "region": server.settings.ui.title,
        "colour": server.settings.ui.colour,
        "who": identity,
        "searches": any(link.endpoint in ("providers", "consumers") for link in links),
        "sees_map": any(link.endpoint == "map" for link in links),
        "now": datetime.now(UTC),
        "began": g.get("began", ""),
        "is_live": identity is not None and sees_journal(call_of(server)),
    }


def elsewhere(call: Call) -> str | None:
    """Return where to send a caller who may not see the overview: to its own project, or to any other page."""
    project = call.identity.project_id
    if project and call.is_allowed(PROJECT_RULE, project_id=project):
        return url_for("ui.project", id=project)
    opened = navigation(PAGES, call)
    return url_for(f"ui.{opened[0].endpoint}") if opened else None
