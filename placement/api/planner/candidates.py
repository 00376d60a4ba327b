"""POST /planner/v1/candidates: where can this go, asked in more words than a query string has?"""

from flask import Response

from placement.api.call import Call
from placement.api.planner.index import PATH
from placement.api.planner.proposal_json import answer_json
from placement.api.planner.request_document import planner_request
from placement.api.planner.request_schemas import CandidatesSchema
from placement.api.planner.scores import profile_named
from placement.api.routing import Route
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.candidates import PlannerOptions, planned_candidates
from placement.services.planner.changes import Changes

SCHEMA = CandidatesSchema()


def plan(call: Call) -> Response:
    """Answer with the best candidates."""
    body = call.document(SCHEMA)
    request = planner_request(body, call.server.settings.planner)
    changes = Changes(without=body.get("without", ()), released=body.get("released", ()))
    return call.json(
        answer_json(planned_candidates(call.database, request, options_for(call, request), changes=changes))
    )


def options_for(call: Call, request: PlannerRequest) -> PlannerOptions:
    """Return what the operator says about a request."""
    planner = call.server.settings.planner
    profile = profile_named(call, request.profile)
    return PlannerOptions(
        profile=profile,
        levels=planner.levels,
        locks=planner.exclusive,
        base=planner.devices.base,
        packer=call.server.packers.of(profile),
    )


ROUTES = (
    Route(
        method="POST",
        path=f"{PATH}/candidates",
        view=plan,
        rule="placement:planner:candidates",
        answers_json=True,
        takes_json=True,
        body=SCHEMA,
    ),
)
