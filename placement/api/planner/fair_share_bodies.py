"""Schemas of the fair-share requests and of a claim's terms, and the values that they describe."""

from collections import abc
from typing import Any

from placement.api.allocation_schemas import UUID_KEY
from placement.api.call import Call
from placement.api.fields import MAX_COLUMN_VALUE, Array, Integer, JsonNumber, JsonText, Mapping, Object, Uuid
from placement.api.planner.request_fields import Flag, Quantity
from placement.api.planner.request_schemas import RESOURCE_NAME, RequestSchema
from placement.api.validation import Schema
from placement.domain.names import MAX_NAME_LENGTH, NAME_PATTERN, both_spellings
from placement.errors import InvalidAt
from placement.services.fair_share.gate import Terms, UnfairClaim, unfair_claims
from placement.services.fair_share.giving_back import ReclaimOptions
from placement.services.fair_share.shares import Wish
from placement.services.planner.drafting import ClaimMember
from placement.settings.planner.values import FairShareSettings, PlannerSettings

MAX_TASKS = 10_000
_AMOUNT = Quantity(minimum=1, maximum=MAX_COLUMN_VALUE)


QUEUE = "[^/]+(/[^/]+)*"


class Pending(Schema):
    """What a project waits for (a consumer type, if the tree's leaves are types): ``count`` times ``resources``."""

    project_id = JsonText(required=False, shortest=1, longest=255)
    consumer_type = JsonText(required=False, pattern=NAME_PATTERN, shortest=1, longest=MAX_NAME_LENGTH)
    resources = Mapping(RESOURCE_NAME, _AMOUNT, smallest=1)
    count = Integer(required=False, minimum=1, maximum=MAX_TASKS)


class Claimant(Schema):
    """Who claims what; ``request`` may state the resources instead."""

    project_id = JsonText(required=False, shortest=1, longest=255)
    consumer_type = JsonText(required=False, pattern=NAME_PATTERN, shortest=1, longest=MAX_NAME_LENGTH)
    resources = Mapping(RESOURCE_NAME, _AMOUNT, smallest=1, required=False)


class OrderBody(Schema):
    """The body of .../order. Without ``pending``, every queue is assumed to want more of what it uses."""

    pending = Array(Object(Pending), required=False)


class FillBody(Schema):
    """The body of .../fill."""

    pending = Array(Object(Pending), shortest=1)


class ReclaimBody(Schema):
    """The body of .../reclaim."""

    claimant = Object(Claimant)
    request = Object(RequestSchema, required=False)
    pending = Array(Object(Pending), required=False)
    values = Mapping(UUID_KEY, JsonNumber(), required=False)
    keep = Array(Uuid(), required=False)
    priority = JsonNumber(required=False)


ORDER, FILL, RECLAIM = OrderBody(), FillBody(), ReclaimBody()


def wishes_of(entries: abc.Sequence[dict[str, Any]], planner: PlannerSettings, *where: str) -> list[Wish]:
    """Return the wishes in a list that stands at ``where`` in the body.

    Raises:
        InvalidAt: an entry names a consumer type though the tree's leaves are projects, or vice versa, or a resource
            that is none.
    """
    return [wish_of(entry, planner, *where, position) for position, entry in enumerate(entries)]


def wish_of(entry: dict[str, Any], planner: PlannerSettings, *where: str | int) -> Wish:
    """Return the wish in one entry.

    Raises:
        InvalidAt: as ``wishes_of``.
    """
    member = member_of(entry, planner.fair_share, *where)
    if "resources" not in entry:
        raise InvalidAt(where, "'resources' is a required property")
    resources = planner.devices.amounts_by_class(entry["resources"], (*where, "resources"))
    if max(resources.values()) > MAX_COLUMN_VALUE:
        raise InvalidAt((*where, "resources"), f"An amount is above {MAX_COLUMN_VALUE}.")
    return Wish(member, resources, entry.get("count", 1), where)


def options_of(body: dict[str, Any]) -> ReclaimOptions:
    """Return which consumers may be told to give back, and what they are worth."""
    written = body.get("values", {})
    values = {consumer.lower(): value for consumer, value in written.items()} | written
    return ReclaimOptions(values=values, keep=both_spellings(body.get("keep", ())), priority=body.get("priority"))


def member_of(entry: dict[str, Any], settings: FairShareSettings, *where: str | int) -> str:
    """Return the leaf that an entry names, a project or a consumer type.

    Raises:
        InvalidAt: as ``wishes_of``.
    """
    key = "project_id" if settings.leaves == "project" else "consumer_type"
    other = {"project_id", "consumer_type"} - {key}
    if key not in entry:
        raise InvalidAt(where, f"{key!r} is a required property: it identifies the leaves of this server's tree.")
    for name in other & entry.keys():
        raise InvalidAt((*where, name), f"The leaves of this server's tree are identified by {key!r}.")
    member: str = entry[key]
    return member


class FairShareTerms(Schema):
    """Whether to enforce fair shares, who else waits, and the largest part of any class that queues may hold."""

    enforce = Flag()
    pending = Array(Object(Pending), required=False)
    limits = Mapping(QUEUE, JsonNumber(minimum=0, maximum=1), required=False)


def unfair_members(
    call: Call, body: abc.Mapping[str, Any], members: abc.Sequence[ClaimMember]
) -> abc.Mapping[str, UnfairClaim]:
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
