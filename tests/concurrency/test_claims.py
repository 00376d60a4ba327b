"""Racing claims: those that fit succeed, those that do not are refused, and nothing else happens."""

from collections.abc import Callable
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.claims import (
    SERVICE,
    ask,
    claimed,
    consumer_generation,
    entry,
    generation,
    held,
    make_provider,
    new_uuid,
    used,
)
from tests.concurrency.together import check_books, statuses, together

CLIENTS = 16
ROUNDS = 6


def claim(app: Flask, consumer: str, body: dict[str, Any]) -> Callable[[], TestResponse]:
    return lambda: Api(app).put(f"/allocations/{consumer}", body)


def test_of_many_claims_exactly_those_succeed_that_fit(app: Flask, api: Api, served: Database) -> None:
    provider = make_provider(api, VCPU=12, MEMORY_MB=4096)
    before = generation(api, provider)
    body = entry({provider: {"VCPU": 2, "MEMORY_MB": 256}})
    answers = together([claim(app, new_uuid(), body) for _ in range(CLIENTS)])
    assert statuses(answers) == {204: 6, 409: CLIENTS - 6}
    for answer in answers:
        if answer.status_code == 409:
            (error,) = answer.get_json()["errors"]
            assert error["code"] == "placement.undefined_code"
            assert "The requested amount would exceed the capacity" in error["detail"]
    assert used(api, provider) == {"VCPU": 12, "MEMORY_MB": 6 * 256}
    assert generation(api, provider) == before + 6
    check_books(served)


def test_claims_on_one_provider_wait_instead_of_conflicting(app: Flask, api: Api, served: Database) -> None:
    """The reference answers 409 when its retries are exhausted, or makes nova wait for seconds."""
    provider = make_provider(api, VCPU=10 * CLIENTS)
    for _ in range(ROUNDS):
        body = entry({provider: {"VCPU": 1}})
        answers = together([claim(app, new_uuid(), body) for _ in range(CLIENTS)])
        assert statuses(answers) == {204: CLIENTS}
    assert used(api, provider) == {"VCPU": ROUNDS * CLIENTS}


def test_claims_that_name_providers_in_opposite_orders_do_not_block_each_other(
    app: Flask, api: Api, served: Database
) -> None:
    providers = [make_provider(api, VCPU=1000) for _ in range(4)]
    forwards = {provider: {"VCPU": 1} for provider in providers}
    backwards = {provider: {"VCPU": 1} for provider in reversed(providers)}
    served.retries.clear()
    for _ in range(ROUNDS):
        bodies = [entry(forwards if index % 2 else backwards) for index in range(CLIENTS)]
        assert statuses(together([claim(app, new_uuid(), body) for body in bodies])) == {204: CLIENTS}
    assert served.retries["deadlock"] == 0
    assert [used(api, provider) for provider in providers] == [{"VCPU": ROUNDS * CLIENTS}] * 4


def test_of_many_that_make_one_consumer_one_succeeds(app: Flask, api: Api, served: Database) -> None:
    """Story 2009159 of the reference, which answered 500. nova takes this detail for a permanent conflict."""
    provider = make_provider(api, VCPU=1)
    for _ in range(ROUNDS):
        consumer = new_uuid()
        answers = together([claim(app, consumer, entry({provider: {"VCPU": 1}})) for _ in range(8)])
        assert statuses(answers) == {204: 1, 409: 7}
        for answer in answers:
            if answer.status_code == 409:
                (error,) = answer.get_json()["errors"]
                assert error["code"] == "placement.concurrent_update"
                assert "consumer generation conflict - expected 1 but got None" in error["detail"]
        assert used(api, provider) == {"VCPU": 1}
        ask(api, "DELETE", f"/allocations/{consumer}", "1.0")
    check_books(served)


def test_of_many_that_change_one_consumer_from_one_generation_one_succeeds(
    app: Flask, api: Api, served: Database
) -> None:
    provider = make_provider(api, VCPU=100)
    consumer = claimed(api, {provider: {"VCPU": 1}})
    bodies = [entry({provider: {"VCPU": index}}, 1) for index in range(2, 10)]
    assert statuses(together([claim(app, consumer, body) for body in bodies])) == {204: 1, 409: 7}
    assert consumer_generation(api, consumer) == 2
    assert held(api, consumer) == {provider: used(api, provider)}


def test_claims_of_a_project_seen_for_the_first_time_all_succeed(app: Flask, api: Api, served: Database) -> None:
    providers = [make_provider(api, VCPU=100) for _ in range(4)]
    served.retries.clear()
    for attempt in range(ROUNDS):
        owner = {"project_id": f"p{attempt}", "user_id": f"u{attempt}", "consumer_type": f"T{attempt}"}
        orders = [providers[index % 4 :] + providers[: index % 4] for index in range(CLIENTS)]
        bodies = [entry({provider: {"VCPU": 1} for provider in order}, **owner) for order in orders]
        assert statuses(together([claim(app, new_uuid(), body) for body in bodies])) == {204: CLIENTS}
        usage = ask(api, "GET", f"/usages?project_id=p{attempt}", "1.38")["usages"]
        assert usage == {f"T{attempt}": {"VCPU": 4 * CLIENTS, "consumer_count": CLIENTS}}
    assert served.retries["deadlock"] == 0


def test_a_provider_is_not_deleted_under_a_claim(app: Flask, api: Api, served: Database) -> None:
    for _ in range(ROUNDS):
        provider = make_provider(api, VCPU=1)
        delete = lambda: Api(app).delete(f"/resource_providers/{provider}")  # noqa: B023, E731
        deleted, answer = together([delete, claim(app, new_uuid(), entry({provider: {"VCPU": 1}}))])
        assert (deleted.status_code, answer.status_code) in {(204, 400), (409, 204)}
    check_books(served)


def test_a_reshape_and_claims_do_not_overcommit(app: Flask, api: Api, served: Database) -> None:
    """The inventory moves to another provider while claims arrive for the first."""
    for _ in range(ROUNDS):
        old, new = make_provider(api, VCPU=8), make_provider(api, DISK_GB=1)
        holder = claimed(api, {old: {"VCPU": 4}})
        body = {
            "inventories": {
                old: {"resource_provider_generation": generation(api, old), "inventories": {}},
                new: {"resource_provider_generation": generation(api, new), "inventories": {"VCPU": {"total": 8}}},
            },
            "allocations": {holder: entry({new: {"VCPU": 4}}, 1)},
        }
        reshape = lambda: Api(app).post("/reshaper", body, headers=SERVICE)  # noqa: B023, E731
        claims = [claim(app, new_uuid(), entry({old: {"VCPU": 1}})) for _ in range(6)]
        reshaped, *others = together([reshape, *claims])
        if reshaped.status_code == 204:
            assert statuses(others) == {409: 6}
            assert (used(api, old), used(api, new)) == ({}, {"VCPU": 4})
        else:
            assert reshaped.status_code == 409
            assert statuses(others) == {204: 4, 409: 2}
        check_books(served)
