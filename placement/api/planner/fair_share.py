"""/planner/v1/fair-share: the shares of queues, who is next, what each would get, and who should give back."""

from collections import abc
from collections.abc import Sequence
from typing import Any

from flask import Response

from placement.allocators.fair_share.order import Turn
from placement.allocators.fair_share.reclaim import Giving
from placement.allocators.fair_share.state import NodeShare
from placement.api.allocations import CONSUMER_TYPE, OWNER_ID, UUID_KEY
from placement.api.call import Call
from placement.api.fields import MAX_COLUMN_VALUE, UUID, Array, Map, Object, flag, integer, number
from placement.api.planner.candidates import INLINE_PROFILE, allocation_request, options_for
from placement.api.planner.request_document import ignored_in, planner_request
from placement.api.planner.request_fields import REQUEST, RESOURCE_NAME, Quantity
from placement.api.routing import planner_route
from placement.domain.names import both_spellings
from placement.errors import InvalidAt
from placement.services.fair_share import giving_back
from placement.services.fair_share import shares as service
from placement.services.fair_share.gate import Terms, UnfairClaim, unfair_claims
from placement.services.fair_share.giving_back import ReclaimOptions
from placement.services.fair_share.room_search import room_for
from placement.services.fair_share.shares import Shares, Wish
from placement.services.planner.gang import ClaimMember
from placement.settings.planner.values import FairShareSettings, PlannerSettings

MAX_TASKS = 10_000
_AMOUNT = Quantity(minimum=1, maximum=MAX_COLUMN_VALUE)


QUEUE = "[^/]+(/[^/]+)*"


_QUEUE = {"project_id?": OWNER_ID, "consumer_type?": CONSUMER_TYPE}
PENDING = Object(
    _QUEUE | {"resources": Map(RESOURCE_NAME, _AMOUNT, smallest=1), "count?": integer(minimum=1, maximum=MAX_TASKS)}
)
"""What a project waits for (a consumer type, if the tree's leaves are types): ``count`` times ``resources``."""
CLAIMANT = Object(_QUEUE | {"resources?": Map(RESOURCE_NAME, _AMOUNT, smallest=1)})
"""Who claims what; ``request`` may state the resources instead."""

ORDER = Object({"pending?": Array(PENDING)})
"""Without ``pending``, every queue is assumed to want more of what it uses."""
FILL = Object({"pending": Array(PENDING, shortest=1)})
RECLAIM = Object(
    {
        "claimant": CLAIMANT,
        "request?": REQUEST,
        "pending?": Array(PENDING),
        "values?": Map(UUID_KEY, number()),
        "keep?": Array(UUID),
        "priority?": number(),
    }
)
FAIR_SHARE_TERMS = Object(
    {"enforce": flag(default=None), "pending?": Array(PENDING), "limits?": Map(QUEUE, number(minimum=0, maximum=1))}
)
"""Whether to enforce fair shares, who else waits, and the largest part of any class that queues may hold."""


def wishes_of(entries: Sequence[dict[str, Any]], planner: PlannerSettings, *where: str) -> list[Wish]:
    """Return the wishes in a list that stands at ``where`` in the body; InvalidAt for what the tree of shares lacks."""
    return [wish_of(entry, planner, *where, position) for position, entry in enumerate(entries)]


def wish_of(entry: dict[str, Any], planner: PlannerSettings, *where: str | int) -> Wish:
    """Return the wish in one entry; InvalidAt as ``wishes_of``."""
    member = member_of(entry, planner.fair_share, *where)
    if "resources" not in entry:
        raise InvalidAt(where, "'resources' is a required property")
    resources = planner.devices.amounts_by_class(entry["resources"], (*where, "resources"))
    if max(resources.values()) > MAX_COLUMN_VALUE:
        raise InvalidAt((*where, "resources"), f"An amount is above {MAX_COLUMN_VALUE}.")
    return Wish(member, resources, entry.get("count", 1), where)


def options_of(body: dict[str, Any]) -> ReclaimOptions:
    """Return which consumers may be told to give back, and what they are worth."""
    written = body.get("values", {})
    values = {consumer.lower(): value for consumer, value in written.items()} | written
    return ReclaimOptions(values=values, keep=both_spellings(body.get("keep", ())), priority=body.get("priority"))


def member_of(entry: dict[str, Any], settings: FairShareSettings, *where: str | int) -> str:
    """Return the leaf that an entry names, a project or a consumer type; InvalidAt as ``wishes_of``."""
    key = "project_id" if settings.leaves == "project" else "consumer_type"
    conflicting = {"project_id", "consumer_type"} - {key}
    if key not in entry:
        raise InvalidAt(where, f"{key!r} is a required property: it identifies the leaves of this server's tree.")
    for name in conflicting & entry.keys():
        raise InvalidAt((*where, name), f"The leaves of this server's tree are identified by {key!r}.")
    member: str = entry[key]
    return member


def unfair_members(
    call: Call, body: abc.Mapping[str, Any], members: Sequence[ClaimMember]
) -> abc.Mapping[str, UnfairClaim]:
    """Return, by uuid of the consumer, why the terms of a claim refuse members; InvalidAt for unknown names."""
    entry = body["fair_share"]
    wishes = wishes_of(entry.get("pending", ()), call.server.settings.planner, "fair_share", "pending")
    terms = Terms(wishes, entry.get("limits"), whole=body.get("all_or_nothing", True), where=("fair_share",))
    return unfair_claims(call.database, call.server.usage_cache, members, terms)


MAX_LEVELS = 100
"""How many deciding pairs of queues to show."""


def tree_json(shares: Shares, settings: FairShareSettings, own: str | None = None) -> dict[str, Any]:
    """Return a tree as JSON; with ``own``, only the nodes on the path to it."""
    nodes = [node for node in shares.nodes if own is None or f"{own}/".startswith(f"{node.path}/")]
    return {
        "age_s": round(shares.age_s, 3),
        "classes": list(settings.classes),
        "partition": settings.partition,
        "totals": shares.totals,
        "free": shares.free,
        "nodes": [_node_json(node, shares, settings) for node in nodes],
    }


def named(member: str, settings: FairShareSettings) -> dict[str, str]:
    """Return the key and value that identify a leaf."""
    return {"project_id" if settings.leaves == "project" else "consumer_type": member}


def _node_json(node: NodeShare, shares: Shares, settings: FairShareSettings) -> dict[str, Any]:
    return {
        "path": node.path,
        **(named(shares.members[node.path], settings) if node.is_leaf else {}),
        "weight": node.weight,
        "usage": node.usage,
        "held": node.held,
        "entitled": shares.entitled[node.path],
        "over": shares.over(node),
        "under": shares.under(node),
        "gives": shares.gives(node),
        "vector": node.vector,
        "share": node.share,
        "weighted_share": node.weighted_share,
        "dominant": node.dominant,
        "blocked": node.is_blocked,
    }


def turn_json(turn: Turn, members: abc.Mapping[str, str], settings: FairShareSettings) -> dict[str, Any]:
    """Return one place in the order as JSON."""
    leaf, behind = turn.leaf, turn.behind
    pair = {} if behind is None else {"node": behind.node, "other": behind.rival}
    compared = {
        name: {"path": node.path, "weighted_share": node.weighted_share, "blocked": node.is_blocked}
        for name, node in pair.items()
    }
    return {
        **named(members[leaf.path], settings),
        "path": leaf.path,
        "share": leaf.share,
        "weighted_share": leaf.weighted_share,
        "dominant": leaf.dominant,
        "blocked": leaf.is_blocked,
        "lacking": list(leaf.lacking),
        "behind": None if behind is None else {"reason": behind.reason, **compared},
    }


def giving_json(giving: Giving, members: abc.Mapping[str, str], settings: FairShareSettings) -> dict[str, Any]:
    """Return who gives back, and what decided it."""
    return {
        "feasible": giving.feasible,
        "complete": giving.complete,
        "lacking": giving.lacking,
        "give_back": [
            {
                "consumer_uuid": held.name,
                **named(members[held.leaf], settings),
                "resources": held.amounts,
                "value": held.value,
            }
            for held in giving.given_back
        ],
        "levels": [
            {
                "claimant": {
                    "path": parting.claimant,
                    "with_claim": parting.claims,
                    "entitled": parting.claimant_entitled,
                },
                "giver": {"path": parting.giver, "holds": parting.holds, "entitled": parting.giver_entitled},
            }
            for parting in giving.partings[:MAX_LEVELS]
        ],
    }


RULE = "placement:planner:fair_share"


def show_tree(call: Call) -> Response:
    """Return the shares of all nodes; callers restricted to their project see the nodes on the path to it."""
    own = visible_path(call)
    settings = _settings(call)
    shares = service.all_shares(call.database, call.server.usage_cache)
    return call.json(tree_json(shares, settings, own))


def visible_path(call: Call) -> str | None:
    """Return the leaf whose path the caller may see, None for everything; Forbidden if it may see nothing."""
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
    wishes = wishes_of(body["pending"], call.server.settings.planner, "pending")
    filled = service.fill(call.database, call.server.usage_cache, wishes)
    filling, members = filled.filling, filled.members
    portions = [
        {
            **named(members[leaf], settings),
            "served": list(served),
            "given": filling.granted[leaf],
            "share": filled.nodes[leaf].share,
            "blocked": filled.nodes[leaf].is_blocked,
        }
        for leaf, served in filling.served.items()
    ]
    order = [members[leaf] for leaf in filling.order]
    return call.json(
        {"age_s": round(filled.age_s, 3), "complete": filling.complete, "portions": portions, "order": order}
    )


def reclaim(call: Call) -> Response:
    """Return the consumers that should give back what they hold, least valuable first."""
    body, settings, planner = call.document(RECLAIM), _settings(call), call.server.settings.planner
    wishes, options = wishes_of(body.get("pending", ()), planner, "pending"), options_of(body)
    if "request" in body:
        room = room_for(
            call.database,
            settings,
            planner_request(body["request"], planner),
            terms=options_for(call, body["request"]),
            member=member_of(body["claimant"], settings, "claimant"),
            wishes=wishes,
            options=options,
        )
        uuids = {id_: member.uuid for id_, member in room.providers.items()}
        candidate = None if room.candidate is None else allocation_request(room.candidate.proposal, uuids)
        answer = {**giving_json(room.giving, room.members, settings), "host": room.host, "candidate": candidate}
        ignored = ignored_in(planner, body["request"])
        return call.json({**answer, **({"ignored": ignored} if ignored else {})})
    claimant = wish_of(body["claimant"], planner, "claimant")
    claim = giving_back.claim_of(call.database, settings, claimant, wishes=wishes, options=options)
    reclaimed = giving_back.reclaim(call.database, claim)
    return call.json(giving_json(reclaimed.giving, reclaimed.members, settings))


def _settings(call: Call) -> FairShareSettings:
    return call.server.settings.planner.fair_share


ROUTES = (
    planner_route("GET", "/fair-share", show_tree, view_rules=(f"{RULE}:show", f"{RULE}:show_all")),
    planner_route("POST", "/fair-share/order", order_pending, rule="fair_share:order", body=ORDER),
    planner_route("POST", "/fair-share/fill", fill_pending, rule="fair_share:fill", body=FILL),
    planner_route(
        "POST", "/fair-share/reclaim", reclaim, rule="fair_share:reclaim", view_rules=(INLINE_PROFILE,), body=RECLAIM
    ),
)
