"""The overview: what the cloud has and how much of it is in use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flask import Response

from placement.api.call import Call
from placement.api.planner.headroom import requests_of_flavors
from placement.errors import Invalid
from placement.services.console import overview as service
from placement.services.planner.request_rooms import Copies, Listing, RequestRoom, headrooms
from placement.ui.changes import shown_changes
from placement.ui.numbers import one_scale
from placement.ui.page import Page, show

MAX_FLAVORS = 50
HEADROOM = "placement:planner:headroom"


@dataclass(frozen=True, slots=True)
class FlavorRoom:
    """How many more copies of a flavor fit.

    Args:
        name, query: as in the planner file.
        copies: the number of copies.
        with_room: the number of trees that have room.
        lacking: the classes that the other trees lack, and how many trees lack them; most first.
        stranded: class -> how much is free on trees without room.
    """

    name: str
    query: str
    copies: Copies
    with_room: int
    lacking: Sequence[tuple[tuple[str, ...], int]]
    stranded: Mapping[str, int]


def overview(call: Call) -> Response:
    """Show the whole cloud on one page."""
    locks = call.server.settings.planner.exclusive.values()
    cloud = service.overview(call.database, locks=tuple(locks), cache=call.server.cloud_cache)
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
    """Return the room for the planner file's flavors; None if there are none or the caller may not see it."""
    flavors = dict(list(call.server.settings.planner.flavors.items())[:MAX_FLAVORS])
    if not flavors or not call.is_allowed(HEADROOM):
        return None
    try:
        requests, locks = requests_of_flavors(flavors), call.server.settings.locks_for_all
        listing, cache = Listing(models=False), call.server.cloud_cache
        found = headrooms(call.database, requests, listing, locks=locks, cache=cache)
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
