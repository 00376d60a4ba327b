"""The global search: redirects to the page of what has the identifier or name, else to a list of matches."""

from flask import Response, url_for

from placement.api.call import Call
from placement.services.console.overview import known_as
from placement.ui.consumers import CONSUMER_RULES, PROJECT_RULE
from placement.ui.page import Page, show
from placement.ui.security import allows
from placement.ui.tree import LIST_RULES, PROVIDER_RULES

ANY_OF = ("placement:resource_providers:list", "placement:allocations:list")


def search(call: Call) -> Response:
    """Redirect to what is searched for; without a search text, show the form."""
    if not any(call.is_allowed(rule) for rule in ANY_OF):
        call.authorize(ANY_OF[0])
    text = call.request.args.get("q", "").strip()
    return Response(status=303, headers={"location": _best_match(call, text)}) if text else show("search.html")


def _best_match(call: Call, text: str) -> str:
    """Return the address of the best match that the caller may see."""
    bearers = known_as(call.database, text)
    named = call.server.settings.planner.names.project_id(text)
    project = bearers.project or (named if named != text else None)
    if bearers.provider and allows(call, PROVIDER_RULES):
        return url_for("ui.provider", uuid=bearers.provider)
    if bearers.consumer and allows(call, CONSUMER_RULES):
        return url_for("ui.consumer", uuid=bearers.consumer)
    if project and call.is_allowed(PROJECT_RULE, project_id=project):
        return url_for("ui.project", id=project)
    return url_for("ui.providers" if allows(call, LIST_RULES) else "ui.consumers", q=text)


PAGES = (Page(path="/search", view=search, endpoint="search", rules=(), any_of=ANY_OF),)
