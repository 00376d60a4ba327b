"""POST /planner/v1/scores: scores of allocation requests, for external weighers."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import orjson
from flask import Response
from marshmallow import ValidationError

from placement.allocators.ranking_profile import RankingProfile
from placement.api.allocations import UUID_KEY, GroupMappings, ProviderAllocation
from placement.api.call import Call
from placement.api.fields import MAX_ITEMS, Array, Mapping, Object, Schema
from placement.api.planner.request_fields import ProfileField, profile_hint
from placement.api.routing import PLANNER_PATH, Route
from placement.candidates.request_scores import ScoredRequest, TakenRows
from placement.errors import ConfigurationError, InvalidAt
from placement.services import scores as service
from placement.settings.planner.document import IMPORT_HINT
from placement.settings.planner.profiles import inline_profile

IS_UUID = re.compile(UUID_KEY).fullmatch


class AllocationRequest(Schema):
    """One of the allocation requests that GET /allocation_candidates returns from 1.12 on, unmodified."""

    allocations = Mapping(UUID_KEY, Object(ProviderAllocation), smallest=1)
    mappings = GroupMappings(required=False)


class AllocationRequests(Array):
    """Allocation requests. A scheduler sends one for each host, most of them for the same amounts, validated once."""

    def __init__(self) -> None:
        super().__init__(Object(AllocationRequest))
        self._entry = Object(ProviderAllocation)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        try:
            is_plain = isinstance(value, list) and len(value) <= self.longest and {*map(len, value)} <= {1}
            rows = self._rows([request["allocations"] for request in value]) if is_plain else None
        except (TypeError, KeyError, AttributeError, ValidationError):
            rows = None
        if rows is not None:
            return rows
        # There are mappings, or faults: every request is validated as a whole.
        requests = [request["allocations"] for request in super()._deserialize(value, attr, data, **options)]
        return TakenRows.of([{uuid: entry["resources"] for uuid, entry in taken.items()} for taken in requests])

    def _rows(self, requests: Sequence[dict[str, Any]]) -> TakenRows[str] | None:
        """Return allocations in rows; None if a key of theirs is wrong, or their number.

        Raises:
            ValidationError: an entry is wrong.
        """
        sizes, uuids = [*map(len, requests)], [*chain.from_iterable(requests)]
        if not all(0 < size <= MAX_ITEMS for size in sizes) or not all(map(IS_UUID, uuids)):
            return None
        numbers: dict[bytes, int] = {}
        entries = chain.from_iterable(request.values() for request in requests)
        amounts = [numbers.setdefault(text, len(numbers)) for text in map(orjson.dumps, entries)]
        distinct = [self._entry.deserialize(orjson.loads(text))["resources"] for text in numbers]
        return TakenRows(sizes, uuids, amounts, distinct)


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
    scored = service.scores(
        call.database,
        body["allocation_requests"],
        profile,
        levels,
        judge=call.server.fragmentation_judges.of(profile),
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
    total, fit, sra, compactness, fragmentation, touched, keeps_proportion, raw_fit, raw_sra = scored.score
    return {
        "total": total,
        "fit": fit,
        "sra": sra,
        "compactness": compactness,
        "fragmentation": fragmentation,
        "raw": {"fit": raw_fit, "sra": raw_sra},
        "touched": dict(zip(levels, touched, strict=True)),
        "keeps_proportion": keeps_proportion,
        "has_room": scored.has_room,
    }


ROUTES = (
    Route(
        "POST",
        f"{PLANNER_PATH}/scores",
        score_requests,
        rule="placement:planner:scores",
        answers_json=True,
        body=SCHEMA,
    ),
)
