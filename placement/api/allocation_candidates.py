"""GET /allocation_candidates: where can this request go?"""

from flask import Response

from placement.api.call import JSON, Call
from placement.api.candidate_json import candidates_json
from placement.api.candidate_query import candidate_request
from placement.api.routing import Route
from placement.services.allocation_candidates import SearchOptions, allocation_candidates

SEARCH_HEADER = "x-placement-search"
"""Says ``incomplete`` on an answer whose search was cut off by its budget."""


def list_candidates(call: Call) -> Response:
    """Answer with candidates and a summary of the providers they touch."""
    request = candidate_request(call.query, call.version)
    answer = allocation_candidates(call.database, request, _options(call))
    response = Response(candidates_json(answer, call.version), content_type=JSON)
    call.date(response, None)
    if not answer.complete:
        response.headers[SEARCH_HEADER] = "incomplete"
    return response


def _options(call: Call) -> SearchOptions:
    chosen = call.server.settings.placement
    return SearchOptions(
        most=chosen.max_allocation_candidates if chosen.max_allocation_candidates >= 0 else None,
        breadth_first=chosen.allocation_candidates_generation_strategy == "breadth-first",
        shuffled=chosen.randomize_allocation_candidates,
    )


ROUTES = (
    Route(
        method="GET",
        path="/allocation_candidates",
        view=list_candidates,
        rule="placement:allocation_candidates:list",
        since=(1, 10),
        answers_json=True,
    ),
)
