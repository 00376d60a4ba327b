"""What the code does not say about the API: descriptions of parameters, and which statuses mean success."""

DESCRIPTION = """\
The OpenStack Placement API, microversions 1.0 to 1.39, and the planner of this server below /planner/v1.

A request names its microversion in the header `OpenStack-API-Version: placement 1.39`; without it, it is served at 1.0.
`x-openstack-microversions` tells from which to which an operation is served. Where bodies or answers differ, `anyOf`
lists what holds from which microversion on. The planner has no microversions.

Every error is `{"errors": [{"status", "title", "detail", "request_id", "code"}]}`; the last line of `detail` is the
useful one, `code` is there from 1.23 on.

Codes with 409: `placement.concurrent_update` (somebody else changed it at the same time: read again, and try again),
`placement.duplicate_name` (the name or uuid is taken), `placement.inventory.inuse` and
`placement.resource_provider.inuse` (there are allocations), `placement.resource_provider.cannot_delete_parent` (there
are children), `placement.unfair_allocation` (more than a fair share, where `[fair_share] enforce = plain`) and
`placement.planner.unfair_claim` (the same for a claim of the planner that asks for it),
`placement.planner.no_room` (a claim of the planner has no place; trying again helps only once something was given back,
unlike with `placement.concurrent_update`). With 400:
`placement.query.bad_value`, `placement.query.missing_value`, `placement.query.duplicate_key`, and, for a reshaper,
`placement.resource_provider.not_found`. Everything else is `placement.undefined_code`.
"""

SUCCESS: dict[tuple[str, str], tuple[int, ...]] = {
    ("POST", "/resource_providers"): (200, 201),
    ("POST", "/resource_providers/<uuid>/inventories"): (201,),
    ("POST", "/resource_classes"): (201,),
    ("PUT", "/resource_classes/<name>"): (200, 201, 204),
    ("GET", "/traits/<name>"): (204,),
    ("PUT", "/traits/<name>"): (201, 204),
    ("POST", "/allocations"): (204,),
    ("PUT", "/allocations/<consumer_uuid>"): (204,),
    ("POST", "/reshaper"): (204,),
    ("POST", "/planner/v1/claims"): (200, 201),
}
"""Success statuses other than the method's usual ones."""

FURTHER_FAILURES: dict[tuple[str, str], set[int]] = {
    ("GET", "/planner/v1/journal"): {404, 410},
    ("GET", "/planner/v1/journal/at"): {404, 410},
}
"""Error statuses that only some operations of their kind have."""

USUAL_SUCCESS = {"GET": (200,), "PUT": (200,), "POST": (200,), "DELETE": (204,)}

STATUSES = {
    200: "Done; the answer is in the body.",
    201: "Made; `location` tells where it is.",
    204: "Done; there is no body.",
    400: "The request cannot be understood, or asks for what cannot be.",
    401: "Without valid credentials.",
    403: "The policy does not let this caller do it.",
    404: "There is no such thing, or the path is not served at this microversion.",
    405: "The method is not served here at this microversion.",
    406: "The microversion is not served, or the client does not accept JSON.",
    409: "It conflicts with the present state, or with a concurrent change.",
    410: "It was there, and is no longer: a cursor of the journal whose rows are gone.",
    413: "The body is larger than the server reads.",
    415: "The body is not of type application/json.",
    503: "The database is away or too busy, a search ran out of steps, or too many follow the journal; try again.",
}

STREAMS = {
    "/planner/v1/journal": "Server-sent events: what comes after `Last-Event-ID`, else `after`, else from now on. The "
    "data of each event is an answer to `after` in JSON, its id the cursor that it leads to; an id without data is a "
    "heartbeat. The stream ends after a quarter of an hour; come again with the last id.",
}
"""Streaming alternatives to an operation's normal answer, by path."""

PARAMETERS = {
    "name": "The name to look for: exact for providers; `in:A,B` or `startswith:P` for traits.",
    "uuid": "The uuid to look for.",
    "in_tree": "Only providers of the tree that this provider is in.",
    "member_of": "Aggregates to be in: `UUID`, `in:UUID,UUID` for any of them, `!UUID` or `!in:...` for none of them.",
    "resources": "Amounts by resource class that have to be free: `VCPU:2,MEMORY_MB:1024`.",
    "required": "Traits to have: `A,!B`; from 1.39 on also `in:A,B` for any of them.",
    "associated": "`true`: only traits that some provider has; `false`: only those that none has.",
    "limit": "At most so many candidates.",
    "group_policy": "Whether suffixed groups may share a provider (`none`) or not (`isolate`).",
    "root_required": "Traits that the root provider has to have, or with `!` must not have.",
    "same_subtree": "Suffixes of groups, `_A,_B`, that have to be served below one of their providers.",
    "project_id": "The project whose usage is asked for.",
    "user_id": "Only what this user holds.",
    "consumer_type": "Only consumers of this type; `all` adds them up, `unknown` are those without a type.",
    "consumer_uuid": "The uuid of a consumer.",
    "consumer": "Only what is about this consumer.",
    "provider": "Only what is about the provider with this uuid.",
    "project": "Only what is about this project's consumers.",
    "user": "Only what this user did.",
    "since": "Only from this time on, in ISO 8601; UTC unless it says otherwise.",
    "until": "Only before this time.",
    "time": "A moment in ISO 8601; UTC unless it says otherwise.",
    "before": "Only rows below this id: where the last answer ended.",
    "after": "What comes after the cursor of an answer, in the order of commits; `0` is the beginning, `now` the end.",
}

GROUPS = (
    "Suffixed request groups (from 1.25 on; at first the suffix is a number, from 1.33 on up to 64 letters, digits, "
    "`_` and `-`): `resources_GPU`, `required_GPU`, `member_of_GPU`, `in_tree_GPU`. Each group is served by "
    "one provider."
)
