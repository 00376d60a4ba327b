"""POST /planner/v1/scores: scores of allocation requests, for external weighers."""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import orjson
from flask import Response

from placement.allocators.ranking_profile import Counts, RankingProfile
from placement.api.allocations import MAPPINGS, PROVIDER_ALLOCATION, UUID_KEY
from placement.api.call import Call
from placement.api.fields import MAX_ITEMS, Array, BodyPath, Faults, Map, Object
from placement.api.planner.request_fields import PROFILE, profile_hint
from placement.api.routing import planner_route
from placement.candidates.scores import Score, ScoredRequest, TakenRows
from placement.errors import ConfigurationError, InvalidAt
from placement.services import scores as service
from placement.settings.planner.document import IMPORT_HINT
from placement.settings.planner.profiles import inline_profile

INLINE_PROFILE = "placement:planner:inline_profile"
"""The rule for requests that define a profile."""
LENGTH_OF_UUID = 36
ARE_OF_UUIDS = re.compile(UUID_KEY.replace("{36}", "*")).fullmatch
"""Whether a text, of many uuids at once, has only their characters."""


ALLOCATION_REQUEST = Object({"allocations": Map(UUID_KEY, PROVIDER_ALLOCATION, smallest=1), "mappings?": MAPPINGS})
"""One of the allocation requests that GET /allocation_candidates returns from 1.12 on, unmodified."""


class AllocationRequests(Array):
    """Allocation requests. A scheduler sends one for each host, most of them for the same amounts, validated once."""

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the requests in rows."""
        try:
            is_plain = isinstance(value, list) and len(value) <= MAX_ITEMS and {*map(len, value)} <= {1}
            rows = self._rows([request["allocations"] for request in value]) if is_plain else None
        except (TypeError, KeyError, AttributeError):
            rows = None
        if rows is not None:
            return rows
        # There are mappings, or faults: every request is validated as a whole.
        faults_before = len(faults)
        requests = super().load(value, path, faults)
        if len(faults) > faults_before:
            return None
        taken = [request["allocations"] for request in requests]
        return TakenRows.from_requests(
            [{uuid: entry["resources"] for uuid, entry in entries.items()} for entries in taken]
        )

    def _rows(self, requests: Sequence[dict[str, Any]]) -> TakenRows[str] | None:
        """Return allocations in rows; None if something in them is wrong."""
        sizes, uuids = [*map(len, requests)], [*chain.from_iterable(requests)]
        if min(sizes, default=1) < 1 or max(sizes, default=1) > MAX_ITEMS:
            return None
        if {*map(len, uuids)} - {LENGTH_OF_UUID} or not ARE_OF_UUIDS("".join(uuids)):
            return None
        numbers: dict[bytes, int] = {}
        entries = chain.from_iterable(request.values() for request in requests)
        amounts = [numbers.setdefault(text, len(numbers)) for text in map(orjson.dumps, entries)]
        faults: Faults = []
        distinct = [PROVIDER_ALLOCATION.load(orjson.loads(text), (), faults) for text in numbers]
        return None if faults else TakenRows(sizes, uuids, amounts, [entry["resources"] for entry in distinct])


SCHEMA = Object({"allocation_requests": AllocationRequests(ALLOCATION_REQUEST), "profile?": PROFILE})
"""Without a profile, the default one is used."""


def score_requests(call: Call) -> Response:
    """Return the score of each allocation request, in the order of the body."""
    body = call.document(SCHEMA)
    profile = profile_of(call, body.get("profile"))
    levels = call.server.settings.planner.levels
    scored = service.scores(
        call.database,
        body["allocation_requests"],
        profile,
        levels,
        judge=call.server.fragmentation_judges.judge_for(profile),
    )
    touched = {
        counts: dict(zip(levels, counts, strict=True)) for counts in {request.score.touched for request in scored}
    }
    return call.json({"profile": profile.name, "scores": [_shown(request, touched) for request in scored]})


def profile_of(call: Call, name: str | dict[str, Any] | None) -> RankingProfile:
    """Return the profile that a body names or spells out under ``profile``, or the default one.

    Raises:
        InvalidAt: there is no such profile, or it is malformed.
        Forbidden: the caller may not define profiles inline.
    """
    planner = call.server.settings.planner
    if isinstance(name, dict):
        call.authorize(INLINE_PROFILE)
        try:
            return inline_profile(name, planner.devices)
        except ConfigurationError as wrong:
            reason = str(wrong).removeprefix("profile, line 1: ")
            hint = profile_hint(name) if IMPORT_HINT in reason else ""
            raise InvalidAt(["profile"], f"{reason.removesuffix(IMPORT_HINT)}{hint}") from wrong
    if name is None:
        return planner.profile_in_force
    if name not in planner.profiles:
        raise InvalidAt(["profile"], f"There is no profile {name!r}; there are {', '.join(planner.profiles)}.")
    return planner.profiles[name]


def _shown(scored: ScoredRequest, touched: dict[Counts, dict[str, int]]) -> dict[str, Any]:
    """Return a scored request as JSON, given how numbers of places are shown."""
    shown = score_json(scored.score, touched[scored.score.touched])
    shown["keeps_proportion"] = scored.score.keeps_proportion
    shown["has_room"] = scored.has_room
    return shown


def score_json(score: Score, touched: dict[str, int]) -> dict[str, Any]:
    """Return a score as JSON, with how many places it touches at each level; unused parts of a profile are null."""
    total, fit, sra, compactness, fragmentation, _touched, _keeps_proportion, raw_fit, raw_sra = score
    return {
        "total": total,
        "fit": fit,
        "sra": sra,
        "compactness": compactness,
        "fragmentation": fragmentation,
        "raw": {"fit": raw_fit, "sra": raw_sra},
        "touched": touched,
    }


ROUTES = (planner_route("POST", "/scores", score_requests, rule="scores", view_rules=(INLINE_PROFILE,), body=SCHEMA),)
