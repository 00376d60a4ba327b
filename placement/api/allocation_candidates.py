"""GET /allocation_candidates: where could this request be served?"""

import logging
from collections.abc import Iterator
from functools import partial
from time import perf_counter

from flask import Response

from placement.api.call import JSON, Call
from placement.api.candidate_json import candidates_json, texts_by_tree, written_json
from placement.api.candidate_options import judge_in_force, ranking_of, search_options
from placement.api.candidate_query import KEYS, candidate_request
from placement.api.pieces import answer_in_pieces
from placement.api.routing import Route
from placement.candidates.explain.wording import cause_in_words
from placement.domain.candidate_request import CandidateRequest
from placement.errors import OutOfSteps
from placement.services.allocation_candidates import Answer, Ranking, allocation_candidates
from placement.services.fragmentation import FragmentationJudge
from placement.services.written_candidates import Question, WrittenAnswer, written_candidates
from placement.telemetry.meters import SearchSeen

LOG = logging.getLogger(__name__)

SEARCH_HEADER = "x-placement-search"
"""``incomplete`` on an answer whose search hit its budget."""


def list_candidates(call: Call) -> Response:
    """List allocation candidates with summaries of their providers."""
    request = candidate_request(call.query, call.version)
    began = perf_counter()
    ranking, judge = ranking_of(call), judge_in_force(call)
    written = _asked_again(call, request, ranking) if ranking and judge is None else None
    if written is not None:
        trees, candidates = len(written.providers), len(written.candidates)
        seen = SearchSeen(perf_counter() - began, trees, candidates, complete=True, from_cache=True)
        call.server.meters.searched(seen)
        return _dated(call, written_json(written))
    answer = _searched(call, request, ranking, judge=judge, began=began)
    if answer.cause is not None:
        call.server.meters.found_nothing(answer.cause.kind.value)
        LOG.info("There are no allocation candidates. %s", cause_in_words(answer.cause))
    response = _dated(call, candidates_json(answer, call.version))
    if not answer.complete:
        response.headers[SEARCH_HEADER] = "incomplete"
    return response


def _dated(call: Call, pieces: Iterator[bytes]) -> Response:
    response = answer_in_pieces(call.request, pieces, JSON)
    call.date(response, None)
    return response


def _asked_again(call: Call, request: CandidateRequest, ranking: Ranking) -> WrittenAnswer | None:
    """Return the answer assembled from cached texts of trees, or None if the request has to be searched for."""
    if not call.since(29):  # Before, the limit may influence what a tree shows.
        return None
    name, write = (call.version, call.request.query_string), partial(texts_by_tree, version=call.version)
    question = Question(name, request, search_options(call), ranking, write)
    return written_candidates(call.database, question, call.server.texts, call.server.cloud_cache)


def _searched(
    call: Call, request: CandidateRequest, ranking: Ranking | None, *, judge: FragmentationJudge | None, began: float
) -> Answer:
    """Search, and report to the metrics what was seen since ``began``, even if the search ran out of steps."""
    server = call.server
    try:
        answer = allocation_candidates(
            call.database, request, search_options(call), ranking, judge=judge, cache=server.cloud_cache
        )
    except OutOfSteps:
        server.meters.searched(SearchSeen(perf_counter() - began, trees=0, candidates=0, complete=False))
        raise
    server.meters.searched(_seen(answer, perf_counter() - began))
    return answer


def _seen(answer: Answer, duration_s: float) -> SearchSeen:
    trees = len({root for root, _choice in answer.candidates})
    return SearchSeen(duration_s, trees, len(answer.candidates), answer.complete)


ROUTES = (
    Route(
        method="GET",
        path="/allocation_candidates",
        view=list_candidates,
        rule="placement:allocation_candidates:list",
        since=(1, 10),
        answers_json=True,
        query=KEYS,
    ),
)
