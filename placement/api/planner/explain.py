"""GET /planner/v1/explain: why does GET /allocation_candidates return what it does for this query string?"""

from flask import Response

from placement.api.call import Call
from placement.api.candidate_query import KEYS, forgiving_request
from placement.api.planner.explain_json import explanation_json
from placement.api.routing import planner_route
from placement.api.versions import MAXIMUM, Version, requested_version
from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.explanation import Hint, HintKind
from placement.services.explain import explanation_of

VERSION = "openstack-api-version"
POLICY = "group_policy"
POLICY_VERSION = Version(1, 25)
FIRST_VERSION = Version(1, 10)
"""Older microversions have no GET /allocation_candidates to explain."""


def explain_candidates(call: Call) -> Response:
    """Explain the candidates of a query string.

    The planner API has no microversions, but query strings do: this one is read at the header's microversion, or at the
    newest if there is none.
    """
    version, query, ranking = requested_version(call.request.headers.get(VERSION)), call.query, call.server.ranking
    if version < FIRST_VERSION:
        version = MAXIMUM
    # A missing policy is explained, although GET /allocation_candidates refuses it.
    request = forgiving_request(query, version)
    lacks_policy = version >= POLICY_VERSION and POLICY not in query
    explained = explanation_of(
        call.database,
        request,
        locks=call.server.locks,
        profile=ranking.profile if ranking else None,
    )
    granular = tuple(group.suffix for group in request.groups if group.is_granular)
    hint = Hint(HintKind.NO_GROUP_POLICY, Condition(ConditionKind.GROUP_POLICY, granular, "none"))
    return call.json(explanation_json(explained, [hint] if lacks_policy and len(granular) > 1 else ()))


ROUTES = (planner_route("GET", "/explain", explain_candidates, rule="explain", query=KEYS),)
