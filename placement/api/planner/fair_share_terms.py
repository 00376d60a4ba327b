"""A claim's fair-share terms: ``"fair_share": {"enforce": true, "pending": [...], "limits": {...}}``."""

from collections.abc import Mapping, Sequence
from typing import Any

from placement.api import fields
from placement.api.call import Call
from placement.api.fields import Array, JsonNumber, Object
from placement.api.planner.fair_share_bodies import Pending, wishes_of
from placement.api.planner.request_fields import Flag
from placement.api.validation import Schema
from placement.services.fair_share.gate import Terms, UnfairClaim, unfair_claims
from placement.services.planner.drafting import ClaimMember

QUEUE = "[^/]+(/[^/]+)*"


class FairShareTerms(Schema):
    """Whether to enforce fair shares, who else waits, and the largest part of any class that queues may hold."""

    enforce = Flag()
    pending = Array(Object(Pending), required=False)
    limits = fields.Mapping(QUEUE, JsonNumber(minimum=0, maximum=1), required=False)


def unfair_members(call: Call, body: Mapping[str, Any], members: Sequence[ClaimMember]) -> Mapping[str, UnfairClaim]:
    """Return, by uuid of the consumer, why members are refused by the terms of a claim, if it has any.

    Raises:
        InvalidAt: the terms name something that does not exist.
    """
    entry = body.get("fair_share", {"enforce": False})
    if not entry["enforce"]:
        return {}
    wishes = wishes_of(entry.get("pending", ()), call.server.settings.planner, "fair_share", "pending")
    terms = Terms(wishes, entry.get("limits"), whole=body.get("all_or_nothing", True), where=("fair_share",))
    return unfair_claims(call.database, call.server.usage_cache, members, terms)
