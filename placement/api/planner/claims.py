"""POST /planner/v1/claims: plan and allocate in one transaction, for one or several consumers."""

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from typing import Any

import orjson
from flask import Response

from placement.api.allocations import CONSUMER_TYPE, OWNER_ID
from placement.api.call import JSON, Call
from placement.api.fields import UUID, Array, BodyPath, Fault, Faults, Field, Object, flag, integer, shown, text, whole
from placement.api.planner.candidates import INLINE_PROFILE, options_for
from placement.api.planner.fair_share import FAIR_SHARE_TERMS, unfair_members
from placement.api.planner.request_document import Body, explains, ignored_in, planner_request
from placement.api.planner.request_fields import LIMITS, MODE, REQUEST, REQUEST_MEMBERS, HintingObject, is_from_1_to
from placement.api.routing import planner_route
from placement.domain.inventory import Claim
from placement.domain.names import canonical_uuid
from placement.domain.planner_request import ANYWHERE, THE_HOST, FabricLevel, GangRules, Together
from placement.errors import Conflict, InvalidAt, PlacementError
from placement.services.planner.candidates import NoCandidate
from placement.services.planner.claims import ClaimTerms, Outcome, claim, claim_what_fits
from placement.services.planner.gang import ClaimMember
from placement.settings import PlannerSettings

MAX_MEMBERS = 1000

CONSUMER = Object(
    {
        "uuid": UUID,
        "project_id": OWNER_ID,
        "user_id": OWNER_ID,
        "consumer_type": CONSUMER_TYPE,
        "consumer_generation?": integer(nullable=True),
    }
)


class MembersField(Field):
    """The number of equal members, or a list of members; one without a request of its own uses the body's."""

    def __init__(self) -> None:
        self._listed = Array(Object({"consumer": CONSUMER, "request?": REQUEST}), shortest=1, longest=MAX_MEMBERS)
        numbers = integer(minimum=1, maximum=MAX_MEMBERS)
        super().__init__({"anyOf": [numbers.schema, self._listed.schema]}, default=1)

    def load(self, value: Any, path: BodyPath, faults: Faults) -> Any:
        """Return the number or the members."""
        is_list = isinstance(value, list) and len(value) <= MAX_MEMBERS
        return (self._listed.load if is_list else super().load)(value, path, faults)

    def read(self, value: Any) -> int:
        """Return the number."""
        number = whole(value)
        if is_from_1_to(MAX_MEMBERS, number):
            return number  # type: ignore[no-any-return]
        sentence = f"{shown(number)} is neither a number from 1 to {MAX_MEMBERS} nor a list of as many"
        raise Fault(sentence, "anyOf")


_FABRIC_LEVEL = text(pattern="[a-z][a-z0-9_-]{0,30}")
_TOGETHER = {"level": _FABRIC_LEVEL, "mode?": MODE, "each?": integer(minimum=1, maximum=MAX_MEMBERS)}
BODY = HintingObject(
    LIMITS
    | REQUEST_MEMBERS
    | {
        "consumer?": CONSUMER,
        "members?": MembersField(),
        "together?": Object(_TOGETHER),
        "apart?": Object({"level": _FABRIC_LEVEL}),
        "all_or_nothing?": flag(default=True),
        "stream?": flag(),
        "replaces?": flag(),
        "dry_run?": flag(),
        "fair_share?": FAIR_SHARE_TERMS,
    }
)
"""A claim: for one consumer, for several equal ones, or for each in a list."""


def gang_rules(body: Mapping[str, Any], settings: PlannerSettings, *, members: int) -> GangRules:
    """Return the rules that a loaded body states about its members as a whole; InvalidAt if they make no sense."""
    rule, separating = body.get("together"), body.get("apart")
    together, separate_level = None, None
    if rule is not None:
        level = _fabric_level("together", rule["level"], settings)
        together = Together(level, required=rule.get("mode", "required") == "required", group_size=rule.get("each"))
    if separating is not None:
        separate_level = _fabric_level("apart", separating["level"], settings)
    rules = GangRules(together, separate_level)
    if rules.are_none:
        return ANYWHERE
    named = "together" if together else "apart"
    if "members" not in body:
        raise InvalidAt((named,), 'The key is for a claim with "members".')
    if not body.get("all_or_nothing", True):
        raise InvalidAt((named,), 'Members whose places depend on each other need "all_or_nothing": true.')
    if together is not None:
        _check_together(together, separate_level, members)
    return rules


def _fabric_level(where: str, name: str, settings: PlannerSettings) -> FabricLevel:
    if name == THE_HOST:
        return FabricLevel(name)
    if name not in settings.aggregates:
        levels = ", ".join([*settings.aggregates, THE_HOST])
        sentence = f"There is no level {name!r} of the fabric; there are: {levels}."
        raise InvalidAt(
            (where, "level"), f"{sentence} Name the aggregates of each {name} under aggregates in planner.yaml."
        )
    return FabricLevel(name, settings.aggregates[name])


def _check_together(together: Together, separate_level: FabricLevel | None, members: int) -> None:
    level = together.level.name
    if together.group_size is None:
        if separate_level == together.level and together.required and members > 1:
            raise InvalidAt(("apart", "level"), f"Members cannot be in one {level} and in different ones.")
        return
    if not together.required:
        raise InvalidAt(("together", "each"), 'The key needs "mode": "required", or no mode.')
    if members % together.group_size:
        raise InvalidAt(
            ("together", "each"), f"{members} members cannot be divided into groups of {together.group_size}."
        )
    if separate_level is not None and not separate_level.is_host:
        raise InvalidAt(
            ("apart", "level"),
            f"With each in together, members can be apart on hosts only, not in {separate_level.name}s.",
        )


LINES = "application/x-ndjson"


def what_fitted(members: Sequence[ClaimMember], outcomes: Sequence[Outcome]) -> Response:
    """Answer with the placed and the refused members, as in the request; if none was placed, raise a reason."""
    answers = {uuid: text for outcome in outcomes for uuid, text in outcome.answers.items()}
    refused = {uuid: reason for outcome in outcomes for uuid, reason in outcome.refused.items()}
    if not answers:
        raise refused[members[0].uuid]
    placed = ",".join([answers[member.uuid] for member in members if member.uuid in answers])
    unplaced = [_refused(member.uuid, refused[member.uuid]) for member in members if member.uuid in refused]
    text = f'{{"members":[{placed}],"refused":{orjson.dumps(unplaced).decode()}}}'
    return Response(text, 201 if any(outcome.is_new for outcome in outcomes) else 200, content_type=JSON)


def _refused(consumer_uuid: str, reason: Conflict) -> dict[str, Any]:
    is_cut_off = isinstance(reason, NoCandidate) and not reason.complete
    refusal = {"consumer": consumer_uuid, "code": reason.code, "detail": reason.message}
    return refusal | ({"complete": False} if is_cut_off else {})


def streamed(outcomes: Iterator[Outcome]) -> Response:
    """Answer with a line for each member once it is allocated or finally refused, then a line with their numbers.

    An error in the first portion becomes a normal error response; a later one becomes the last line.
    """
    first = next(outcomes)
    # Work done while the answer is sent still belongs to the request's caller.
    context = copy_context()
    later = iter(lambda: context.run(next, outcomes, None), None)
    return Response(_lines(chain([first], later)), 200, content_type=LINES)


def _lines(outcomes: Iterable[Outcome]) -> Iterator[bytes]:
    placed = refused = 0
    try:
        for outcome in outcomes:
            placed, refused = placed + len(outcome.answers), refused + len(outcome.refused)
            reasons = [orjson.dumps({"refused": _refused(*entry)}).decode() for entry in outcome.refused.items()]
            yield "".join([f"{line}\n" for line in (*outcome.answers.values(), *reasons)]).encode()
    except PlacementError as error:
        yield orjson.dumps({"error": {"code": error.code, "detail": error.message}}) + b"\n"
    else:
        yield orjson.dumps({"placed": placed, "refused": refused}) + b"\n"


INHERITED = {key: {key, "score"} for key in ("profile", "score", "explain")}
"""Terms that a claim sets for all members, and the keys of a member's own request that override each.

Members avoid all trees that the claim and their own request name.
"""

REQUESTED = REQUEST.members.keys() - INHERITED.keys() - {"avoid"}
"""What a claim requests for those members that have no request of their own."""


def make_claim(call: Call) -> Response:
    """Plan and allocate for one or several consumers: 201, or 200 if the same claim was made before."""
    body = call.document(BODY)
    _check_fields(body)
    members = list(_members(call, body))
    if len({member.uuid for member in members}) < len(members):
        raise InvalidAt(("members",), "A consumer occurs twice.")
    gang = gang_rules(body, call.server.settings.planner, members=len(members))
    unfair = unfair_members(call, body, members) if body.get("fair_share", {}).get("enforce") else {}
    terms = ClaimTerms(digest_of(members, gang), unfair, dry_run=body.get("dry_run", False), gang=gang)
    listed = body["members"] if isinstance(body.get("members"), list) else ()
    own_requests = [entry["request"] for entry in listed if "request" in entry]
    ignored = ignored_in(call.server.settings.planner, body, *own_requests)
    if not body.get("all_or_nothing", True):
        outcomes = claim_what_fits(call.database, members, terms)
        return streamed(outcomes) if body.get("stream") else _naming(ignored, what_fitted(members, list(outcomes)))
    outcome = claim(call.database, members, terms)
    answers = [outcome.answers[member.uuid] for member in members]
    text = answers[0] if "members" not in body else f'{{"members":[{",".join(answers)}]}}'
    response = _naming(ignored, Response(text, 201 if outcome.is_new else 200, content_type=JSON))
    if "members" not in body and not body.get("dry_run"):
        call.locate(response, f"/allocations/{members[0].uuid}")
    return response


def _naming(ignored: list[str], response: Response) -> Response:
    """Add what is not applied of pods to an answer."""
    if ignored:
        response.set_data(b'%s,"ignored":%s}' % (response.get_data()[:-1], orjson.dumps(ignored)))
    return response


def _check_fields(body: Body) -> None:
    """Refuse combinations of fields that contradict each other."""
    whole, has_members = body.get("all_or_nothing", True), "members" in body
    if "consumer" not in body and not isinstance(body.get("members"), list):
        raise InvalidAt((), "'consumer' is a required property")
    if not whole and not has_members:
        raise InvalidAt(("all_or_nothing",), 'The key is for a claim with "members".')
    if not whole and body.get("replaces"):
        raise InvalidAt(("replaces",), 'Members are replaced all or none: leave out "all_or_nothing": false.')
    if body.get("stream") and (whole or body.get("dry_run")):
        raise InvalidAt(("stream",), 'Streaming needs "all_or_nothing": false, and no dry_run.')


def _members(call: Call, body: Body) -> Iterator[ClaimMember]:
    members = body.get("members", 1)
    if isinstance(members, list):
        if "consumer" in body:
            raise InvalidAt(("consumer",), "Listed members name their own consumers.")
        yield from _listed(call, body, members)
        return
    member = _member(call, body["consumer"], body)
    member = replace(member, replaces=body.get("replaces", False))
    yield member
    for number in range(1, members):
        # The uuid follows from the first one's, so that the claim can be repeated.
        further = str(uuid.uuid5(uuid.UUID(member.uuid), str(number)))
        yield replace(member, consumer=replace(member.consumer, consumer_uuid=further))


def _listed(call: Call, body: Body, members: Sequence[Body]) -> Iterator[ClaimMember]:
    if all("request" in entry for entry in members) and (unused := sorted(REQUESTED & body.keys())):
        raise InvalidAt((unused[0],), "The key applies to no member, because each member has a request of its own.")
    same: ClaimMember | None = None
    for entry in members:
        if "request" in entry:
            member = _member(call, entry["consumer"], _with_terms_of_all(entry["request"], body))
        elif same is None:
            member = same = _member(call, entry["consumer"], body)
        else:
            member = replace(same, consumer=_consumer(entry["consumer"]))
        yield replace(member, replaces=body.get("replaces", False))


def _with_terms_of_all(request: Body, body: Body) -> Body:
    """Return a member's own request with what the claim says of all members, where the request says nothing itself."""
    trees = [tree for terms in (body, request) for tree in terms.get("avoid", {}).get("trees", ())]
    inherited = {key: body[key] for key, silent in INHERITED.items() if key in body and not silent & request.keys()}
    return {**inherited, **request, "avoid": {"trees": trees}}


def _member(call: Call, consumer: Body, body: Body) -> ClaimMember:
    # Members that want the same must have equal requests, so the numbers of candidates, which claims ignore, are fixed.
    planned = planner_request(body, call.server.settings.planner)
    request = replace(planned, limit=1, per_tree=1, explain=False)
    return ClaimMember(_consumer(consumer), request, options_for(call, body), explains=explains(body, by_default=True))


def _consumer(consumer: Body) -> Claim:
    return Claim(
        consumer_uuid=canonical_uuid(consumer["uuid"]),
        allocations={},
        project_id=consumer["project_id"],
        user_id=consumer["user_id"],
        consumer_type=consumer["consumer_type"],
        checks_generation=True,
        consumer_generation=consumer.get("consumer_generation"),
    )


ROUTES = (planner_route("POST", "/claims", make_claim, rule="claims", view_rules=(INLINE_PROFILE,), body=BODY),)


def digest_of(members: Iterable[ClaimMember], gang: GangRules = ANYWHERE) -> str:
    """Return the same text for the same claim of members, placed on the fabric by the same rules.

    Omitted fields are equal to empty ones (``"required": []``), and the order of keys, groups and sets is irrelevant.
    """
    digest = hashlib.sha256(b"" if gang.are_none else repr(_ordered(gang)).encode())
    requests: dict[int, str] = {}
    for member in members:
        request = member.request
        if id(request) not in requests:  # Usually one object for all members, which keep it alive.
            groups = sorted(request.groups, key=lambda entry: entry.suffix)
            requests[id(request)] = repr((_ordered(groups), {**_ordered(request), "groups": None}))
        consumer = member.consumer
        owner = (consumer.project_id, consumer.user_id, consumer.consumer_type)
        terms = (consumer.consumer_uuid, *owner, consumer.consumer_generation, member.replaces, requests[id(request)])
        digest.update(repr(terms).encode())
    return digest.hexdigest()


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
