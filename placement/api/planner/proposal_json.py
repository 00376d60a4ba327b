"""The planner's proposals as JSON: allocation requests for PUT /allocations/{consumer}, with their scores."""

from collections.abc import Mapping
from typing import Any

from placement.api.planner.explain_json import explanation_json
from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.planner_search import PlannedCandidate
from placement.domain.inventory import whole_capacity
from placement.services.planner.candidates import PlannerAnswer
from placement.store.search.summaries import Summaries

Uuids = Mapping[int, str]


def answer_json(answer: PlannerAnswer) -> dict[str, Any]:
    """Return a whole answer: the shape of GET /allocation_candidates, with additions."""
    uuids = {id_: member.uuid for id_, member in answer.members.items()}
    shown = {
        "allocation_requests": [allocation_request(one.proposal, uuids) for one in answer.candidates],
        "provider_summaries": _summaries(answer.providers),
        "scores": [_score(one, uuids, answer.levels) for one in answer.candidates],
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
        "mappings": {suffix: [uuids[one] for one in providers] for suffix, providers in proposal.mappings.items()},
    }


def _score(candidate: PlannedCandidate, uuids: Uuids, levels: tuple[str, ...]) -> dict[str, Any]:
    score, proposal = candidate.score, candidate.proposal
    shown: dict[str, Any] = {
        "total": score.total,
        "fit": score.fit,
        "sra": score.sra,
        "compactness": score.compactness,
        "fragmentation": score.fragmentation,
        "raw": {"fit": score.raw_fit, "sra": score.raw_sra},
        "touched": dict(zip(levels, proposal.touched, strict=True)),
    }
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
