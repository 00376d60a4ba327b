"""The request for scores and its answer, for any scheduler: what to send to Placement, and how to read what it says.

Only the Python standard library is needed. With a session of keystoneauth1, for example:

    body = scores_body(candidates["allocation_requests"])
    answer = session.post(SCORES_PATH, json=body, endpoint_filter={"service_type": "placement"})
    weights = weights_of(answer.json(), number=len(body["allocation_requests"]))
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

SCORES_PATH = "/planner/v1/scores"

BEST = 100.0
"""The highest weight; the lowest of a candidate that has room and keeps the profile's proportion is 0."""

BREAKS_PROPORTION = -BEST
"""Added for candidates that break the profile's proportion, which come after all others."""

HAS_NO_ROOM = -2 * BEST
"""Added for candidates that no longer have room: nova would claim them in vain."""


class OddAnswer(Exception):
    """The answer is not one score for each request."""


def scores_body(allocation_requests: Iterable[Mapping[str, Any]], *, profile: str | None = None) -> dict[str, Any]:
    """Return the body of POST /planner/v1/scores.

    Args:
        allocation_requests: as GET /allocation_candidates returns them, from microversion 1.12 on.
        profile: the name of a profile of planner.yaml; without it, Placement uses its default profile.

    >>> scores_body([{"allocations": {"5f1c": {"resources": {"VCPU": 2}}}, "mappings": {"": ["5f1c"]}}])
    {'allocation_requests': [{'allocations': {'5f1c': {'resources': {'VCPU': 2}}}}]}
    """
    body: dict[str, Any] = {
        "allocation_requests": [{"allocations": request["allocations"]} for request in allocation_requests]
    }
    return {**body, "profile": profile} if profile else body


def weights_of(answer: object, *, number: int) -> list[float]:
    """Return the weight of each request, in their order: the greatest is what Placement itself ranks first.

    Args:
        answer: the decoded JSON of the answer.
        number: how many requests were sent.

    Raises:
        OddAnswer: it is anything but one score for each request.

    >>> weights_of({"scores": [{"total": 62.5}, {"total": 81.25, "has_room": False}]}, number=2)
    [62.5, -118.75]
    """
    scores = answer.get("scores") if isinstance(answer, dict) else None
    if not isinstance(scores, list) or len(scores) != number:
        raise OddAnswer(f"expected {number} scores, got {str(answer)[:200]}")
    return [_weight(score) for score in scores]


def _weight(score: object) -> float:
    total = score.get("total") if isinstance(score, dict) else None
    if isinstance(total, bool) or not isinstance(total, int | float) or not math.isfinite(total):
        raise OddAnswer(f"expected a score with a total, got {str(score)[:200]}")
    assert isinstance(score, dict)
    breaks = BREAKS_PROPORTION if score.get("keeps_proportion") is False else 0.0
    lacks = HAS_NO_ROOM if score.get("has_room") is False else 0.0
    return total + breaks + lacks
