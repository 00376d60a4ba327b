"""Answers to claims that place as many members as fit: one document, or lines streamed while members are placed."""

from collections.abc import Iterable, Iterator, Sequence
from contextvars import copy_context
from itertools import chain
from typing import Any

import orjson
from flask import Response

from placement.api.call import JSON
from placement.errors import Conflict, PlacementError
from placement.services.planner.claims import Outcome
from placement.services.planner.drafting import ClaimMember
from placement.services.planner.refusals import NoCandidate

LINES = "application/x-ndjson"

Lines = tuple[list[str], list[str]]
"""The lines of placed members, and those of refused ones."""


def what_fitted(members: Sequence[ClaimMember], outcomes: Sequence[Outcome]) -> Response:
    """Answer with the placed and the refused members, each in the order of the request.

    Raises:
        Conflict: no member was placed; the reason is the first member's.
    """
    answers = {uuid: text for outcome in outcomes for uuid, text in outcome.answers.items()}
    refused = {uuid: reason for outcome in outcomes for uuid, reason in outcome.refused.items()}
    if not answers:
        raise refused[members[0].uuid]
    placed = ",".join([answers[member.uuid] for member in members if member.uuid in answers])
    others = [_refused(member.uuid, refused[member.uuid]) for member in members if member.uuid in refused]
    text = f'{{"members":[{placed}],"refused":{orjson.dumps(others).decode()}}}'
    return Response(text, 201 if any(outcome.is_new for outcome in outcomes) else 200, content_type=JSON)


def _refused(consumer_uuid: str, reason: Conflict) -> dict[str, Any]:
    is_cut_off = isinstance(reason, NoCandidate) and not reason.complete
    refusal = {"consumer": consumer_uuid, "code": reason.code, "detail": reason.message}
    return refusal | ({"complete": False} if is_cut_off else {})


def streamed(outcomes: Iterator[Outcome]) -> Response:
    """Answer with a line for each member once it is allocated or finally refused, then a line with their numbers.

    An error in the first portion becomes a normal error response; a later one becomes the last line.
    """
    first = [_lines_of(next(outcomes))]
    # Work done while the answer is sent still belongs to the request's caller.
    context = copy_context()
    rest = iter(lambda: context.run(_next_lines, outcomes), None)
    return Response(_counted(chain(first, rest)), 200, content_type=LINES)


def _lines_of(outcome: Outcome) -> Lines:
    refused = [orjson.dumps({"refused": _refused(*one)}).decode() for one in outcome.refused.items()]
    return list(outcome.answers.values()), refused


def _next_lines(outcomes: Iterator[Outcome]) -> Lines | None:
    outcome = next(outcomes, None)
    return None if outcome is None else _lines_of(outcome)


def _counted(lines: Iterable[Lines]) -> Iterator[bytes]:
    placed = refused = 0
    try:
        for of_placed, of_refused in lines:
            placed, refused = placed + len(of_placed), refused + len(of_refused)
            yield "".join([f"{line}\n" for line in (*of_placed, *of_refused)]).encode()
    except PlacementError as error:
        yield orjson.dumps({"error": {"code": error.code, "detail": error.message}}) + b"\n"
    else:
        yield orjson.dumps({"placed": placed, "refused": refused}) + b"\n"
