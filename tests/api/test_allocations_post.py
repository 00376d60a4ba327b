"""POST /allocations: several consumers in one change."""

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event, func, select

from placement.store.tables import consumer_types, consumers, projects, users
from tests.api.conftest import Api, stop_background
from tests.claims import (
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

NOBODY = "11111111-2222-3333-4444-555555555555"


def detail_of(answer: Any) -> str:
    detail: str = answer.get_json()["errors"][0]["detail"]
    return detail


def test_consumers_swap_what_only_one_can_hold(api: Api) -> None:
    """Releases count before allocations, whatever the order in the body."""
    left, right = make_provider(api, VCPU=1), make_provider(api, VCPU=1)
    one, other = claimed(api, {left: {"VCPU": 1}}), claimed(api, {right: {"VCPU": 1}})
    body = {one: entry({right: {"VCPU": 1}}, 1), other: entry({left: {"VCPU": 1}}, 1)}
    ask(api, "POST", "/allocations", body=body)
    assert (held(api, one), held(api, other)) == ({right: {"VCPU": 1}}, {left: {"VCPU": 1}})
    assert (consumer_generation(api, one), consumer_generation(api, other)) == (2, 2)
    assert (generation(api, left), generation(api, right)) == (3, 3)


def test_a_provider_moves_on_once_however_many_consumers_name_it(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    gone = claimed(api, {provider: {"VCPU": 1}})
    body = {new_uuid(): entry({provider: {"VCPU": 1}}) for _ in range(3)}
    ask(api, "POST", "/allocations", body={gone: entry({}, 1), **body})
    assert generation(api, provider) == 3


def test_the_sum_of_all_consumers_must_fit(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    body = {new_uuid(): entry({provider: {"VCPU": 3}}) for _ in range(3)}
    answer = api.post("/allocations", body)
    assert answer.status_code == 409
    assert "The requested amount would exceed the capacity" in detail_of(answer)
    assert used(api, provider) == {"VCPU": 0}


REFUSED = {
    "unknown provider": (400, {NOBODY: {"VCPU": 1}}, None),
    "unknown class": (400, {"<provider>": {"CUSTOM_PONY": 1}}, None),
    "no inventory": (409, {"<provider>": {"MEMORY_MB": 1}}, None),
    "capacity": (409, {"<provider>": {"VCPU": 9}}, None),
    "generation": (409, {"<provider>": {"VCPU": 1}}, 7),
}


@pytest.mark.parametrize(("status", "shares", "seen"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_change_leaves_nothing_behind(
    app: Flask, api: Api, status: int, shares: dict[str, dict[str, int]], seen: int | None
) -> None:
    """In the reference, consumers created for a refused write may remain, and so do their projects and users."""
    provider = make_provider(api, VCPU=8)
    good, bad = new_uuid(), new_uuid()
    shares = {uuid.replace("<provider>", provider): resources for uuid, resources in shares.items()}
    body = {good: entry({provider: {"VCPU": 1}}), bad: entry(shares, seen)}
    assert api.post("/allocations", body).status_code == status
    assert api.put(f"/allocations/{bad}", body[bad]).status_code == status
    assert (held(api, good), held(api, bad)) == ({}, {})
    assert generation(api, provider) == 1
    with app.extensions["placement"].database.engine.connect() as connection:
        for table in (consumers, projects, users, consumer_types):
            assert connection.execute(select(func.count()).select_from(table)).scalar() == 0, table.name
    ask(api, "PUT", f"/allocations/{bad}", body=entry({provider: {"VCPU": 1}}))


def test_the_number_of_statements_does_not_grow_with_the_change(app: Flask, api: Api) -> None:
    """A round trip for each provider or consumer would make large changes slow while they hold most locks."""
    providers = [make_provider(api, VCPU=80, MEMORY_MB=512) for _ in range(12)]
    statements: list[str] = []
    engine = app.extensions["placement"].database.engine
    stop_background(app)
    event.listen(engine, "before_cursor_execute", lambda *call: statements.append(call[2]))

    def cost(amount: int, seen: int | None, many: list[str]) -> int:
        statements.clear()
        ask(api, "POST", "/allocations", body={uuid: entry(shares(amount, many), seen) for uuid in consumers})
        return len(statements)

    def shares(amount: int, many: list[str]) -> dict[str, dict[str, int]]:
        return {uuid: {"VCPU": amount, "MEMORY_MB": 1} for uuid in many}

    consumers = [new_uuid()]
    cost(1, None, providers[:1])
    small = cost(2, 1, providers[:1])
    consumers = [new_uuid() for _ in range(4)]
    cost(1, None, providers)
    assert cost(2, 1, providers) == small <= 13
