"""/planner/v1/trees: whole hosts. Who is on them, taking them out of service and back, and removing them."""

from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import Object, flag, text
from placement.api.planner.candidates import options_for
from placement.api.planner.journal_feed import time_text
from placement.api.query import ANY
from placement.api.routing import planner_route
from placement.services import whole_trees as service
from placement.services.console.searches import ProviderSearch, found_providers
from placement.services.console.tree import TreeConsumer
from placement.services.whole_trees import DrainBy, Evacuation, evacuation, tree_consumers

USUAL_LIMIT = 1000

LIST_QUERY = {"name": ANY, "disabled": text("true", "false"), "limit": text(pattern="[1-9][0-9]{0,2}|1000")}
REMOVE_QUERY = {"consumers": ANY}


BODY = Object({"by?": text(*DrainBy, default=DrainBy.TRAIT), "dry_run?": flag()})


def list_trees(call: Call) -> Response:
    """List trees by the names of their roots; ``name`` has to be a part of the name."""
    call.query.check(LIST_QUERY)
    name, disabled = call.query.last("name") or "", call.query.last("disabled")
    search = ProviderSearch(words=(name,) if name else (), disabled=None if disabled is None else disabled == "true")
    result = found_providers(call.database, search, first=0, limit=int(call.query.last("limit") or USUAL_LIMIT))
    trees = [
        {
            "uuid": row.uuid,
            "name": row.name,
            "providers": row.size,
            "disabled": row.id in result.disabled,
            "resources": {
                stock.class_name: {"capacity": stock.capacity, "used": stock.used}
                for stock in result.stocks.get(row.id, ())
            },
        }
        for row in result.part.rows
    ]
    return call.json({"trees": trees, "complete": not result.part.has_more})


def show_tree(call: Call, uuid: str) -> Response:
    """Return the consumers of a tree, what each holds there, and since when."""
    return call.json(_shown(tree_consumers(call.database, uuid), targets=False))


def drain_tree(call: Call, uuid: str) -> Response:
    """Keep new consumers off a tree, unless this is a dry run; return who has to go, and where to."""
    body = call.document(BODY)
    if not body.get("dry_run", False):
        service.drain(call.database, uuid, by=DrainBy(body.get("by", DrainBy.TRAIT)))
    result = evacuation(call.database, uuid, options_for(call, {}))
    return call.json({**_shown(result, targets=True), "dry_run": body.get("dry_run", False)})


def enable_tree(call: Call, uuid: str) -> Response:
    """Undo a drain."""
    service.enable(call.database, uuid)
    return call.empty()


def remove_tree(call: Call, uuid: str) -> Response:
    """Delete a tree with the allocations of exactly the given consumers."""
    call.query.check(REMOVE_QUERY)
    consumers = (call.query.last("consumers") or "").split(",")
    service.remove_tree(call.database, uuid, frozenset(consumers) - {""})
    return call.empty()


def _shown(result: Evacuation, *, targets: bool) -> dict[str, Any]:
    consumers = [_consumer(consumer) | (_target(consumer) if targets else {}) for consumer in result.consumers]
    return {
        "uuid": result.uuid,
        "name": result.name,
        "disabled": result.is_disabled,
        "complete": result.complete,
        "consumers": consumers,
    }


def _consumer(consumer: TreeConsumer) -> dict[str, Any]:
    return {
        "consumer_uuid": consumer.uuid,
        "project_id": consumer.project_id,
        "user_id": consumer.user_id,
        "consumer_type": consumer.type,
        "since": None if consumer.since is None else time_text(consumer.since),
        "resources": dict(sorted(consumer.held.items())),
    }


def _target(consumer: TreeConsumer) -> dict[str, Any]:
    target = consumer.target
    if target is None:
        return {"target": None}
    taken = {uuid: {"resources": amounts} for uuid, amounts in target.allocations.items()}
    return {"target": {"uuid": target.tree.uuid, "name": target.tree.name, "allocations": taken}}


ROUTES = (
    planner_route("GET", "/trees", list_trees, rule="trees:list", query=LIST_QUERY),
    planner_route("GET", "/trees/<uuid>", show_tree, rule="trees:show"),
    planner_route("DELETE", "/trees/<uuid>", remove_tree, rule="trees:remove", query=REMOVE_QUERY, answers_json=False),
    planner_route("POST", "/trees/<uuid>/drain", drain_tree, rule="trees:drain", body=BODY),
    planner_route("POST", "/trees/<uuid>/enable", enable_tree, rule="trees:drain", answers_json=False),
)
