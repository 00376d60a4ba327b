"""GET /allocation_candidates: where can this request go?"""

from collections.abc import Iterable
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.candidate_query import candidate_request
from placement.api.routing import Route
from placement.api.versions import Version
from placement.services.allocation_candidates import (
    Answer,
    Candidate,
    Plan,
    SearchOptions,
    Summary,
    allocation_candidates,
)

INCOMPLETE = "x-placement-search"
"""Header of an answer whose search was cut off by its budget."""


def list_candidates(call: Call) -> Response:
    """Answer with candidates and a summary of the providers they touch."""
    request = candidate_request(call.query, call.version)
    answer = allocation_candidates(call.database, request, _options(call))
    response = call.json(
        {
            "allocation_requests": list(_allocation_requests(answer, call.version)),
            "provider_summaries": _provider_summaries(answer, call.version),
        }
    )
    if not answer.complete:
        response.headers[INCOMPLETE] = "incomplete"
    return response


def _options(call: Call) -> SearchOptions:
    chosen = call.server.settings.placement
    return SearchOptions(
        most=chosen.max_allocation_candidates if chosen.max_allocation_candidates >= 0 else None,
        breadth_first=chosen.allocation_candidates_generation_strategy == "breadth-first",
        shuffled=chosen.randomize_allocation_candidates,
    )


def _allocation_requests(answer: Answer, version: Version) -> Iterable[dict[str, Any]]:
    """Yield each candidate in the form that PUT /allocations takes at the same microversion."""
    uuids = {id_: provider.uuid for id_, provider in answer.providers.items()}
    for candidate in answer.candidates:
        amounts = _amounts(answer.plan, candidate, uuids)
        if version < (1, 12):
            shown = [{"resource_provider": {"uuid": uuid}, "resources": taken} for uuid, taken in amounts.items()]
            yield {"allocations": shown}
            continue
        document: dict[str, Any] = {"allocations": {uuid: {"resources": taken} for uuid, taken in amounts.items()}}
        if version >= (1, 34):
            document["mappings"] = _mappings(answer.plan, candidate, uuids)
        yield document


def _amounts(plan: Plan, candidate: Candidate, uuids: dict[int, str]) -> dict[str, dict[str, int]]:
    """Return what a candidate takes of each class from each provider, summed over its groups."""
    amounts: dict[str, dict[str, int]] = {}
    for slot, provider in zip(plan.slots, candidate.choice, strict=True):
        if slot.resources:
            taken = amounts.setdefault(uuids[provider], {})
            for name, amount in slot.resources:
                taken[name] = taken.get(name, 0) + amount
    return amounts


def _mappings(plan: Plan, candidate: Candidate, uuids: dict[int, str]) -> dict[str, list[str]]:
    """Return which providers serve each group, each once."""
    mappings: dict[str, list[str]] = {}
    for slot, provider in zip(plan.slots, candidate.choice, strict=True):
        serving = mappings.setdefault(slot.suffix, [])
        if uuids[provider] not in serving:
            serving.append(uuids[provider])
    return mappings


def _provider_summaries(answer: Answer, version: Version) -> dict[str, dict[str, Any]]:
    providers = answer.providers
    if version >= (1, 29):
        shown = [provider for provider in providers.values() if provider.root_id in answer.taken_from]
    else:
        used = {provider for candidate in answer.candidates for provider in candidate.choice}
        shown = [provider for id_, provider in providers.items() if id_ in used]
    asked = None if version >= (1, 27) else {name for slot in answer.plan.slots for name, _ in slot.resources}
    return {provider.uuid: _summary(provider, providers, asked, version) for provider in shown}


def _summary(
    provider: Summary, providers: dict[int, Summary], asked: set[str] | None, version: Version
) -> dict[str, Any]:
    """Return one summary; before 1.27 only with the classes that the request asks for."""
    document: dict[str, Any] = {
        "resources": {
            name: {"capacity": capacity, "used": used}
            for name, capacity, used in provider.resources
            if asked is None or name in asked
        }
    }
    if version >= (1, 17):
        document["traits"] = provider.traits
    if version >= (1, 29):
        parent = provider.parent_id
        document["parent_provider_uuid"] = None if parent is None else providers[parent].uuid
        document["root_provider_uuid"] = providers[provider.root_id].uuid
    return document


ROUTES = (
    Route(
        method="GET",
        path="/allocation_candidates",
        view=list_candidates,
        rule="placement:allocation_candidates:list",
        since=(1, 10),
        answers_json=True,
    ),
)
