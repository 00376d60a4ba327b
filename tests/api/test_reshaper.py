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
    new_uuid,
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


@pytest.mark.parametrize(
    ("kept", "allocates", "steps"),
    [
        pytest.param({"VCPU": 8}, True, 3, id="inventories and allocations"),
        pytest.param({"VCPU": 8}, False, 2, id="inventories"),
        pytest.param({}, False, 1, id="no inventories"),
    ],
)
def test_generations_move_on_as_the_reference_s_steps_add_up(
    api: Api, root: str, kept: dict[str, int], allocates: bool, steps: int
) -> None:
    claims = {new_uuid(): entry({root: {"VCPU": 1}})} if allocates else {}
    assert reshape(api, {root: inventories(1, **kept)}, claims).status_code == 204
    assert generation(api, root) == 1 + steps


def test_the_provider_that_everything_leaves_moves_on_once_more_where_consumers_are_cleared(
    api: Api, root: str, child: str
) -> None:
    consumer = claimed(api, {root: {"VCPU": 1}})
    assert reshape(api, {root: inventories(2)}, {consumer: entry({}, 1)}).status_code == 204
    assert generation(api, root) == 4
    assert held(api, consumer) == {}


def test_providers_of_allocations_only_keep_their_inventories(api: Api, root: str, child: str) -> None:
    consumer = new_uuid()
    answer = reshape(api, {child: inventories(0, VCPU=1)}, {consumer: entry({root: {"VCPU": 1}, child: {"VCPU": 1}})})
    assert answer.status_code == 204
    assert classes_of(api, root) == {"VCPU": 8, "DISK_GB": 100}
    assert (generation(api, root), consumer_generation(api, consumer)) == (2, 1)


def test_an_inventory_in_use_does_not_disappear(api: Api, root: str) -> None:
    """The detail and the code are what nova looks for."""
    set_inventories(api, root, VCPU=8, DISK_GB=100, MEMORY_MB=10, PCPU=3)
    claimed(api, {root: {"DISK_GB": 10, "VCPU": 1}})
    answer = reshape(api, {root: inventories(3, MEMORY_MB=10)})
    assert error_of(answer, 409)["code"] == "placement.inventory.inuse"
    sentence = f"update conflict: Inventory for 'VCPU, DISK_GB' on resource provider '{root}' in use."
    assert sentence in detail_of(answer, 409)


def test_a_claim_of_an_inventory_that_goes_is_in_its_way(api: Api, root: str) -> None:
    answer = reshape(api, {root: inventories(1, DISK_GB=1)}, {NOBODY: entry({root: {"VCPU": 1}})})
    assert error_of(answer, 409)["code"] == "placement.inventory.inuse"


@pytest.mark.parametrize(
    "vcpu",
    [
        3,
        {"total": 8, "max_unit": 3},
        {"total": 8, "min_unit": 5},
        {"total": 8, "step_size": 3},
        {"total": 8, "reserved": 5},
    ],
    ids=str,
)
def test_claims_are_judged_by_the_new_inventory(api: Api, root: str, vcpu: Any) -> None:
    answer = reshape(api, {root: inventories(1, VCPU=vcpu)}, {NOBODY: entry({root: {"VCPU": 4}})})
    assert "Unable to allocate inventory" in detail_of(answer, 409)


def test_an_inventory_may_become_smaller_than_what_others_hold(api: Api, root: str) -> None:
    """As with PUT inventories; only what the reshape itself allocates has to fit."""
    claimed(api, {root: {"VCPU": 6}})
    assert reshape(api, {root: inventories(2, VCPU=4, DISK_GB=1)}).status_code == 204
    answer = reshape(api, {root: inventories(4, VCPU=4, DISK_GB=1)}, {NOBODY: entry({root: {"VCPU": 1}})})
    assert answer.status_code == 409


def test_the_provider_generation_is_compared_before_anything_else(api: Api, root: str) -> None:
    answer = reshape(api, {root: inventories(7, VCPU=1)}, {NOBODY: entry({root: {"VCPU": 1}}, 5)})
    assert error_of(answer, 409)["code"] == "placement.concurrent_update"
    assert f"resource provider generation conflict for provider {root}: actual: 1, given: 7" in detail_of(answer, 409)
    assert "consumer" not in detail_of(answer, 409)


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
