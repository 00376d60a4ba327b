"""POST /planner/v1/claims: moving in one step, planning without claiming, and avoiding hosts."""

from typing import Any

from flask import Flask

from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import ask, claimed, error_of, held, used
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, register, uuid_of

ONE = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
ALL = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 8}}}
SMALL = [[{"gpus": 1, "nics": 1}] * 2]


def gpus(api: Api, host: str, number: int = 2) -> list[int]:
    return [used(api, uuid_of(f"{host}-gpu{gpu}"))["PGPU"] for gpu in range(number)]


def error(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    return error_of(api.post(CLAIMS, body), 409)


def test_a_consumer_moves_in_one_go(api: Api) -> None:
    """The consumer itself fills the host, so it could not hold both at a time."""
    register(api)
    who = consumer()
    ask(api, "POST", CLAIMS, body={**ALL, "consumer": who})
    body = {**ALL, "consumer": {**who, "consumer_generation": 1}, "replaces": True}
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
        found = error(api, {**ALL, "consumer": {**who, "consumer_generation": said}, "replaces": True})
        assert found["code"] == "placement.concurrent_update"
        assert f"expected 1 but got {said}" in found["detail"]
    assert sum(gpus(api, "host", 8)) == 1


def test_a_move_that_has_no_place_leaves_everything_as_it_is(api: Api) -> None:
    register(api, numa_nodes=SMALL)
    who = consumer()
    ask(api, "POST", CLAIMS, body={**ONE, "consumer": who})
    before = held(api, who["uuid"])
    found = error(api, {**ALL, "consumer": {**who, "consumer_generation": 1}, "replaces": True})
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
    members = [{"consumer": one}, {"consumer": two, "request": ALL}]
    found = error(api, {**ONE, "members": members})
    assert (found["code"], found["consumer"]) == ("placement.planner.no_room", two["uuid"])
    assert f"Consumer {two['uuid']} has no place even alone. " in found["detail"]
    found = error(api, {**ONE, "consumer": one, "members": 3})
    assert found["detail"].endswith("They want 3 PGPU, and 2 are left.")
