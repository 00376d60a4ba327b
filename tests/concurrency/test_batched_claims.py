"""Claims that are planned together: each gets what it would get alone, and nothing is given twice."""

from collections import Counter
from typing import Any

from flask import Flask
from sqlalchemy import select

from placement.store.connection.database import Database
from placement.store.tables import placement_journal
from tests.api.conftest import Api
from tests.concurrency.test_planner_claims import HOSTS, ONE, PAIR, check_successes, claim, gpus
from tests.concurrency.together import check_books, statuses, together
from tests.gathering import GatheredBatches
from tests.planner_hosts import consumer, register


def test_claims_that_wait_are_planned_together_and_told_apart(app: Flask, api: Api, served: Database) -> None:
    """Singles and gangs are placed side by side; each is one transaction, and one request in the journal."""
    for host in HOSTS:
        register(api, host)
    bodies = [ONE, PAIR, {**ONE, "members": 3}, ONE, PAIR, ONE]
    served.claim_batches = GatheredBatches(len(bodies))
    answers = together([claim(app, body) for body in bodies])
    assert statuses(answers) == {201: len(bodies)}
    assert served.claim_batches.sizes == [len(bodies)]
    assert sum(gpus(api)) == 10
    assert max(gpus(api)) == 1
    check_successes(api, [answer for answer in answers if "members" not in answer.json])
    check_books(served)
    with served.engine.connect() as connection:
        requests = set(connection.execute(select(placement_journal.c.request_id, placement_journal.c.consumer_uuid)))
    holders = {one["consumer"]["uuid"] for answer in answers for one in answer.json.get("members", [answer.json])}
    by_request = Counter(request for request, uuid in requests if uuid in holders)
    assert sorted(by_request.values()) == [1, 1, 1, 1, 1, 3]


def test_a_claim_that_cannot_be_is_refused_as_ever_and_alone(app: Flask, api: Api, served: Database) -> None:
    register(api, "a")
    unknown = {"groups": {"": {"resources": {"CUSTOM_NOTHING": 1}}}}
    unknown_trait = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "required": ["CUSTOM_NOTHING"]}}}
    too_many = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 9}}}
    older = {**ONE, "consumer": {**consumer(), "consumer_generation": 4}}
    repeated = {**ONE, "consumer": consumer()}
    wanted = [unknown, unknown_trait, too_many, older, ONE, repeated, repeated, {**ONE, "members": 2}]
    served.claim_batches = GatheredBatches(len(wanted))
    answers = together([claim(app, body) for body in wanted])
    assert [answer.status_code for answer in answers[:5]] == [400, 400, 409, 409, 201]
    assert sorted(answer.status_code for answer in answers[5:7]) == [200, 201]
    assert answers[7].status_code == 201
    assert served.claim_batches.sizes[0] == len(wanted)
    for body, answer in zip(wanted[:4], answers[:4], strict=True):
        alone = claim(app, body)()
        assert alone.json["errors"][0]["detail"] == answer.json["errors"][0]["detail"]
    assert sum(gpus_of(api)) == 4
    check_books(served)


def gpus_of(api: Api) -> list[int]:
    register(api, "b")
    return gpus(api)


def test_of_more_claims_than_fit_those_that_fit_are_made(app: Flask, api: Api, served: Database) -> None:
    for host in HOSTS:
        register(api, host)
    served.claim_batches = GatheredBatches(12)
    answers = together([claim(app, PAIR) for _ in range(12)])
    assert statuses(answers) == {201: 8, 409: 4}
    assert gpus(api) == [1] * 16
    check_successes(api, answers)
    check_books(served)


def test_gangs_that_are_to_be_apart_are_so_at_any_time(app: Flask, api: Api, served: Database) -> None:
    """They are not planned with others, because the common plan does not consider separation."""
    for host in HOSTS:
        register(api, host)
    served.claim_batches = GatheredBatches(2)
    answers = together([claim(app, {**ONE, "members": 2, "apart": {"level": "host"}}) for _ in range(2)])
    assert statuses(answers) == {201: 2}
    for answer in answers:
        first, second = [provider_name(api, one) for one in answer.json["members"]]
        assert first.split("-")[0] != second.split("-")[0]


def provider_name(api: Api, member: dict[str, Any]) -> str:
    return str(api.get(f"/resource_providers/{next(iter(member['allocations']))}").json["name"])
