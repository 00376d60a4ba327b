"""What the code does not say about the API: descriptions of parameters, and which statuses mean success."""

DESCRIPTION = """\
The OpenStack Placement API, microversions 1.0 to 1.39, and this server's planner API below /planner/v1.

The header `OpenStack-API-Version: placement 1.39` selects a microversion; without it, requests are served at 1.0.
`x-openstack-microversions` is the range of microversions that have an operation. Where bodies or answers differ,
`anyOf` lists each variant with the microversion from which it applies. The planner API has no microversions.

Every error is `{"errors": [{"status", "title", "detail", "request_id", "code"}]}`; the last line of `detail` is the
specific one, and `code` is present from 1.23 on.

Codes of 409: `placement.concurrent_update` (someone else changed it at the same time: read it and try again),
`placement.duplicate_name` (the name or uuid is taken), `placement.inventory.inuse` and
`placement.resource_provider.inuse` (there are allocations), `placement.resource_provider.cannot_delete_parent` (there
are children), `placement.unfair_allocation` (more than a fair share, with `[fair_share] enforce = plain`),
`placement.planner.unfair_claim` (the same for a planner claim that asks for the check), and
`placement.planner.no_room` (a planner claim has no place; unlike with `placement.concurrent_update`, a retry only helps
once something has been released). Codes of 400:
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
    ("POST", "/planner/v1/trees/<uuid>/enable"): (204,),
}
"""Success statuses other than the method's usual ones."""

FURTHER_FAILURES: dict[tuple[str, str], set[int]] = {
    ("GET", "/planner/v1/journal"): {404, 410},
    ("GET", "/planner/v1/journal/at"): {404, 410},
    ("POST", "/planner/v1/trees/<uuid>/drain"): {404, 409},
    ("POST", "/planner/v1/trees/<uuid>/enable"): {404, 409},
}
"""Error statuses that only some operations of their kind have."""

USUAL_SUCCESS = {"GET": (200,), "PUT": (200,), "POST": (200,), "DELETE": (204,)}

STATUSES = {
    200: "The answer is in the body.",
    201: "Created; `location` has its address.",
    204: "Done, without a body.",
    400: "The request is malformed or invalid.",
    401: "The credentials are missing or invalid.",
    403: "Policy does not allow the caller to do this.",
    404: "It does not exist, or the path is not served at this microversion.",
    405: "The path does not have this method at this microversion.",
    406: "The microversion is not supported, or the client does not accept JSON.",
    409: "The request conflicts with the present state, or with a concurrent change.",
    410: "The rows that follow this journal cursor have been deleted.",
    413: "The body is larger than the server accepts.",
    415: "The body is not of type application/json.",
    503: "The database is unavailable, a search hit its budget, or too many clients follow the journal; try again.",
}

STREAMS = {
    "/planner/v1/journal": "Server-sent events: what follows `Last-Event-ID`, else `after`, else the present. "
    "The data of each event is an answer to `after` in JSON, its id the cursor after it; an id without data is a "
    "heartbeat. The stream ends after 15 minutes; reconnect with the last id."
}
"""Streaming alternatives to an operation's normal answer, by path."""

PARAMETERS = {
    "name": "The name to look for: exact for providers; `in:A,B` or `startswith:P` for traits.",
    "uuid": "The uuid to look for.",
    "in_tree": "Only providers in the same tree as this provider.",
    "member_of": "Required aggregates: `UUID`, `in:UUID,UUID` for any of them, `!UUID` or `!in:...` for none of them.",
    "resources": "Amounts by resource class that must be free: `VCPU:2,MEMORY_MB:1024`.",
    "required": "Required (`A`) and forbidden (`!B`) traits: `A,!B`; from 1.39 on also `in:A,B` for any of them.",
    "associated": "`true`: only traits that some provider has; `false`: only those that none has.",
    "limit": "The maximum number of candidates.",
    "group_policy": "Whether suffixed groups may share a provider (`none`) or not (`isolate`).",
    "root_required": "Traits that the root provider must have or, with `!`, must not have.",
    "same_subtree": "Suffixes of groups, `_A,_B`, whose providers must be in the subtree of one of them.",
    "project_id": "The project whose usage to return.",
    "user_id": "Only usage of this user.",
    "consumer_type": "Only consumers of this type; `all` sums over all types, `unknown` means those without a type.",
    "consumer_uuid": "The uuid of a consumer.",
    "consumer": "Only entries about this consumer.",
    "provider": "Only entries about the provider with this uuid.",
    "project": "Only entries about this project's consumers.",
    "user": "Only changes made by this user.",
    "since": "Only entries from this time on, in ISO 8601; UTC unless it has an offset.",
    "until": "Only entries before this time.",
    "time": "A time in ISO 8601; UTC unless it has an offset.",
    "consumers": "The uuids of all consumers that hold something in the tree, separated by commas; left out for none.",
    "disabled": "`true`: only trees whose host is disabled; `false`: only others.",
    "before": "Only entries with a lower id: where the last answer ended.",
    "after": "Entries after this cursor from an earlier answer, in commit order; `0` is the beginning, `now` the end.",
}

GROUPS = (
    "Suffixed request groups (from 1.25 on; until 1.32 the suffix is a number, then up to 64 letters, digits, `_` and "
    "`-`): `resources_GPU`, `required_GPU`, `member_of_GPU`, `in_tree_GPU`. Each group is served by "
    "one provider."
)
