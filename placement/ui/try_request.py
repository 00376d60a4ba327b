"""Trying a request: what GET /allocation_candidates finds, drawn on provider trees, or why it finds nothing."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Response, url_for

from placement.allocators import Number
from placement.allocators.ranking_profile import RankingProfile
from placement.api.call import Call, root_url
from placement.api.candidate_query import candidate_request
from placement.api.errors import status_of
from placement.api.planner.candidates import FIRST_VERSION
from placement.api.planner.explain_json import ExplainJson, explanation_json
from placement.api.query import Query
from placement.api.versions import MAXIMUM, Version, requested_version
from placement.candidates.scores import Score
from placement.candidates.search import Candidate
from placement.errors import Forbidden, Invalid, PlacementError
from placement.formats.pasting import pasted
from placement.services.allocation_candidates import CandidateQuestion
from placement.services.console.hosts import NamesInUse, names_in_use
from placement.services.scores import CandidateInDetail, Showing, Trial, trial
from placement.ui.candidate_drawing import Drawings, DrawnNode, LeftAmount, givers
from placement.ui.page import Page, Paging, paging_of, show
from placement.ui.request_form import form_fields, query_string

NEWEST = str(MAXIMUM)
WRITTEN_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}|latest")
MAX_CANDIDATES = 1000
"""How many candidates to search for, nova's default."""

DRAWN = 10
"""How many candidates to draw on one page."""

SCORES = "placement:planner:scores"
EXPLAIN = "placement:planner:explain"

CREDENTIALS = {"http_basic": '-u "$OS_USERNAME:$OS_PASSWORD"', "noauth2": "-H 'X-Auth-Token: admin'"}

_OF_CLASSES = re.compile(r"(resources[\w-]*=)([^&]*)")
_OF_TRAITS = re.compile(r"((?:required[\w-]*|root_required)=)([^&]*)")
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
MAX_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class ScorePart:
    """A part of a score, from 0 to 100, with its weight and what it measures."""

    name: str
    meaning: str
    value: float
    weight: Number


@dataclass(frozen=True, slots=True)
class DrawnCandidate:
    """A candidate as shown.

    ``number`` is its position, from 1; ``amounts_left`` what its own tree then has left; ``touched`` the number of
    places of each level; ``elsewhere`` its position in the compared profile's order, None beyond the list.
    """

    number: int
    trees: Sequence[DrawnNode]
    amounts_left: Mapping[str, LeftAmount]
    givers: Sequence[DrawnNode]
    score: Score | None
    parts: Sequence[ScorePart]
    touched: Mapping[str, int]
    elsewhere: int | None = None


@dataclass(frozen=True, slots=True)
class CandidatePart:
    """A page of candidates, of ``count`` to page through; there are more than that if it ``goes_on``.

    They are ``complete`` if the search stayed within its budget. ``profile`` ranked them, ``compared`` is another one.
    """

    rows: Sequence[DrawnCandidate]
    count: int
    goes_on: bool
    complete: bool
    has_more: bool
    profile: str | None
    compared: str | None = None


def try_request(call: Call) -> Response:
    """Show the form; with a request, also its candidates, or why there are none."""
    arguments, planner = call.request.args, call.server.settings.planner
    text = arguments.get("query", "").strip()
    version = arguments.get("microversion", "").strip() or NEWEST
    if not text and "suffix" in arguments:
        text = query_string(arguments.to_dict(flat=False))
        return Response(status=303, headers={"location": url_for("ui.request", query=text, microversion=version)})
    if not text:
        return _page(call, text, version)
    try:
        text = pasted(text, planner.flavors, planner.flavor_root_required)
        return _page(call, text, version, **_outcome(call, text, version))
    except Forbidden:
        raise
    except PlacementError as error:
        response = _page(call, text, version, fault=error.message)
        response.status_code = int(status_of(error))
        return response


def _page(call: Call, text: str, version: str, **outcome: Any) -> Response:
    values = {"fault": None, "found": None, "explanation": None, "paging": None, "curl": None, **outcome}
    planner = call.server.settings.planner
    names = names_in_use(call.database)
    return show(
        "request.html",
        text=text,
        microversion=version,
        form=form_fields(_readable(text)),
        known=names,
        meant=meant(text, names) if values["found"] is None else (),
        flavors=planner.flavors,
        profiles=[name for name in planner.profiles if name != planner.default_profile],
        compare=call.request.args.get("compare", ""),
        same_fact=_same_fact(values["explanation"]),
        **values,
    )


def _same_fact(explanation: ExplainJson | None) -> str:
    """Return the cause in terms of the near miss that would help, if both describe the same fact.

    Which condition excludes the last provider depends on their order: that no provider has a trait may mean that those
    with the trait have too little left.
    """
    if explanation is None or not (cause := explanation["cause"]):
        return ""
    for miss in explanation["near_misses"]:
        largest = miss.get("largest")
        class_name, _, amount = miss.get("value", "").partition(":")
        if not largest or not amount.isdecimal() or miss["value"] == cause.get("value"):
            continue
        if miss.get("groups") == cause.get("groups"):
            return (
                f"Among providers that meet all other conditions, none has more than {largest['amount']} {class_name} "
                f"left; the request needs {amount} {class_name} from one."
            )
    return ""


def _readable(text: str) -> Query:
    """Parse as much of a query string as possible, for the form; return an empty one if it is malformed."""
    try:
        return Query.parse(text.encode())
    except PlacementError:
        return Query([])


def _outcome(call: Call, text: str, written: str) -> dict[str, Any]:
    """Return what a request finds.

    Raises:
        PlacementError: the API would refuse the query string with the same message.
    """
    version = _version(written)
    query = Query.parse(text.encode())
    paging = paging_of(call.request, size=DRAWN)
    showing = Showing(
        first=paging.first,
        count=DRAWN,
        profile=call.server.settings.planner.profile_in_force if call.is_allowed(SCORES) else None,
        levels=call.server.settings.planner.levels,
        explains=call.is_allowed(EXPLAIN),
    )
    tried = _tried(call, query, version, showing)
    outcome: dict[str, Any] = {"paging": paging, "curl": _curl(call, query, version)}
    if tried.answer.candidates:
        return {**outcome, "found": _part(call, tried, paging, _elsewhere(call, query, version))}
    return {**outcome, "explanation": explanation_json(tried.explained) if tried.explained else None}


def _version(written: str) -> Version:
    if not WRITTEN_VERSION.fullmatch(written):
        raise Invalid(f"The microversion is not valid; an example is {NEWEST}.")
    version = requested_version(f"placement {written}")
    if version < FIRST_VERSION:
        raise Invalid(f"GET /allocation_candidates is available from microversion {FIRST_VERSION}.")
    return version


def _elsewhere(call: Call, query: Query, version: Version) -> tuple[str, dict[Candidate, int]] | None:
    """Return the profile named by ``compare``, and each candidate's position in its order."""
    name = call.request.args.get("compare", "")
    profile = call.server.settings.planner.profiles.get(name)
    if profile is None or not call.server.settings.ranking.enabled or not call.is_allowed(SCORES):
        return None
    answer = _tried(call, query, version, Showing(count=0), profile=profile).answer
    return name, {candidate: place for place, candidate in enumerate(answer.candidates, start=1)}


def _tried(
    call: Call, query: Query, version: Version, showing: Showing, *, profile: RankingProfile | None = None
) -> Trial:
    request = candidate_request(query, version)
    # One more than shown tells whether there are more. No randomness, so that successive pages are consistent.
    request = replace(request, limit=min(request.limit or MAX_CANDIDATES + 1, MAX_CANDIDATES + 1))
    options, ranking = replace(call.server.search, shuffled=False), call.ranking
    ranking = ranking and replace(ranking, seed=None, profile=profile or ranking.profile)
    judge = call.server.fragmentation_judges.get(profile.name) if profile else call.server.judge
    return trial(call.database, CandidateQuestion(request, options, ranking, judge), showing)


def _part(call: Call, tried: Trial, paging: Paging, compared: tuple[str, dict[Candidate, int]] | None) -> CandidatePart:
    settings, drawings = call.server.settings, Drawings(tried)
    levels = tuple(settings.planner.levels)
    number_found = len(tried.answer.candidates)
    room = max(0, MAX_CANDIDATES - paging.first)
    rows = []
    for number, served in enumerate(tried.shown[:room], start=paging.first + 1):
        trees = drawings.trees(served)
        row = DrawnCandidate(
            number,
            trees,
            drawings.left_after(served),
            [node for tree in trees for node in givers(tree)],
            served.score,
            _parts(served, settings.planner.profile_in_force),
            dict(zip(levels, served.score.touched, strict=True)) if served.score else {},
            elsewhere=compared and compared[1].get(tried.answer.candidates[number - 1]),
        )
        rows.append(row)
    return CandidatePart(
        rows,
        count=min(number_found, MAX_CANDIDATES),
        goes_on=number_found > MAX_CANDIDATES,
        complete=tried.answer.complete,
        has_more=paging.first + DRAWN < min(number_found, MAX_CANDIDATES),
        profile=settings.planner.profile_in_force.name if settings.ranking.enabled else None,
        compared=compared and compared[0],
    )


def _parts(served: CandidateInDetail, profile: RankingProfile) -> list[ScorePart]:
    """Return the parts of a score that the profile weighs."""
    if served.score is None:
        return []
    score, fit, sra = served.score, profile.strategy.fit, profile.strategy.sra
    fragmentation = profile.fragmentation.weight if profile.fragmentation else 0
    parts = (
        ("fit", "how well the fullness of the host suits the profile", score.fit, fit.weight if fit else 0),
        ("scarce", "whether scarce resources that are not requested stay free", score.sra, sra.weight if sra else 0),
        ("compactness", "how few NUMA nodes and switches it touches", score.compactness, profile.compactness),
        ("fragmentation", "how useful the devices left free are for expected work", score.fragmentation, fragmentation),
    )
    return [ScorePart(name, meaning, value, weight) for name, meaning, value, weight in parts if value is not None]


def _curl(call: Call, query: Query, version: Version) -> str:
    """Return the shell command that sends the same request to the API."""
    url = f"{root_url(call.request.environ)}/allocation_candidates?{urlencode(query.pairs, safe=':,!')}"
    credentials = CREDENTIALS.get(call.server.settings.auth_strategy or "", '-H "X-Auth-Token: $OS_TOKEN"')
    return f"curl -s {credentials} -H 'OpenStack-API-Version: placement {version}' {shlex.quote(url)}"


PAGES = (
    Page(
        path="/request",
        view=try_request,
        endpoint="request",
        title="Try a request",
        rules=("placement:allocation_candidates:list", "placement:resource_providers:list"),
    ),
)


class Meant(NamedTuple):
    """A name as written, the similar name, and the request that uses it instead."""

    written: str
    name: str
    query: str


def meant(query: str, names: NamesInUse) -> list[Meant]:
    """Return suggestions for the names in a query string that the cloud does not have."""
    of_classes, of_traits = _OF_CLASSES.findall(query), _OF_TRAITS.findall(query)
    return [
        *_like(query, [value for _, value in of_classes], names.classes),
        *_like(query, [value for _, value in of_traits], names.traits),
    ][:MAX_SUGGESTIONS]


def _like(query: str, values: Sequence[str], names: Sequence[str]) -> list[Meant]:
    written = dict.fromkeys([name for value in values for name in _NAME.findall(value)])
    return [
        Meant(name, like, re.sub(rf"\b{re.escape(name)}\b", like, query))
        for name in written
        if name not in names
        for like in get_close_matches(name, names, n=1)
    ]
