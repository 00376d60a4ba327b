"""POST /planner/v1/claims for many members, for those that move, without writing, and avoiding hosts."""

import json
import uuid
from typing import Any

from flask import Flask

from placement.services.planner.claims import PORTION
from tests import clouds
from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import ask, claimed, error_of, held, used
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, provider, register, uuid_of
from tests.stored_clouds import stored

ONE = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
EIGHT = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 8}}}
WHAT_FITS = {"all_or_nothing": False}
SMALL = [[{"gpus": 1, "nics": 1}] * 2]


def in_use(api: Api, host: str = "host", number: int = 8) -> int:
    return sum(used(api, uuid_of(f"{host}-gpu{gpu}"))["PGPU"] for gpu in range(number))


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


def gpus(api: Api, host: str, number: int = 2) -> list[int]:
    return [used(api, uuid_of(f"{host}-gpu{gpu}"))["PGPU"] for gpu in range(number)]


def error(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    return error_of(api.post(CLAIMS, body), 409)


def test_a_consumer_moves_in_one_go(api: Api) -> None:
    """The consumer itself fills the host, so it could not hold both at a time."""
    register(api)
    who = consumer()
    ask(api, "POST", CLAIMS, body={**EIGHT, "consumer": who})
    body = {**EIGHT, "consumer": {**who, "consumer_generation": 1}, "replaces": True}
    answer = api.post(CLAIMS, body)
    assert answer.status_code == 201
    assert answer.json["consumer"]["consumer_generation"] == 2
    assert ask(api, "GET", f"/allocations/{who['uuid']}")["consumer_generation"] == 2
    assert gpus(api, "host", 8) == [1] * 8
    again = api.post(CLAIMS, body)
    assert (again.status_code, again.json) == (200, answer.json)


def test_a_move_away_from_a_host_that_failed(api: Api) -> None:
    for host in ("a", "b"):
        register(api, host, numa_nodes=SMALL)
    who = consumer(uuid=claimed(api, {uuid_of("a-gpu0"): {"PGPU": 1}}))
    move = {"replaces": True, "avoid": {"trees": [uuid_of("a-gpu1")]}}
    ask(api, "POST", CLAIMS, body={**ONE, "consumer": {**who, "consumer_generation": 1}, **move})
    assert (gpus(api, "a"), sum(gpus(api, "b"))) == ([0, 0], 1)


def test_a_move_needs_the_generation_of_the_consumer(api: Api) -> None:
    register(api)
    who = consumer()
    ask(api, "POST", CLAIMS, body={**ONE, "consumer": who})
    for said in (None, 2):
        found = error(api, {**EIGHT, "consumer": {**who, "consumer_generation": said}, "replaces": True})
        assert found["code"] == "placement.concurrent_update"
        assert f"expected 1 but got {said}" in found["detail"]
    assert sum(gpus(api, "host", 8)) == 1


def test_a_move_that_has_no_place_leaves_everything_as_it_is(api: Api) -> None:
    register(api, numa_nodes=SMALL)
    who = consumer()
    ask(api, "POST", CLAIMS, body={**ONE, "consumer": who})
    before = held(api, who["uuid"])
    found = error(api, {**EIGHT, "consumer": {**who, "consumer_generation": 1}, "replaces": True})
    assert found["code"] == "placement.planner.no_room"
    assert held(api, who["uuid"]) == before


def test_a_dry_run_answers_and_writes_nothing(app: Flask, api: Api) -> None:
    register(api)
    body = {**ONE, "consumer": consumer(), "members": 3}
    with statements(app) as sent:
        planned = api.post(CLAIMS, {**body, "dry_run": True})
    assert planned.status_code == 200
    assert not [text for text in sent if text.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))]
    assert not [text for text in sent if "FOR UPDATE" in text.upper()]
    assert gpus(api, "host", 8) == [0] * 8
    made = api.post(CLAIMS, body)
    assert (made.status_code, made.json) == (201, planned.json)
    assert api.post(CLAIMS, {**body, "dry_run": True}).json == planned.json


def test_trees_to_avoid_are_left_out_of_candidates_and_claims(api: Api) -> None:
    for host in ("a", "b"):
        register(api, host, numa_nodes=SMALL)
    avoid = {"avoid": {"trees": [uuid_of("b"), uuid_of("nobody")]}}
    found = ask(api, "POST", CANDIDATES, body={**ONE, **avoid})["allocation_requests"]
    assert [one["mappings"]["_GPU"] for one in found] == [[uuid_of("a-gpu0")]]
    shouted = {"avoid": {"trees": [uuid_of("b").upper()]}}
    assert ask(api, "POST", CANDIDATES, body={**ONE, **shouted})["allocation_requests"] == found
    both = {"avoid": {"trees": [uuid_of("a"), uuid_of("b")]}}
    assert error(api, {**ONE, **both, "consumer": consumer()})["detail"].endswith("The trees to avoid were left out.")
    assert api.post(CANDIDATES, {**ONE, "avoid": {"trees": ["b"]}}).status_code == 400


def test_a_gang_that_is_refused_is_told_who_was_stuck_and_why(api: Api) -> None:
    register(api, numa_nodes=SMALL)
    one, two = consumer(), consumer()
    members = [{"consumer": one}, {"consumer": two, "request": EIGHT}]
    found = error(api, {**ONE, "members": members})
    assert (found["code"], found["consumer"]) == ("placement.planner.no_room", two["uuid"])
    assert f"Consumer {two['uuid']} has no place even alone. " in found["detail"]
    found = error(api, {**ONE, "consumer": one, "members": 3})
    assert found["detail"].endswith("They want 3 PGPU, and 2 are left.")
