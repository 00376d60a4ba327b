"""GET /allocation_candidates: where could this request be served?"""

import logging
from collections.abc import Iterator
from functools import partial
from time import perf_counter

from flask import Response

from placement.api.call import JSON, Call
from placement.api.candidate_json import candidates_json, texts_by_tree, written_json
from placement.api.candidate_query import KEYS, candidate_request, judge_in_force, ranking_of, search_options
from placement.api.pieces import answer_in_pieces
from placement.api.routing import Route
from placement.candidates.explain.explanation import cause_in_words
from placement.candidates.fragmentation import wanted_by
from placement.domain.candidate_request import CandidateRequest
from placement.errors import OutOfSteps
from placement.services.allocation_candidates import Answer, allocation_candidates
from placement.services.written_candidates import Question, WrittenAnswer, candidates_or_texts
from placement.telemetry.meters import SearchSeen

LOG = logging.getLogger(__name__)

SEARCH_HEADER = "x-placement-search"
"""``incomplete`` on an answer whose search hit its budget."""


def list_candidates(call: Call) -> Response:
    """List allocation candidates with summaries of their providers."""
    request = candidate_request(call.query, call.version)
    began = perf_counter()
    answer = _answer(call, request, began)
    if isinstance(answer, WrittenAnswer):
        return _dated(call, written_json(answer))
    if answer.cause is not None:
        call.server.meters.found_nothing(answer.cause.kind.value)
        LOG.info("There are no allocation candidates. %s", cause_in_words(answer.cause))
    elif answer.candidates and (judge := judge_in_force(call)):
        judge.note_asked(wanted_by(answer.plan))
    response = _dated(call, candidates_json(answer, call.version))
    if not answer.complete:
        response.headers[SEARCH_HEADER] = "incomplete"
    return response


def _dated(call: Call, pieces: Iterator[bytes]) -> Response:
    response = answer_in_pieces(call.request, pieces, JSON)
    call.date(response, None)
    return response


def _answer(call: Call, request: CandidateRequest, began: float) -> Answer | WrittenAnswer:
    """Answer, and report to the metrics what was seen since ``began``, even if the search ran out of steps."""
    server, options = call.server, search_options(call)
    ranking, judge = ranking_of(call), judge_in_force(call)
    answer: Answer | WrittenAnswer
    try:
        if ranking is not None and call.since(29):  # Before, the limit may influence what a tree shows.
            name, write = (call.version, call.request.query_string), partial(texts_by_tree, version=call.version)
            question = Question(name, request, options, ranking, write)
            answer = candidates_or_texts(call.database, question, server.cloud_cache, judge=judge)
        else:
            answer = allocation_candidates(
                call.database, request, options, ranking, judge=judge, cache=server.cloud_cache
            )
    except OutOfSteps:
        server.meters.searched(SearchSeen(perf_counter() - began, trees=0, candidates=0, complete=False))
        raise
    server.meters.searched(_seen(answer, perf_counter() - began))
    return answer


def _seen(answer: Answer | WrittenAnswer, duration_s: float) -> SearchSeen:
    if isinstance(answer, WrittenAnswer):
        trees, candidates = len(answer.providers), len(answer.candidates)
        return SearchSeen(duration_s, trees, candidates, complete=True, from_cache=True)
    trees = len({root for root, _choice in answer.candidates})
    return SearchSeen(duration_s, trees, len(answer.candidates), answer.complete)


ROUTES = (
    Route(
        "GET",
        "/allocation_candidates",
        list_candidates,
        rule="placement:allocation_candidates:list",
        since=(1, 10),
        answers_json=True,
        query=KEYS,
    ),
)
