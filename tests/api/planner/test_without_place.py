"""A request without a place gets the same answer until a tree changes, and then the right one."""

from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import ask, error_of
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, register, uuid_of

pytestmark = pytest.mark.any_database

GPU = {"_GPU": {"resources": {"PGPU": 1}}}
EIGHT = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 8}}}
TWELVE = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 12}}}
RULED = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 8}}, "within": [{"groups": ["_GPU"], "level": "pcie"}]}


def refused(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    error = error_of(api.post(CLAIMS, {**body, "consumer": consumer()}), 409)
    return {key: value for key, value in error.items() if key != "request_id"}


@pytest.mark.parametrize("body", [TWELVE, RULED], ids=["too many", "rules"])
def test_the_same_is_refused_alike(api: Api, body: dict[str, Any]) -> None:
    register(api)
    before = refused(api, body)
    assert before["explanation"]
    assert refused(api, body) == before
    for further in ({}, {"explain": True}, {}):
        answer = ask(api, "POST", CANDIDATES, body={**body, **further})
        assert (answer["allocation_requests"], "explanation" in answer) == ([], bool(further))


def holder_of_all(api: Api) -> dict[str, Any]:
    """Return a consumer that holds all GPUs, after others have asked for them in vain."""
    register(api)
    holder = consumer()
    assert api.post(CLAIMS, {**EIGHT, "consumer": holder}).status_code == 201
    for _ in range(2):
        refused(api, EIGHT)
        assert not ask(api, "POST", CANDIDATES, body=EIGHT)["allocation_requests"]
    return holder


def test_the_claim_succeeds_once_what_it_needs_is_released(api: Api) -> None:
    ask(api, "DELETE", f"/allocations/{holder_of_all(api)['uuid']}")
    assert api.post(CLAIMS, {**EIGHT, "consumer": consumer()}).status_code == 201


@pytest.mark.parametrize("explain", [False, True])
def test_what_finds_nothing_is_explained_anew_after_others_have_taken(api: Api, explain: bool) -> None:
    register(api)
    body = {**TWELVE, "explain": explain}
    most = []
    for _time in range(3):
        again = ask(api, "POST", CANDIDATES, body=body)
        assert again["allocation_requests"] == []
        most += [again["explanation"]["cause"]["shortfall"]["most"]] if explain else []
        shown = refused(api, TWELVE)["explanation"]["cause"]["shortfall"]
        most.append(shown["most"])
        assert api.post(CLAIMS, {"groups": GPU, "consumer": consumer()}).status_code == 201
    assert most == sorted([8, 7, 6] * (1 + explain), reverse=True)


def test_what_is_given_back_is_found_after_others_have_taken(api: Api) -> None:
    holder = holder_of_all(api)
    cpu = {"groups": {"": {"resources": {"VCPU": 1}}}, "consumer": consumer()}
    assert api.post(CLAIMS, cpu).status_code == 201
    refused(api, EIGHT)
    assert not ask(api, "POST", CANDIDATES, body=EIGHT)["allocation_requests"]
    assert not ask(api, "GET", "/allocation_candidates?resources=PGPU:1")["allocation_requests"]
    ask(api, "DELETE", f"/allocations/{holder['uuid']}")
    assert ask(api, "GET", "/allocation_candidates?resources=PGPU:1")["allocation_requests"]
    assert ask(api, "POST", CANDIDATES, body=EIGHT)["allocation_requests"]
    assert api.post(CLAIMS, {**EIGHT, "consumer": consumer()}).status_code == 201


def test_hypothetical_clouds_are_searched(api: Api) -> None:
    holder = holder_of_all(api)
    for assumed in ({"released": [holder["uuid"]]}, {"with": [{"like": uuid_of("host"), "count": 1}]}):
        assert ask(api, "POST", CANDIDATES, body={**EIGHT, **assumed})["allocation_requests"]
    assert not ask(api, "POST", CANDIDATES, body=EIGHT)["allocation_requests"]
