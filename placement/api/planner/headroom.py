"""/planner/v1/headroom: how many more copies of each request fit, and what prevents more; the answers as JSON."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from flask import Response

from placement.allocators.bundle_packing import Copies
from placement.allocators.fair_share.tree import Amounts
from placement.api.call import Call
from placement.api.candidate_query import KEYS, forgiving_request
from placement.api.fields import Fault, Field, Map, Object, integer, load_document, number, shown, text
from placement.api.planner.candidates import options_for
from placement.api.planner.fair_share import named
from placement.api.planner.request_document import changes_of, ignored_in, planner_request
from placement.api.planner.request_fields import CHANGES, REQUEST
from placement.api.query import Query
from placement.api.routing import planner_route
from placement.api.versions import MAXIMUM
from placement.candidates.explain.explanation import split_in_words
from placement.candidates.headroom.totals import CountedRequest, Headroom
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import CandidateRequest
from placement.errors import Invalid, InvalidAt
from placement.services.fair_share.shares import amounts_of_copy, by_share
from placement.services.planner.questions import PlannerOptions
from placement.services.planner.request_rooms import Headrooms, Listing, RequestRoom, headrooms
from placement.store.search.names import Named

MAX_REQUESTS = 200
MAX_LISTED = 1000
MAX_WEIGHT = 1_000_000
NAME = "[^\x00-\x1f]{1,255}"
QUERY_NAME = "query"
NOBODY = "No tree can serve it, even if it were empty."

HeadroomJson = dict[str, Any]


class _QueryOrRequest(Field):
    def read(self, value: Any) -> Any:
        """Return the value, which is loaded where its name is known."""
        if not isinstance(value, str | dict):
            raise Fault(f"{shown(value)} is not of type 'object'", "type")
        return value


QUERY_OR_REQUEST = _QueryOrRequest({"anyOf": [{"type": "string"}, {"type": "object"}]})
"""A query string of GET /allocation_candidates, or a request as in /planner/v1/candidates."""

BODY = Object(
    CHANGES
    | {
        "requests?": Map(NAME, QUERY_OR_REQUEST, smallest=1),
        "per?": text("total", "tree", "aggregate", "share"),
        "mix?": Map(NAME, number(minimum=0, maximum=MAX_WEIGHT), smallest=1),
        "limit?": integer(minimum=1, maximum=MAX_LISTED),
    }
)
"""Without ``requests``, the flavors of the planner file are counted."""


def count(call: Call) -> Response:
    """Return the headroom of each request."""
    body, settings = call.document(BODY), call.server.settings.planner
    queries = body.get("requests", settings.flavors)
    if not queries or len(body.get("requests", ())) > MAX_REQUESTS:
        raise InvalidAt(("requests",), f"There must be 1 to {MAX_REQUESTS} requests, or flavors of the server.")
    requests = {name: _request(call, name, query) for name, query in queries.items()}
    options = {name: _options(call, request) for name, request in requests.items()}
    per, limit = body.get("per", "total"), body.get("limit", Listing().limit)
    taken = _taken(call, requests, options) if per == "share" else None
    counts = headrooms(
        call.database,
        requests,
        Listing(trees=per == "tree", aggregates=per == "aggregate", limit=limit),
        mix=_mix(body["mix"], requests) if "mix" in body else None,
        changes=changes_of(body),
        options=options,
        locks=call.server.locks,
    )
    answer: HeadroomJson = {
        "headroom": {name: counted_json(counted, counts) for name, counted in counts.rooms.items()},
        "complete": all(counted.headroom.copies.is_exact for counted in counts.rooms.values()),
    }
    if counts.mix is not None:
        answer["mix"] = _copies(counts.mix)
    for name, written in queries.items():
        if isinstance(written, dict) and (ignored := ignored_in(settings, written)):
            answer["headroom"][name]["ignored"] = ignored
    if taken is not None:
        copies = {name: room.headroom.copies for name, room in counts.rooms.items()}
        for name, rooms in by_share(call.database, call.server.usage_cache, copies, taken).items():
            answer["headroom"][name]["shares"] = [
                {"path": room.path, **named(room.member, settings.fair_share), **_copies(room.copies)}
                for room in rooms[:limit]
            ]
    return call.json(answer)


def _taken(
    call: Call, requests: Mapping[str, CountedRequest], options: Mapping[str, PlannerOptions]
) -> Mapping[str, Amounts]:
    """Return how much one copy of each request takes of the classes that count towards fair shares."""
    counting = call.server.settings.planner.fair_share.classes
    taken = {}
    for name, request in requests.items():
        try:
            amounts = amounts_of_copy(request, options[name])
        except Invalid as wrong:
            raise InvalidAt(("requests", name), wrong.message) from wrong
        taken[name] = {class_: amounts[class_] for class_ in counting if amounts.get(class_)}
        if not taken[name]:
            raise InvalidAt(
                ("requests", name),
                f"None of the requested classes counts towards fair shares; {', '.join(counting)} do.",
            )
    return taken


def count_query(call: Call) -> Response:
    """Return the headroom of a query string, whose ``limit`` is the number of trees to list."""
    request = forgiving_request(call.query, MAXIMUM)
    listing = Listing(trees=True, limit=min(request.limit or Listing().limit, MAX_LISTED))
    counts = headrooms(call.database, {QUERY_NAME: request}, listing, locks=call.server.locks)
    return call.json(counted_json(counts.rooms[QUERY_NAME], counts))


def requests_of_flavors(flavors: Mapping[str, str]) -> dict[str, CandidateRequest]:
    """Return the requests of flavors, by name; InvalidAt if GET /allocation_candidates would refuse one."""
    requests = {}
    for name, query in flavors.items():
        try:
            requests[name] = request_of_text(query)
        except Invalid as wrong:
            raise InvalidAt(("flavors", name), wrong.message) from wrong
    return requests


def request_of_text(query: str) -> CandidateRequest:
    """Return the request in a query string that is not part of a URL, read at the newest microversion."""
    return forgiving_request(Query.parse(query.encode()), MAXIMUM)


def _mix(weights: Mapping[str, float], requests: Mapping[str, CountedRequest]) -> dict[str, Fraction]:
    """Return each request's fraction of the mix."""
    for name, weight in weights.items():
        if name not in requests or not weight > 0:
            raise InvalidAt(("mix", name), f"Expected a weight above 0 for one of the requests, found {shown(weight)}.")
    exact = {name: Fraction(str(weight)) for name, weight in weights.items()}
    return {name: weight / sum(exact.values()) for name, weight in exact.items()}


def _request(call: Call, name: str, query: str | dict[str, Any]) -> CountedRequest:
    try:
        if isinstance(query, str):
            return request_of_text(query)
        return planner_request(load_document(REQUEST, query), call.server.settings.planner)
    except Invalid as wrong:
        raise InvalidAt(("requests", name), wrong.message) from wrong


def _options(call: Call, request: CountedRequest) -> PlannerOptions:
    profile = request.profile if isinstance(request, PlannerRequest) else None
    return options_for(call, {} if profile is None else {"profile": profile})


ROUTES = (
    planner_route("POST", "/headroom", count, rule="headroom", body=BODY),
    planner_route("GET", "/headroom", count_query, rule="headroom", query=KEYS),
)


def counted_json(counted: RequestRoom, rooms: Headrooms) -> HeadroomJson:
    """Return the headroom of one request."""
    room = counted.headroom
    return {
        **_copies(room.copies),
        "trees_with_room": room.with_room,
        "trees_without_room": room.without_room,
        "lacking": [{"resource_classes": list(names), "trees": trees} for names, trees in room.lacking.items()],
        "message": message_of(room),
        "stranded": dict(room.stranded),
        "one_more": [
            {"like": _named(model.like, rooms.providers), "trees": model.trees, **_copies(model.per_tree)}
            for model in counted.models
        ],
        "trees": [{**_named(root, rooms.providers), **_copies(copies)} for root, copies in counted.trees],
        "aggregates": [{"uuid": uuid, **_copies(copies)} for uuid, copies in counted.aggregates],
    }


def _copies(copies: Copies) -> HeadroomJson:
    return {"fits": copies.least, "at_most": copies.max_count, "complete": copies.is_exact}


def _named(root: int, providers: Mapping[int, Named]) -> HeadroomJson:
    """Name a tree; one that was only assumed to exist has no uuid."""
    named = providers.get(root)
    return {"uuid": named.uuid if named else None, "name": named.name if named else "one more"}


def message_of(room: Headroom) -> str:
    """Say what no single provider has, and what trees without room lack.

    >>> message_of(Headroom(Copies(0, 0), 0, {("VCPU",): 2, ("MEMORY_MB", "VCPU"): 1}, {}, ()))
    'Of 3 trees without room 2 lack VCPU, 1 MEMORY_MB and VCPU.'
    >>> message_of(Headroom(Copies(0, 0), 0, {(): 1, ("VCPU",): 1}, {}, ()))
    'Of 2 trees without room 1 lacks VCPU, 1 has what is asked for, but not where it could be used together.'
    """
    return " ".join([*map(split_in_words, room.split), _lacking_in_words(room)])


def _lacking_in_words(room: Headroom) -> str:
    if not room.lacking:
        return "Every tree that can serve it has room." if room.with_room else NOBODY
    parts = [
        f"{trees} {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
        for names, trees in room.lacking.items()
        if names
    ]
    if parts:
        number, _space, names = parts[0].partition(" ")
        parts[0] = f"{number} {'lacks' if number == '1' else 'lack'} {names}"
    scattered = room.lacking.get((), 0)
    if scattered:
        has = "has" if scattered == 1 else "have"
        parts.append(f"{scattered} {has} what is asked for, but not where it could be used together")
    trees = f"{room.without_room} tree{'' if room.without_room == 1 else 's'}"
    return f"Of {trees} without room {', '.join(parts)}."
