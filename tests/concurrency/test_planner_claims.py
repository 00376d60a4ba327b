"""Many planner claims at once: nothing is allocated twice, every success is real, and every refusal is justified."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.claims import ask, entry, held, new_uuid, used
from tests.concurrency.together import check_books, statuses, together
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, register, uuid_of

CLIENTS = 24
HOSTS = ("a", "b")
PAIR = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "within": [{"groups": ["_GPU"], "level": "pcie"}]}
ONE = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
ALONE = {**ONE, "exclusive": [{"groups": ["_GPU"], "level": "pcie"}]}


def claim(app: Flask, body: dict) -> Callable[[], TestResponse]:
    """Return a callable that claims once, for a new consumer unless the body names one."""
    body = body if "consumer" in body else {**body, "consumer": consumer()}
    return lambda: Api(app).post(CLAIMS, body)


def gpus(api: Api) -> list[int]:
    return [used(api, uuid_of(f"{host}-gpu{number}"))["PGPU"] for host in HOSTS for number in range(8)]


def check_successes(api: Api, answers: list[TestResponse]) -> None:
    """Check that every successful claim holds what its answer says."""
    for answer in answers:
        if answer.status_code == 201:
            told = {provider: one["resources"] for provider, one in answer.json["allocations"].items()}
            assert held(api, answer.json["consumer"]["uuid"]) == told


def test_of_many_claims_exactly_those_succeed_that_fit(app: Flask, api: Api, served: Database) -> None:
    for host in HOSTS:
        register(api, host)
    answers = together([claim(app, PAIR) for _ in range(CLIENTS)])
    assert statuses(answers) == {201: 8, 409: CLIENTS - 8}
    assert gpus(api) == [1] * 16
    check_successes(api, answers)
    check_books(served)


def test_planner_claims_and_plain_claims_do_not_overcommit(app: Flask, api: Api, served: Database) -> None:
    for host in HOSTS:
        register(api, host)
    bodies = [entry({uuid_of(f"{host}-gpu{number}"): {"PGPU": 1}}) for host in HOSTS for number in range(8)]
    plain = [lambda body=body: Api(app).put(f"/allocations/{new_uuid()}", body) for body in bodies]
    answers = together([one for pair in zip(plain, [claim(app, PAIR) for _ in plain], strict=True) for one in pair])
    found = statuses(answers)
    assert set(found) <= {201, 204, 409}
    assert max(gpus(api)) == 1
    assert sum(gpus(api)) == found[204] + 2 * found[201]
    check_successes(api, answers)
    check_books(served)


def locks_of(answer: TestResponse) -> list[tuple[str, int]]:
    """Return (switch, amount of its lock) of an allocation."""
    amounts = {uuid: one["resources"].get("CUSTOM_PCIE_LOCK") for uuid, one in answer.json["allocations"].items()}
    return [(uuid, amount) for uuid, amount in amounts.items() if amount]


def test_an_exclusive_switch_has_one_user(app: Flask, api: Api, served: Database) -> None:
    register(api, "a")
    answers = together([claim(app, ALONE if number % 2 else ONE) for number in range(16)])
    assert set(statuses(answers)) == {201, 409}
    users = Counter(lock for answer in answers if answer.status_code == 201 for lock in locks_of(answer))
    for number in range(4):
        switch = uuid_of(f"a-pcie{number // 2}.{number % 2}")
        assert (users[switch, 1000], users[switch, 1]) in {(1, 0), (0, 1), (0, 2), (0, 0)}
    assert ask(api, "POST", CANDIDATES, body=ONE)["allocation_requests"] == []
    check_books(served)


def test_of_an_exclusive_claim_and_a_plain_one_below_it_one_succeeds(app: Flask, api: Api, served: Database) -> None:
    """The plain client allocates a NIC that the claim does not ask for, and no lock."""
    for number in range(6):
        register(api, f"x{number}", numa_nodes=[[{"gpus": 1, "nics": 1}]])
        body = entry({uuid_of(f"x{number}-nic0-vf"): {"SRIOV_NET_VF": 1}})
        plain = lambda body=body: Api(app).put(f"/allocations/{new_uuid()}", body)  # noqa: E731
        wanted = {"groups": {"_GPU": {**ONE["groups"]["_GPU"], "in_tree": uuid_of(f"x{number}")}}}
        exclusive = claim(app, {**ALONE, **wanted})
        put, claimed = together([plain, exclusive])
        assert (put.status_code, claimed.status_code) in {(204, 409), (409, 201)}
    check_books(served)


def test_one_claim_sent_many_times_is_made_once(app: Flask, api: Api, served: Database) -> None:
    register(api, "a")
    for _ in range(4):
        answers = together([claim(app, body) for body in [{**ONE, "consumer": consumer()}] * 8])
        assert statuses(answers) == {201: 1, 200: 7}
        assert len({answer.text for answer in answers}) == 1
    assert sum(gpus_of_a(api)) == 4
    check_books(served)


def gpus_of_a(api: Api) -> list[int]:
    return [used(api, uuid_of(f"a-gpu{number}"))["PGPU"] for number in range(8)]


def test_gangs_singles_and_parts_of_gangs_share_what_there_is(
    app: Flask, api: Api, served: Database, is_long: bool
) -> None:
    """Nothing is released, so a claim that was refused for lack of room has none at the end either."""
    for host in HOSTS:
        register(api, host)
    mix = [ONE, PAIR, {**PAIR, "members": 3}, {**ONE, "members": 4}, {**ONE, "members": 4, "all_or_nothing": False}]
    clients = 64 if is_long else 20
    wanted = [mix[number % len(mix)] for number in range(clients)]
    answers = together([claim(app, body) for body in wanted])
    assert set(statuses(answers)) == {201, 409}
    assert max(gpus(api)) == 1
    placed = [one for answer in answers if answer.status_code == 201 for one in members_of(answer)]
    assert sum(gpus(api)) == sum(len(one["mappings"]["_GPU"]) for one in placed)
    for one in placed:
        assert held(api, one["consumer"]["uuid"]) == {uuid: of["resources"] for uuid, of in one["allocations"].items()}
    check_books(served)
    for body, answer in zip(wanted, answers, strict=True):
        if was_without_room(answer):
            whole = {name: value for name, value in body.items() if name != "all_or_nothing"}
            assert claim(app, whole)().status_code == 409, body


def members_of(answer: TestResponse) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.json.get("members", [answer.json])
    return found


def was_without_room(answer: TestResponse) -> bool:
    refused = [*answer.json.get("refused", ()), *answer.json.get("errors", ())]
    return any(one["code"] == "placement.planner.no_room" and one.get("complete", True) for one in refused)
