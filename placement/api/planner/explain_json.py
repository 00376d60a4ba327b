"""Explanations as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placement.candidates.explain.explanation import (
    UNITS,
    Condition,
    DemandCounts,
    Hint,
    NearMiss,
    Remainder,
    Shortfall,
    cause_in_words,
)
from placement.services.allocation_candidates import Explained

ExplainJson = dict[str, Any]

COUNTS = ("providers", "trees")


def explanation_json(explained: Explained, more_hints: Iterable[Hint] = ()) -> ExplainJson:
    """Return an explanation as JSON; ``more_hints`` are those that only the query string reveals."""
    explanation = explained.explanation
    return {
        "trees_with_candidates": explanation.trees_with_candidates,
        "complete": explanation.complete,
        "cause": _cause(explanation.cause, explanation.shortfall),
        "demands": [_demand(demand) for demand in explanation.demands],
        "trees": [_step(step) for step in explanation.trees],
        "near_misses": [_near_miss(near_miss, explained) for near_miss in explanation.near_misses],
        "hints": [_hint(hint, explained) for hint in (*explanation.hints, *more_hints)],
    }


def telling_steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a document that are worth showing, without rules about units that exclude nothing."""
    before: Mapping[str, Any] = {}
    for step in steps:
        idle = all(step.get(count) == before.get(count) for count in COUNTS)
        before = step
        if step["condition"] not in UNITS or not idle:
            yield step


def _cause(condition: Condition | None, shortfall: Shortfall | None) -> ExplainJson | None:
    if condition is None:
        return None
    return {**_condition(condition), "message": cause_in_words(condition, shortfall), **_shortfall(shortfall)}


def _shortfall(shortfall: Shortfall | None) -> ExplainJson:
    if shortfall is None:
        return {}
    return {"shortfall": {"group": shortfall.group, "asked": shortfall.requested, "most": shortfall.available}}


def _condition(condition: Condition) -> ExplainJson:
    return {"condition": condition.kind.value, "groups": list(condition.groups), "value": condition.value}


def _demand(demand: DemandCounts) -> ExplainJson:
    return {
        "groups": list(demand.groups),
        "resources": dict(demand.resources),
        "steps": [_step(step) for step in demand.steps],
    }


def _step(step: Remainder) -> ExplainJson:
    document = {**_condition(step.condition), "text": step.condition.in_words}
    if step.providers is not None:
        document["providers"] = step.providers
    return {**document, "trees": step.trees}


def _near_miss(near_miss: NearMiss, explained: Explained) -> ExplainJson:
    return {
        **_condition(near_miss.condition),
        "message": near_miss.in_words,
        "trees": near_miss.trees,
        "complete": near_miss.complete,
        "providers": [{**_provider(example.provider, explained), **example.facts} for example in near_miss.examples],
        "largest": near_miss.largest._asdict() if near_miss.largest else None,
        **_shortfall(near_miss.shortfall),
    }


def _hint(hint: Hint, explained: Explained) -> ExplainJson:
    document = {"hint": hint.kind.value, **_condition(hint.condition), "message": hint.in_words}
    if hint.split is not None:
        document["trees"] = hint.trees
    if hint.provider is not None and hint.owner is not None:
        document["trees"] = hint.trees
        document["provider"] = _provider(hint.provider, explained)
        document["found_on"] = _provider(hint.owner, explained)
    return document


def _provider(provider: int, explained: Explained) -> ExplainJson:
    named = explained.providers[provider]
    return {"uuid": named.uuid, "name": named.name, "root_provider_uuid": named.root_uuid}
