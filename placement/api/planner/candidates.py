"""POST /planner/v1/candidates: allocation candidates for requests that no query string can express.

The planner's proposals are allocation requests for PUT /allocations/{consumer}, with their scores.
"""

from collections.abc import Mapping
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.planner.explain_json import explanation_json
from placement.api.planner.request_document import Body, changes_of, ignored_in, planner_request
from placement.api.planner.request_schemas import CANDIDATES
from placement.api.planner.scores import INLINE_PROFILE, profile_of, score_json
from placement.api.routing import planner_route
from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.question import wanted_of
from placement.domain.inventory import whole_capacity
from placement.domain.search_plan import plan_for
from placement.services.planner.candidates import PlannedCandidate, PlannerAnswer, planned_candidates
from placement.services.planner.changes import AS_THEY_ARE
from placement.services.planner.questions import PlannerOptions
from placement.store.search.summaries import Summaries

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
    if options.judge is not None and answer.candidates and changes == AS_THEY_ARE and not request.paths:
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
        judge=call.server.fragmentation_judges.judge_for(profile),
    )


ROUTES = (planner_route("POST", "/candidates", plan, rule="candidates", view_rules=(INLINE_PROFILE,), body=CANDIDATES),)
