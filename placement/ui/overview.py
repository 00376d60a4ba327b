"""The first page: what the cloud has and what of it is in use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flask import Response

from placement.api.call import Call
from placement.api.planner.headroom import requests_of_flavors
from placement.errors import Invalid
from placement.services.console import overview as service
from placement.services.planner.headroom import Copies, Listing, RequestRoom, headrooms
from placement.ui.changes import shown_changes
from placement.ui.numbers import one_scale
from placement.ui.page import Page, show

MOST_FLAVORS = 50
HEADROOM = "placement:planner:headroom"


@dataclass(frozen=True, slots=True)
class FlavorRoom:
    """How many more of a flavor fit.

    Args:
        name, query: as in the planner file.
        copies: how many, in all.
        with_room: on how many trees.
        lacking: the classes that the other trees lack, and how many of them; most first.
        stranded: class -> how much is free on these.
    """

    name: str
    query: str
    copies: Copies
    with_room: int
    lacking: Sequence[tuple[tuple[str, ...], int]]
    stranded: Mapping[str, int]


def overview(call: Call) -> Response:
    """Show the whole cloud on a page."""
    locks = call.server.settings.planner.exclusive.values()
    cloud = service.overview(call.database, locks=tuple(locks))
    return show(
        "overview.html",
        cloud=cloud,
        scales=[
            one_scale([cloud.tree_stocks[tree.id] for tree in (*kind.fullest, *kind.emptiest)]) for kind in cloud.kinds
        ],
        at_least=service.AT_LEAST,
        flavors=_flavors(call),
        changes=shown_changes(call),
    )


def _flavors(call: Call) -> list[FlavorRoom] | None:
    """Return the room for the flavors of the planner file; None where there are none, or not for the caller."""
    flavors = dict(list(call.server.settings.planner.flavors.items())[:MOST_FLAVORS])
    if not flavors or not call.is_allowed(HEADROOM):
        return None
    try:
        requests, locks = requests_of_flavors(flavors), call.server.settings.locks_for_all
        found = headrooms(call.database, requests, Listing(models=False), locks=locks)
    except Invalid:
        return []
    return [_room(name, query, found.of[name]) for name, query in flavors.items()]


def _room(name: str, query: str, room: RequestRoom) -> FlavorRoom:
    found = room.found
    return FlavorRoom(name, query, room.copies, found.with_room, [*found.lacking.items()], found.stranded)


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
