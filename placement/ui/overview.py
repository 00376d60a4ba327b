"""The first page: what the cloud has and what of it is in use."""

from flask import Response

from placement.api.call import Call
from placement.ui.page import Page, show


def overview(_call: Call) -> Response:
    """Show the whole cloud on a page."""
    return show("overview.html")


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
