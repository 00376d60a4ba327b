"""The first page: what the cloud has and what of it is in use."""

from flask import Response

from placement.api.call import Call
from placement.services.console import overview as service
from placement.ui.changes import shown_changes
from placement.ui.page import Page, show


def overview(call: Call) -> Response:
    """Show the whole cloud on a page."""
    locks = call.server.settings.planner.exclusive.values()
    cloud = service.overview(call.database, locks=tuple(locks))
    return show("overview.html", cloud=cloud, at_least=service.AT_LEAST, changes=shown_changes(call))


PAGES = (
    Page(
        path="/",
        view=overview,
        endpoint="overview",
        title="Overview",
        rules=(
            "placement:resource_providers:list",
            "placement:resource_providers:inventories:list",
            "placement:resource_providers:usages",
        ),
    ),
)
