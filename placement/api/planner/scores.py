"""POST /planner/v1/scores: scores of allocation requests, for external weighers."""

import re
from collections.abc import Iterable
from typing import Any

import orjson
from flask import Response
from marshmallow import ValidationError

from placement.allocators.ranking_profile import RankingProfile
from placement.api.allocation_schemas import UUID_KEY, GroupMappings, ProviderAllocation
from placement.api.call import Call
from placement.api.fields import MAX_ITEMS, Array, Mapping, Object
from placement.api.planner.index import PATH
from placement.api.planner.misplaced import profile_hint
from placement.api.planner.request_fields import ProfileField
from placement.api.routing import Route
from placement.api.validation import Schema
from placement.errors import ConfigurationError, InvalidAt
from placement.services import scores as service
from placement.services.scores import ScoredRequest
from placement.settings.planner.document import IMPORT_HINT
from placement.settings.planner.profiles import inline_profile

IS_UUID = re.compile(UUID_KEY).fullmatch


class AllocationRequest(Schema):
    """One of the allocation requests that GET /allocation_candidates returns from 1.12 on, unmodified."""

    allocations = Mapping(UUID_KEY, Object(ProviderAllocation), smallest=1)
    mappings = GroupMappings(required=False)


class AllocationRequests(Array):
    """Allocation requests. A scheduler sends one for each host, most of them for the same amounts, judged once."""

    def __init__(self) -> None:
        super().__init__(Object(AllocationRequest))
        self._entry = Object(ProviderAllocation)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> list[Any]:
        entries: dict[bytes, Any] = {}
        may_load = isinstance(value, list) and len(value) <= self.longest
        loaded = [self._loaded(request, entries) for request in value] if may_load else [None]
        return super()._deserialize(value, attr, data, **options) if None in loaded else loaded

    def _loaded(self, request: Any, entries: dict[bytes, Any]) -> dict[str, Any] | None:
        """Return a request with nothing but allocations, loaded with the entries seen before; None for any other."""
        allocations = request.get("allocations") if isinstance(request, dict) and len(request) == 1 else None
        if not isinstance(allocations, dict) or not 0 < len(allocations) <= MAX_ITEMS:
            return None
        if not all(map(IS_UUID, allocations)):
            return None
        texts = [*map(orjson.dumps, allocations.values())]
        try:
            for text, entry in zip(texts, allocations.values(), strict=True):
                if text not in entries:
                    entries[text] = self._entry.deserialize(entry)
        except ValidationError:
            return None
        return {"allocations": dict(zip(allocations, map(entries.__getitem__, texts), strict=True))}


class ScoresBody(Schema):
    """The body. Without a profile, the default one is used."""

    allocation_requests = AllocationRequests()
    profile = ProfileField(required=False)


SCHEMA = ScoresBody()


def score_requests(call: Call) -> Response:
    """Return the score of each allocation request, in the order of the body."""
    body = call.document(SCHEMA)
    profile = profile_of(call, body.get("profile"))
    levels = call.server.settings.planner.levels
    requests = [
        {uuid: entry["resources"] for uuid, entry in request["allocations"].items()}
        for request in body["allocation_requests"]
    ]
    scored = service.scores(
        call.database,
        requests,
        profile,
        levels,
        judge=call.server.fragmentation_judges.of(profile),
        cache=call.server.cloud_cache,
    )
    return call.json({"profile": profile.name, "scores": [_shown(each, levels) for each in scored]})


def profile_of(call: Call, name: str | dict[str, Any] | None) -> RankingProfile:
    """Return the profile that a body names or spells out under ``profile``, or the default one.

    Raises:
        InvalidAt: there is no such profile, or it is malformed.
        Forbidden: the caller may not define profiles inline.
    """
    planner = call.server.settings.planner
    if isinstance(name, dict):
        call.authorize("placement:planner:inline_profile")
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


def _shown(scored: ScoredRequest, levels: Iterable[str]) -> dict[str, Any]:
    """Return a score as JSON; parts that the profile does not use are null."""
    score = scored.score
    return {
        "total": score.total,
        "fit": score.fit,
        "sra": score.sra,
        "compactness": score.compactness,
        "fragmentation": score.fragmentation,
        "raw": {"fit": score.raw_fit, "sra": score.raw_sra},
        "touched": dict(zip(levels, score.touched, strict=True)),
        "keeps_proportion": score.keeps_proportion,
        "has_room": scored.has_room,
    }


ROUTES = (
    Route(
        method="POST",
        path=f"{PATH}/scores",
        view=score_requests,
        rule="placement:planner:scores",
        answers_json=True,
        takes_json=True,
        body=SCHEMA,
    ),
)
