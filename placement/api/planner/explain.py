"""GET /planner/v1/explain: why does GET /allocation_candidates return what it does for this query string?"""

from functools import partial
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.candidate_query import KEYS, candidate_request
from placement.api.planner.explain_json import explanation_json
from placement.api.query import Query
from placement.api.routing import PLANNER_PATH, Route
from placement.api.versions import MAXIMUM, Version, requested_version
from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.explanation import Hint, HintKind
from placement.domain.candidate_request import CandidateRequest
from placement.services.explain import explanation_of
from placement.settings import Settings
from placement.store.connection.database import Database

POLICY = "group_policy"
POLICY_VERSION = Version(1, 25)
FIRST_VERSION = Version(1, 10)
"""Older microversions have no GET /allocation_candidates to explain."""


def explain_candidates(call: Call) -> Response:
    """Explain the candidates of a query string.

    The planner API has no microversions, but query strings do: this one is read at the header's microversion, or at the
    newest if there is none.
    """
    version = requested_version(call.request.headers.get("openstack-api-version"))
    return call.json(explain_query(call.database, call.query, version, call.server.settings))


def explain_query(database: Database, query: Query, version: Version, settings: Settings) -> dict[str, Any]:
    """Return the explanation of a query string, read at a microversion, as a JSON document.

    Raises:
        Invalid: GET /allocation_candidates would refuse the query string. Only a missing group_policy is accepted.
    """
    explanation = partial(
        explanation_of,
        database,
        locks=settings.locks_for_all,
        profile=settings.planner.profile_in_force if settings.ranking.enabled else None,
    )
    if version < FIRST_VERSION:
        version = MAXIMUM
    if version < POLICY_VERSION or POLICY in query:
        return explanation_json(explanation(candidate_request(query, version)))
    request = candidate_request(Query([*query.pairs, (POLICY, "none")]), version)
    return explanation_json(explanation(request), _missing_policy(request))


def _missing_policy(request: CandidateRequest) -> list[Hint]:
    granular = tuple(group.suffix for group in request.groups if group.is_granular)
    missing = len(granular) > 1
    return [Hint(HintKind.NO_GROUP_POLICY, Condition(ConditionKind.GROUP_POLICY, granular, "none"))] if missing else []


ROUTES = (
    Route(
        "GET",
        f"{PLANNER_PATH}/explain",
        explain_candidates,
        rule="placement:planner:explain",
        answers_json=True,
        query=KEYS,
    ),
)
