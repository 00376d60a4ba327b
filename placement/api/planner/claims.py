"""POST /planner/v1/claims: plan and allocate in one go, for one consumer or for several that belong together."""

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from flask import Response

from placement.api.call import JSON, Call
from placement.api.fields import Object, canonical_uuid, fitting_uuid
from placement.api.planner.candidates import options_for
from placement.api.planner.fair_share_terms import FairShareTerms, fair_gates
from placement.api.planner.index import PATH
from placement.api.planner.request_document import Body, planner_request
from placement.api.planner.request_schemas import ClaimSchema
from placement.api.routing import Route
from placement.domain.allocation import Claim
from placement.errors import InvalidAt
from placement.services.planner.claims import claim
from placement.services.planner.members import ClaimMember


class ClaimBody(ClaimSchema):
    """The body: the claim, and what else has to agree."""

    fair_share = Object(FairShareTerms, required=False)


SCHEMA = ClaimBody()


def make_claim(call: Call) -> Response:
    """Answer with what was allocated: 201, or 200 where the same claim had been made before."""
    body = call.document(SCHEMA)
    members = list(_members(call, body))
    _check_consumers(members)
    outcome = claim(
        call.database,
        members,
        digest=_digest(body),
        gates=fair_gates(call, body, members),
        dry_run=body.get("dry_run", False),
    )
    answers = [outcome.answers[member.consumer.consumer_uuid] for member in members]
    text = answers[0] if "members" not in body else f'{{"members":[{",".join(answers)}]}}'
    response = Response(text, 201 if outcome.is_new else 200, content_type=JSON)
    if "members" not in body and not body.get("dry_run"):
        call.locate(response, f"/allocations/{members[0].consumer.consumer_uuid}")
    return response


def _members(call: Call, body: Body) -> Iterator[ClaimMember]:
    members, replaces = body.get("members", 1), body.get("replaces", False)
    if isinstance(members, list):
        if "consumer" in body:
            raise InvalidAt(("consumer",), "Listed members have a consumer each.")
        for one in members:
            yield replace(_member(call, one["consumer"], one.get("request", body)), replaces=replaces)
        return
    if "consumer" not in body:
        raise InvalidAt((), "'consumer' is a required property")
    member = replace(_member(call, body["consumer"], body), replaces=replaces)
    yield member
    for number in range(1, members):
        yield replace(member, consumer=_numbered(member.consumer, number))


def _member(call: Call, consumer: Body, body: Body) -> ClaimMember:
    # What is only about the number of candidates is the same for all that want the same.
    asked = planner_request(body, call.server.settings.planner)
    request = replace(asked, limit=1, per_tree=1, explain=False)
    return ClaimMember(
        Claim(
            consumer_uuid=fitting_uuid(consumer["uuid"]),
            allocations={},
            project_id=consumer["project_id"],
            user_id=consumer["user_id"],
            consumer_type=consumer["consumer_type"],
            checks_generation=True,
            consumer_generation=consumer.get("consumer_generation"),
        ),
        request,
        options_for(call, request),
    )


def _numbered(first: Claim, number: int) -> Claim:
    """Return a further member of a gang: its uuid follows from the first one's, so that the claim can be repeated."""
    return replace(first, consumer_uuid=str(uuid.uuid5(uuid.UUID(canonical_uuid(first.consumer_uuid)), str(number))))


def _check_consumers(members: list[ClaimMember]) -> None:
    uuids = [member.consumer.consumer_uuid for member in members]
    if len(set(uuids)) < len(uuids):
        raise InvalidAt(("members",), "A consumer is there twice.")


def _digest(body: Body) -> str:
    """Return what tells a claim from others: the body, however it is written down, but not who else waits."""
    claimed = {key: value for key, value in body.items() if key not in {"fair_share", "dry_run"}}
    return hashlib.sha256(repr(_ordered(claimed)).encode()).hexdigest()


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sorted((key, _ordered(inner)) for key, inner in value.items())
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_ordered(inner) for inner in value]
    return value


ROUTES = (
    Route(
        method="POST",
        path=f"{PATH}/claims",
        view=make_claim,
        rule="placement:planner:claims",
        answers_json=True,
        takes_json=True,
        body=SCHEMA,
    ),
)
