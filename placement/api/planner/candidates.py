"""POST /planner/v1/candidates and /scores, GET /explain: candidates for any request, their scores, why there are none.

The planner's proposals are allocation requests for PUT /allocations/{consumer}. Scores of given ones are for external
weighers.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import orjson
from flask import Response

from placement.allocators.ranking_profile import Counts, RankingProfile
from placement.api.allocations import MAPPINGS, PROVIDER_ALLOCATION, UUID_KEY
from placement.api.call import Call
from placement.api.candidate_query import KEYS, forgiving_request
from placement.api.fields import MAX_ITEMS, Array, BodyPath, Faults, Map, Object
from placement.api.planner.explain_json import explanation_json
from placement.api.planner.request_document import Body, changes_of, ignored_in, planner_request
from placement.api.planner.request_fields import CANDIDATES, PROFILE, profile_hint
from placement.api.routing import planner_route
from placement.api.versions import MAXIMUM, Version, requested_version
from placement.candidates.compose.proposals import Proposal
from placement.candidates.explain.explanation import Condition, ConditionKind, Hint, HintKind
from placement.candidates.planner.question import wanted_of
from placement.candidates.scores import Score, ScoredRequest, TakenRows
from placement.domain.quantities import whole_capacity
from placement.domain.search_plan import plan_for
from placement.errors import ConfigurationError, InvalidAt
from placement.services import scores as service
from placement.services.allocation_candidates import explanation_of
from placement.services.planner.candidates import PlannedCandidate, PlannerAnswer, planned_candidates
from placement.services.planner.questions import PlannerOptions
from placement.settings.planner.document import IMPORT_HINT
from placement.settings.planner.profiles import inline_profile
from placement.store.search.names import Summaries

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
        judge=call.server.fragmentation_judges.get(profile.name),
    )
    touched = {
        counts: dict(zip(levels, counts, strict=True)) for counts in {request.score.touched for request in scored}
    }
    return call.json({"profile": profile.name, "scores": [_shown(request, touched) for request in scored]})


def profile_of(call: Call, name: str | dict[str, Any] | None) -> RankingProfile:
    """Return the profile that a body names or spells out, or the default one; InvalidAt, or Forbidden."""
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
    return {
        "total": score.total,
        "fit": score.fit,
        "sra": score.sra,
        "compactness": score.compactness,
        "fragmentation": score.fragmentation,
        "raw": {"fit": score.raw_fit, "sra": score.raw_sra},
        "touched": touched,
    }


Uuids = Mapping[int, str]


def answer_json(answer: PlannerAnswer) -> dict[str, Any]:
    """Return a whole answer: the shape of GET /allocation_candidates, with additions."""
    uuids = {id_: member.uuid for id_, member in answer.members.items()}
    shown = {
        "allocation_requests": [allocation_request(candidate.proposal, uuids) for candidate in answer.candidates],
        "provider_summaries": _summaries(answer.providers),
        "scores": [_score(candidate, uuids, answer.levels) for candidate in answer.candidates],
        "complete": answer.complete,
        "searched": answer.searched,
    }
    return shown if answer.explained is None else {**shown, "explanation": explanation_json(answer.explained)}


def allocation_request(proposal: Proposal, uuids: Uuids) -> dict[str, Any]:
    """Return what a proposal takes from each provider, and which providers serve each group."""
    return {
        "allocations": {
            uuids[provider]: {"resources": dict(resources)} for provider, resources in proposal.amounts.items()
        },
        "mappings": {
            suffix: [uuids[provider] for provider in providers] for suffix, providers in proposal.mappings.items()
        },
    }


def _score(candidate: PlannedCandidate, uuids: Uuids, levels: tuple[str, ...]) -> dict[str, Any]:
    score, proposal = candidate.score, candidate.proposal
    shown = score_json(score, dict(zip(levels, proposal.touched, strict=True)))
    if score.keeps_proportion is not None:
        shown["keeps_proportion"] = score.keeps_proportion
    if proposal.group_score is not None:
        shown["group"], shown["s_l"] = proposal.group_score
    if proposal.locks:
        shown["exclusive"] = {uuids[lock.provider]: lock.resource_class for lock in proposal.locks}
    if candidate.like is not None:
        shown["like"] = uuids[candidate.like]
    return shown


def _summaries(providers: Summaries) -> dict[str, Any]:
    uuids = {id_: member.uuid for id_, member in providers.members.items()}
    return {
        member.uuid: {
            "resources": {
                providers.class_names[class_id]: {"capacity": whole_capacity(total, reserved, ratio), "used": int(used)}
                for class_id, total, reserved, ratio, used in providers.stocks.get(member.id, ())
            },
            "traits": [providers.trait_names[trait] for trait in providers.traits.get(member.id, ())],
            "parent_provider_uuid": uuids[member.parent_id] if member.parent_id else None,
            "root_provider_uuid": uuids[member.root_id],
        }
        for member in providers.members.values()
    }


def plan(call: Call) -> Response:
    """Return the best candidates for a request."""
    body = call.document(CANDIDATES)
    request = planner_request(body, call.server.settings.planner)
    options, changes = options_for(call, body), changes_of(body)
    answer = planned_candidates(call.database, request, options, changes=changes)
    if options.judge is not None and answer.candidates and changes is None and not request.paths:
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
        judge=call.server.fragmentation_judges.get(profile.name),
    )


VERSION = "openstack-api-version"
POLICY = "group_policy"
POLICY_VERSION = Version(1, 25)
FIRST_VERSION = Version(1, 10)
"""Older microversions have no GET /allocation_candidates to explain."""


def explain_candidates(call: Call) -> Response:
    """Explain the candidates of a query string, read at the header's microversion, or at the newest without one."""
    version, query, ranking = requested_version(call.request.headers.get(VERSION)), call.query, call.server.ranking
    if version < FIRST_VERSION:
        version = MAXIMUM
    # A missing policy is explained, although GET /allocation_candidates refuses it.
    request = forgiving_request(query, version)
    lacks_policy = version >= POLICY_VERSION and POLICY not in query
    explained = explanation_of(
        call.database, request, locks=call.server.locks, profile=ranking.profile if ranking else None
    )
    granular = tuple(group.suffix for group in request.groups if group.is_granular)
    hint = Hint(HintKind.NO_GROUP_POLICY, Condition(ConditionKind.GROUP_POLICY, granular, "none"))
    return call.json(explanation_json(explained, [hint] if lacks_policy and len(granular) > 1 else ()))


ROUTES = (
    planner_route("GET", "/explain", explain_candidates, rule="explain", query=KEYS),
    planner_route("POST", "/candidates", plan, rule="candidates", view_rules=(INLINE_PROFILE,), body=CANDIDATES),
    planner_route("POST", "/scores", score_requests, rule="scores", view_rules=(INLINE_PROFILE,), body=SCHEMA),
)
