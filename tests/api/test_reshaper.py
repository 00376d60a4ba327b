"""Moving inventories and allocations together."""

from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import (
    SERVICE,
    ask,
    claimed,
    consumer_generation,
    detail_of,
    entry,
    error_of,
    generation,
    held,
    make_provider,
    set_inventories,
    used,
)

NOBODY = "11111111-2222-3333-4444-555555555555"


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
        {
            consumer: entry({root: {"DISK_GB": 10}, child: {"VCPU": 4}}, 1),
            other: entry({child: {"VCPU": 2}}, 1),
        },
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
