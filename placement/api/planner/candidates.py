"""POST /planner/v1/candidates: allocation candidates for requests that no query string can express."""

from flask import Response

from placement.api.call import Call
from placement.api.planner.index import PATH
from placement.api.planner.proposal_json import answer_json
from placement.api.planner.request_document import Body, changes_of, ignored_in, planner_request
from placement.api.planner.request_schemas import CandidatesSchema
from placement.api.planner.scores import profile_of
from placement.api.routing import Route
from placement.candidates.planner.question import wanted_of
from placement.domain.search_plan import plan_for
from placement.services.planner.candidates import planned_candidates
from placement.services.planner.changes import AS_THEY_ARE
from placement.services.planner.questions import PlannerOptions

SCHEMA = CandidatesSchema()


def plan(call: Call) -> Response:
    """Return the best candidates for a request."""
    body = call.document(SCHEMA)
    request = planner_request(body, call.server.settings.planner)
    options, changes = options_for(call, body), changes_of(body)
    answer = planned_candidates(call.database, request, options, changes=changes)
    if options.judge is not None and answer.candidates and changes == AS_THEY_ARE and not request.paths:
        options.judge.note_asked(wanted_of(request, plan_for(request.plain)))
    ignored = ignored_in(call.server.settings.planner, body)
    return call.json({**answer_json(answer), **({"ignored": ignored} if ignored else {})})


def options_for(call: Call, body: Body) -> PlannerOptions:
    """Return the options for a request, from the server's settings and the request itself."""
    planner = call.server.settings.planner
    profile = profile_of(call, body.get("profile", body.get("score", {}).get("profile")))
    return PlannerOptions(
        profile=profile,
        levels=planner.levels,
        locks=planner.exclusive,
        judge=call.server.fragmentation_judges.of(profile),
        cache=call.server.cloud_cache,
    )


ROUTES = (
    Route("POST", f"{PATH}/candidates", plan, rule="placement:planner:candidates", answers_json=True, body=SCHEMA),
)
