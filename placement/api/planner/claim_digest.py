"""A digest that identifies a claim, who is to hold what, however its body is written."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from placement.domain.fabric import ANYWHERE, GangRules
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.members import ClaimMember


def digest_of(members: Iterable[ClaimMember], gang: GangRules = ANYWHERE) -> str:
    """Return the same text for the same claim.

    Args:
        members: the consumers and what each wants.
        gang: how the members are to be placed on the fabric.

    Omitted fields are equal to empty ones (``"required": []``), and the order of keys, groups and sets is irrelevant.
    """
    digest = hashlib.sha256(b"" if gang.are_none else repr(_ordered(gang)).encode())
    requests: dict[int, str] = {}
    for member in members:
        request = member.request
        if id(request) not in requests:  # Usually one object for all members, which keep it alive.
            requests[id(request)] = repr(_of_request(request))
        who = member.consumer
        owner = (who.project_id, who.user_id, who.consumer_type)
        said = (who.consumer_uuid, *owner, who.consumer_generation, member.replaces, requests[id(request)])
        digest.update(repr(said).encode())
    return digest.hexdigest()


def _of_request(request: PlannerRequest) -> Any:
    groups = sorted(request.groups, key=lambda one: one.suffix)
    return _ordered(groups), {**_ordered(request), "groups": None}


def _ordered(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _ordered(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return sorted((key, _ordered(inner)) for key, inner in value.items())
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_ordered(inner) for inner in value]
    return value
