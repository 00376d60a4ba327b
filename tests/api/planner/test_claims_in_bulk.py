"""POST /planner/v1/claims for many members: as many as fit, in portions, with progress lines in between."""

import json
import uuid
from typing import Any

import pytest
from flask import Flask

from placement.services.planner.claims import PORTION
from tests import clouds
from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import ask, claimed, detail_of, error_of, held, used
from tests.planner_hosts import CLAIMS, consumer, provider, register, uuid_of
from tests.stored_clouds import stored

ONE = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
EIGHT = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 8}}}
WHAT_FITS = {"all_or_nothing": False}
SMALL = [[{"gpus": 1, "nics": 1}] * 2]


def in_use(api: Api, host: str = "host", number: int = 8) -> int:
    return sum(used(api, uuid_of(f"{host}-gpu{gpu}"))["PGPU"] for gpu in range(number))


def bad(api: Api, body: dict[str, Any]) -> str:
    return str(detail_of(api.post(CLAIMS, body)).splitlines()[-1])


def test_as_many_members_as_fit_are_placed_and_the_others_are_named(api: Api) -> None:
    register(api)
    body = {**ONE, **WHAT_FITS, "consumer": consumer(), "members": 10}
    answer = api.post(CLAIMS, body)
    assert answer.status_code == 201
    assert len(answer.json["members"]) == 8
    assert [one["code"] for one in answer.json["refused"]] == ["placement.planner.no_room"] * 2
    assert answer.json["refused"][0]["detail"] == "No place was found beside 8 other members."
    assert in_use(api) == 8
    for one in answer.json["members"]:
        assert held(api, one["consumer"]["uuid"])
    assert all(not held(api, one["consumer"]) for one in answer.json["refused"])


def test_the_same_again_is_answered_and_tried_again_for_those_that_were_refused(api: Api) -> None:
    register(api)
    body = {**ONE, **WHAT_FITS, "consumer": consumer(), "members": 10}
    first, again = api.post(CLAIMS, body), api.post(CLAIMS, body)
    assert again.status_code == 200
    assert again.json["members"] == first.json["members"]
    register(api, "further", numa_nodes=SMALL)
    later = api.post(CLAIMS, body)
    assert later.status_code == 201
    assert (len(later.json["members"]), later.json["refused"]) == (10, [])
    assert later.json["members"][:8] == first.json["members"]


def test_where_nobody_fits_it_is_a_refusal(api: Api) -> None:
    register(api, numa_nodes=SMALL)
    answer = api.post(CLAIMS, {**EIGHT, **WHAT_FITS, "consumer": consumer(), "members": 2})
    assert error_of(answer, 409)["code"] == "placement.planner.no_room"
    assert "explanation" in answer.json["errors"][0]


def test_those_that_want_something_else_go_on(api: Api) -> None:
    register(api, numa_nodes=SMALL)
    members = [{"consumer": consumer(), "request": request} for request in (ONE, EIGHT, ONE, ONE)]
    answer = ask(api, "POST", CLAIMS, body={**WHAT_FITS, "members": members})
    uuids = [one["consumer"]["uuid"] for one in members]
    assert [one["consumer"]["uuid"] for one in answer["members"]] == [uuids[0], uuids[2]]
    assert [one["consumer"] for one in answer["refused"]] == [uuids[1], uuids[3]]


def test_a_consumer_that_holds_something_is_refused_alone(api: Api) -> None:
    register(api)
    holder = consumer(uuid=claimed(api, {uuid_of("host-gpu0"): {"PGPU": 1}}))
    answer = ask(
        api, "POST", CLAIMS, body={**ONE, **WHAT_FITS, "members": [{"consumer": holder}, {"consumer": consumer()}]}
    )
    assert len(answer["members"]) == 1
    (refused,) = answer["refused"]
    assert (refused["consumer"], refused["code"]) == (holder["uuid"], "placement.concurrent_update")


def test_members_are_streamed_as_lines_while_they_are_allocated(api: Api) -> None:
    """The first line arrives when the first portion of members has been placed, and no other."""
    host = provider(api, "host", None, {"VCPU": {"total": PORTION + 1}}, [])
    body = {"groups": {"": {"resources": {"VCPU": 1}}}, **WHAT_FITS, "stream": True, "consumer": consumer()}
    answer = api.post(CLAIMS, {**body, "members": PORTION + 3}, buffered=False)
    assert (answer.status_code, answer.mimetype) == (200, "application/x-ndjson")
    pieces = iter(answer.response)
    first = [json.loads(line) for line in next(pieces).splitlines()]
    assert (len(first), used(api, host)["VCPU"]) == (PORTION, PORTION)
    lines = first + [json.loads(line) for piece in pieces for line in piece.splitlines()]
    assert lines[-1] == {"placed": PORTION + 1, "refused": 2}
    assert [{*line} for line in lines[PORTION:-1]] == [{"consumer", "allocations", "mappings"}] + [{"refused"}] * 2
    assert used(api, host)["VCPU"] == PORTION + 1


def test_the_journal_knows_who_asked_for_what_was_streamed(api: Api) -> None:
    register(api)
    body = {**ONE, **WHAT_FITS, "stream": True, "consumer": consumer(), "members": 3}
    assert api.post(CLAIMS, body).text.count("\n") == 4
    entries = ask(api, "GET", "/planner/v1/journal?limit=1000")["entries"]
    assert {one.get("route") for one in entries if one["kind"] == "allocation"} == {"POST /planner/v1/claims"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, 'all_or_nothing: The key is for a claim with "members".'),
        (
            {"members": 2, "replaces": True},
            'replaces: Members are replaced all or none: leave out "all_or_nothing": false.',
        ),
        ({"members": 1001}, "members: 1001 is neither a number from 1 to 1000 nor a list of as many"),
        (
            {"members": 2, "stream": True, "dry_run": True},
            'stream: Streaming needs "all_or_nothing": false, and no dry_run.',
        ),
    ],
)
def test_what_does_not_go_together_is_refused(api: Api, fields: dict[str, Any], sentence: str) -> None:
    assert bad(api, {**ONE, **WHAT_FITS, "consumer": consumer(), **fields}) == sentence


def test_a_thousand_members_are_one_claim_of_few_statements(app: Flask, api: Api) -> None:
    """One statement for each table, whatever the number of members; trees are read in portions."""
    hosts = [clouds.provider(f"host{number}", VCPU=64) for number in range(50)]
    stored(app, *hosts)
    body = {"groups": {"": {"resources": {"VCPU": 3}}}}
    ask(api, "POST", CLAIMS, body={**body, "consumer": consumer()})
    counts = []
    for members in (2, 1000):
        with statements(app) as sent:
            answer = api.post(CLAIMS, {**body, "consumer": consumer(), "members": members})
        assert answer.status_code == 201, answer.text
        assert len({one["consumer"]["uuid"] for one in answer.json["members"]}) == members
        counts.append(len(sent))
    assert counts[1] <= counts[0] + 10


def test_the_same_uuid_in_other_letters_is_the_same_consumer(api: Api) -> None:
    register(api)
    who = consumer()
    first = api.post(CLAIMS, {**ONE, "consumer": who})
    for spelling in (who["uuid"].upper(), uuid.UUID(who["uuid"]).hex):
        again = api.post(CLAIMS, {**ONE, "consumer": {**who, "uuid": spelling}})
        assert (again.status_code, again.json) == (200, first.json)
    assert in_use(api) == 1


def test_whole_numbers_may_be_written_with_a_fraction_of_zero(api: Api) -> None:
    """JSON has one kind of numbers, and some languages write all of them as 2.0."""
    register(api)
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1.0}, "count": 2.0}}, "members": 3.0, "consumer": consumer()}
    assert len(ask(api, "POST", CLAIMS, body=body)["members"]) == 3
    assert in_use(api) == 6


def test_a_field_that_says_nothing_is_the_same_as_none(api: Api) -> None:
    register(api)
    body = {**ONE, "consumer": consumer()}
    first = api.post(CLAIMS, body)
    groups = {"_GPU": {"resources": {"PGPU": 1}, "required": [], "count": 1}}
    again = api.post(CLAIMS, {**body, "groups": groups, "within": [], "limit": 3, "replaces": False})
    assert (again.status_code, again.json) == (200, first.json)
    assert api.post(CLAIMS, {**body, "groups": {"_GPU": {**groups["_GPU"], "count": 2}}}).status_code == 409
