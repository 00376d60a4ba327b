"""The card of one host on a map: its tree in small, and what prevents one more copy of the request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placement.api.call import Call
from placement.api.planner.explain_json import explanation_json
from placement.candidates.explain.wording import in_words
from placement.errors import PlacementError
from placement.services.console.host_on_map import HostOnMap, host_on_map
from placement.services.explain import Explained
from placement.ui.map_address import requested

EXPLAIN = "placement:planner:explain"


@dataclass(frozen=True, slots=True)
class HostCard:
    """A host on a map; at most one of ``has_room``, ``in_the_way`` and ``message`` is set.

    Args:
        host: the data read; None if ``message`` says why there is none.
        has_room: whether one more copy of the request fits.
        in_the_way: the single condition without which one more would fit, in words.
        value: the value of that condition.
        example: a provider that fails it, with what it has.
        message: the first condition that leaves nothing, if no single condition is in the way.
    """

    host: HostOnMap | None
    has_room: bool = False
    in_the_way: str = ""
    value: str = ""
    example: Mapping[str, Any] | None = None
    message: str = ""


def host_card(call: Call, beginning: str, text: str) -> HostCard:
    """Return the card of the host whose uuid starts with ``beginning``, for the request in the query field."""
    settings = call.server.settings
    try:
        request = requested(call, text) if call.is_allowed(EXPLAIN) else None
        host = host_on_map(
            call.database, beginning, request, levels=settings.planner.levels, locks=settings.locks_for_all
        )
    except PlacementError as error:
        return HostCard(None, message=error.message)
    return _judged(host, host.explained) if host.explained else HostCard(host)


def _judged(host: HostOnMap, explained: Explained) -> HostCard:
    explanation, document = explained.explanation, explanation_json(explained)
    if explanation.cause is None:
        return HostCard(host, has_room=True)
    if not explanation.near_misses:
        return HostCard(host, message=document["cause"]["message"])
    first = document["near_misses"][0]
    example = next(iter(first["providers"]), None)
    condition = explanation.near_misses[0].condition
    return HostCard(host, in_the_way=in_words(condition), value=condition.value, example=example)
