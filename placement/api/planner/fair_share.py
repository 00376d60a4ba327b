"""/planner/v1/fair-share: the shares of queues, who is next, what each would get, and who should give back."""

from collections.abc import Sequence
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.planner.candidates import options_for
from placement.api.planner.fair_share_bodies import FILL, ORDER, RECLAIM, member_of, options_of, wish_of, wishes_of
from placement.api.planner.fair_share_json import giving_json, named, room_json, tree_json, turn_json
from placement.api.planner.index import PATH
from placement.api.planner.request_document import ignored_in, planner_request
from placement.api.routing import Route
from placement.services.fair_share import giving_back
from placement.services.fair_share import shares as service
from placement.services.fair_share.emptied_trees import RoomWanted
from placement.services.fair_share.room_on_a_host import RoomOnHost, room_for
from placement.services.fair_share.shares import Wish
from placement.settings.planner.values import FairShareSettings

RULE = "placement:planner:fair_share"


def show_tree(call: Call) -> Response:
    """Return the shares of all nodes; callers restricted to their project see the nodes on the path to it."""
    own = visible_path(call)
    settings = _settings(call)
    shares = service.all_shares(call.database, call.server.usage_cache)
    return call.json(tree_json(shares, settings, own))


def visible_path(call: Call) -> str | None:
    """Return the leaf whose path from the root the caller may see, or None if it may see everything.

    Raises:
        Forbidden: it may see nothing.
    """
    if call.is_allowed(f"{RULE}:show_all"):
        return None
    project, settings = call.identity.project_id, _settings(call)
    # In a tree of consumer types, no leaf belongs to a single project.
    call.authorize(f"{RULE}:show" if settings.leaves == "project" else f"{RULE}:show_all", project_id=project)
    return settings.queues.path_of(project or "")


def order_pending(call: Call) -> Response:
    """Return who waits, in the order of service, and why."""
    body, settings = call.document(ORDER), _settings(call)
    wishes = wishes_of(body["pending"], call.server.settings.planner, "pending") if "pending" in body else None
    order = service.order(call.database, call.server.usage_cache, wishes)
    turns = [turn_json(turn, order.members, settings) for turn in order.turns]
    return call.json({"age_s": round(order.age_s, 3), "order": turns})


def fill_pending(call: Call) -> Response:
    """Return what each waiting queue would get of the free resources."""
    body, settings = call.document(FILL), _settings(call)
    filled = service.fill(
        call.database, call.server.usage_cache, wishes_of(body["pending"], call.server.settings.planner, "pending")
    )
    portions = [
        {
            **named(portion.member, settings),
            "served": list(portion.served),
            "given": portion.given,
            "share": portion.node.share,
            "blocked": portion.node.is_blocked,
        }
        for portion in filled.portions
    ]
    return call.json(
        {"age_s": round(filled.age_s, 3), "complete": filled.complete, "portions": portions, "order": filled.order}
    )


def reclaim(call: Call) -> Response:
    """Return the consumers that should give back what they hold, least valuable first."""
    body, settings = call.document(RECLAIM), _settings(call)
    wishes = wishes_of(body.get("pending", ()), call.server.settings.planner, "pending")
    if "request" in body:
        ignored = ignored_in(call.server.settings.planner, body["request"])
        room = room_json(_room(call, body, wishes), settings)
        return call.json({**room, **({"ignored": ignored} if ignored else {})})
    claimant = wish_of(body["claimant"], call.server.settings.planner, "claimant")
    claim = giving_back.reclaim_of(call.database, settings, claimant, wishes)
    reclaimed = giving_back.reclaim(call.database, settings, claim, options_of(body))
    return call.json(giving_json(reclaimed.giving, reclaimed.members, settings))


def _room(call: Call, body: dict[str, Any], wishes: Sequence[Wish]) -> RoomOnHost:
    """Return which consumers would make room for a request, and on which host."""
    settings = _settings(call)
    request = planner_request(body["request"], call.server.settings.planner)
    wanted = RoomWanted(request, options_for(call, body["request"]))
    member = member_of(body["claimant"], settings, "claimant")
    return room_for(call.database, settings, wanted, member=member, wishes=wishes, options=options_of(body))


def _settings(call: Call) -> FairShareSettings:
    return call.server.settings.planner.fair_share


ROUTES = (
    # Two rules decide how much the caller may see, so the view checks policy itself.
    Route("GET", f"{PATH}/fair-share", show_tree, answers_json=True),
    Route("POST", f"{PATH}/fair-share/order", order_pending, rule=f"{RULE}:order", answers_json=True, body=ORDER),
    Route("POST", f"{PATH}/fair-share/fill", fill_pending, rule=f"{RULE}:fill", answers_json=True, body=FILL),
    Route("POST", f"{PATH}/fair-share/reclaim", reclaim, rule=f"{RULE}:reclaim", answers_json=True, body=RECLAIM),
)
