"""PUT and POST of allocations, and reshapes, which move inventories with them."""

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import func, select

from placement.store.tables import consumer_types, consumers, projects, users
from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import (
    OWNER,
    SERVICE,
    ask,
    claimed,
    consumer_generation,
    detail_of,
    entry,
    error_of,
    generation,
    held,
    listed_entry,
    make_provider,
    new_uuid,
    old_entry,
    set_inventories,
    used,
)

NOBODY = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize("version", ["1.12", "1.27", "1.28", "1.38"])
def test_the_body_of_an_answer_can_be_sent_back(api: Api, version: str) -> None:
    """As neutron-lib does; the providers' generations in it are not compared."""
    provider = make_provider(api, VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 2}})
    claimed(api, {provider: {"VCPU": 1}})
    body = ask(api, "GET", f"/allocations/{consumer}", version)
    body["allocations"][provider]["resources"]["VCPU"] = 3
    body["allocations"][provider]["generation"] -= 1
    ask(api, "PUT", f"/allocations/{consumer}", version, body)
    assert held(api, consumer) == {provider: {"VCPU": 3}}


def test_the_consumer_in_the_path_is_a_uuid_in_any_spelling(api: Api) -> None:
    provider, consumer = make_provider(api, VCPU=8), new_uuid()
    ask(api, "PUT", f"/allocations/{consumer.replace('-', '').upper()}", body=entry({provider: {"VCPU": 1}}))
    assert held(api, consumer) == {provider: {"VCPU": 1}}
    assert "Malformed consumer_uuid: pony" in detail_of(api.put("/allocations/pony", {}))


class TestOverCapacity:
    """A provider whose inventory was reduced below its usage (bugs 2104040, 1924123, 1941892, 1943191)."""

    @pytest.fixture
    def provider(self, api: Api) -> str:
        return make_provider(api, VCPU=8, MEMORY_MB=1024)

    @pytest.fixture
    def consumer(self, api: Api, provider: str) -> str:
        consumer = claimed(api, {provider: {"VCPU": 6, "MEMORY_MB": 512}})
        claimed(api, {provider: {"VCPU": 2}})
        set_inventories(api, provider, VCPU=4, MEMORY_MB=1024)
        return consumer

    @pytest.mark.parametrize("amount", [6, 5, 1])
    def test_takes_a_change_that_does_not_increase_its_use(
        self, api: Api, provider: str, consumer: str, amount: int
    ) -> None:
        ask(api, "PUT", f"/allocations/{consumer}", body=entry({provider: {"VCPU": amount, "MEMORY_MB": 1024}}, 1))
        assert used(api, provider) == {"VCPU": amount + 2, "MEMORY_MB": 1024}

    def test_refuses_an_increase(self, api: Api, provider: str, consumer: str) -> None:
        answer = api.put(f"/allocations/{consumer}", entry({provider: {"VCPU": 7}}, 1))
        assert "would exceed the capacity" in detail_of(answer, 409)
        assert api.put(f"/allocations/{NOBODY}", entry({provider: {"VCPU": 1}})).status_code == 409

    def test_lets_allocations_move_to_another_consumer(self, api: Api, provider: str, consumer: str) -> None:
        """A migration transfers the instance's allocations to the migration's own consumer, and allocates elsewhere."""
        target, migration = make_provider(api, VCPU=8, MEMORY_MB=1024), new_uuid()
        shares = {"VCPU": 6, "MEMORY_MB": 512}
        body = {migration: entry({provider: shares}), consumer: entry({target: shares}, 1)}
        ask(api, "POST", "/allocations", body=body)
        assert held(api, migration) == {provider: shares}
        assert held(api, consumer) == {target: shares}

    def test_keeps_to_the_unit_rules(self, api: Api, provider: str, consumer: str) -> None:
        set_inventories(api, provider, VCPU={"total": 4, "max_unit": 4}, MEMORY_MB=1024)
        answer = api.put(f"/allocations/{consumer}", entry({provider: {"VCPU": 5}}, 1))
        assert "would violate inventory constraints" in detail_of(answer, 409)


def test_an_empty_claim_of_an_unknown_consumer_leaves_nothing_behind(api: Api) -> None:
    """In the reference a hidden consumer remains, and the next claim conflicts with it."""
    provider = make_provider(api, VCPU=8)
    ask(api, "PUT", f"/allocations/{NOBODY}", body=entry({}))
    ask(api, "PUT", f"/allocations/{NOBODY}", body=entry({provider: {"VCPU": 1}}))
    assert consumer_generation(api, NOBODY) == 1


def test_a_change_of_owner_is_kept_or_dropped_with_the_write(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 1}})
    path, other = f"/allocations/{consumer}", {"project_id": "p2", "user_id": "u2", "consumer_type": "MIGRATION"}
    assert api.put(path, entry({provider: {"VCPU": 9}}, 1, **other)).status_code == 409
    found = ask(api, "GET", path)
    assert {key: found[key] for key in other} == {**OWNER, "consumer_type": "INSTANCE"}
    ask(api, "PUT", path, body=entry({provider: {"VCPU": 8}}, 1, **other))
    found = ask(api, "GET", path)
    assert {key: found[key] for key in other} == other
    # A client that does not know types does not change it.
    ask(api, "PUT", path, "1.37", {**old_entry({provider: {"VCPU": 7}}), "consumer_generation": 2})
    found = ask(api, "GET", path)
    assert {key: found[key] for key in other} == {**OWNER, "consumer_type": "MIGRATION"}


def test_a_provider_given_twice_in_the_old_list_counts_once(api: Api) -> None:
    provider, consumer = make_provider(api, VCPU=8, MEMORY_MB=8), new_uuid()
    body = listed_entry({provider: {"VCPU": 1}})
    body["allocations"] += listed_entry({provider: {"MEMORY_MB": 2}})["allocations"]
    ask(api, "PUT", f"/allocations/{consumer}", "1.0", body)
    assert held(api, consumer) == {provider: {"MEMORY_MB": 2}}


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

    def cost(amount: int, seen: int | None, many: list[str]) -> int:
        with statements(app) as sent:
            ask(api, "POST", "/allocations", body={uuid: entry(shares(amount, many), seen) for uuid in consumers})
        return len(sent)

    def shares(amount: int, many: list[str]) -> dict[str, dict[str, int]]:
        return {uuid: {"VCPU": amount, "MEMORY_MB": 1} for uuid in many}

    consumers = [new_uuid()]
    cost(1, None, providers[:1])
    small = cost(2, 1, providers[:1])
    consumers = [new_uuid() for _ in range(4)]
    cost(1, None, providers)
    assert cost(2, 1, providers) == small <= 13


def inventories(seen: int, **of: int | dict[str, Any]) -> dict[str, Any]:
    """Return a provider's new inventories; an inventory is a total, or its fields."""
    totals = {name: {"total": amount} if isinstance(amount, int) else amount for name, amount in of.items()}
    return {"resource_provider_generation": seen, "inventories": totals}


def reshape(api: Api, new: dict[str, Any], claims: dict[str, Any] | None = None, version: str = "1.39") -> Any:
    body = {"inventories": new, "allocations": claims or {}}
    return api.post("/reshaper", body, version=version, headers=SERVICE)


def classes_of(api: Api, provider: str) -> dict[str, int]:
    found = ask(api, "GET", f"/resource_providers/{provider}/inventories")["inventories"]
    return {name: inventory["total"] for name, inventory in found.items()}


@pytest.fixture
def root(api: Api) -> str:
    """A provider at generation 1."""
    return make_provider(api, VCPU=8, DISK_GB=100)


@pytest.fixture
def child(api: Api) -> str:
    """A provider at generation 0."""
    return make_provider(api)


def test_a_class_moves_to_another_provider_with_what_is_allocated_of_it(api: Api, root: str, child: str) -> None:
    consumer = claimed(api, {root: {"VCPU": 4, "DISK_GB": 10}})
    other = claimed(api, {root: {"VCPU": 2}})
    answer = reshape(
        api,
        {root: inventories(3, DISK_GB=100), child: inventories(0, VCPU={"total": 8, "max_unit": 4})},
        {consumer: entry({root: {"DISK_GB": 10}, child: {"VCPU": 4}}, 1), other: entry({child: {"VCPU": 2}}, 1)},
    )
    assert (answer.status_code, answer.data) == (204, b"")
    assert "content-type" not in answer.headers
    assert (classes_of(api, root), classes_of(api, child)) == ({"DISK_GB": 100}, {"VCPU": 8})
    assert (used(api, root), used(api, child)) == ({"DISK_GB": 10}, {"VCPU": 6})
    assert held(api, consumer) == {root: {"DISK_GB": 10}, child: {"VCPU": 4}}
    assert (consumer_generation(api, consumer), consumer_generation(api, other)) == (2, 2)
    assert (generation(api, root), generation(api, child)) == (6, 3)


def test_an_inventory_in_use_does_not_disappear(api: Api, root: str) -> None:
    """The detail and the code are what nova looks for."""
    set_inventories(api, root, VCPU=8, DISK_GB=100, MEMORY_MB=10, PCPU=3)
    claimed(api, {root: {"DISK_GB": 10, "VCPU": 1}})
    answer = reshape(api, {root: inventories(3, MEMORY_MB=10)})
    assert error_of(answer, 409)["code"] == "placement.inventory.inuse"
    sentence = f"update conflict: Inventory for 'VCPU, DISK_GB' on resource provider '{root}' in use."
    assert sentence in detail_of(answer, 409)


def test_an_inventory_may_become_smaller_than_what_others_hold(api: Api, root: str) -> None:
    """As with PUT inventories; only what the reshape itself allocates has to fit."""
    claimed(api, {root: {"VCPU": 6}})
    assert reshape(api, {root: inventories(2, VCPU=4, DISK_GB=1)}).status_code == 204
    answer = reshape(api, {root: inventories(4, VCPU=4, DISK_GB=1)}, {NOBODY: entry({root: {"VCPU": 1}})})
    assert answer.status_code == 409


def test_a_refused_reshape_changes_nothing(api: Api, root: str, child: str) -> None:
    consumer = claimed(api, {root: {"VCPU": 4}})
    answer = reshape(
        api,
        {child: inventories(0, VCPU=8), root: inventories(2, DISK_GB=1)},
        {consumer: entry({child: {"VCPU": 4}}, 1), NOBODY: entry({child: {"VCPU": 5}})},
    )
    assert answer.status_code == 409
    assert (classes_of(api, root), classes_of(api, child)) == ({"VCPU": 8, "DISK_GB": 100}, {})
    assert (generation(api, root), generation(api, child)) == (2, 0)
    assert (held(api, consumer), consumer_generation(api, consumer)) == ({root: {"VCPU": 4}}, 1)
    assert held(api, NOBODY) == {}
