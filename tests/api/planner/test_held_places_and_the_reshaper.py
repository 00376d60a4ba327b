"""A place that a planner claim holds exclusively is closed to reshapes, too."""

from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from tests.api.conftest import Api
from tests.api.planner.test_held_places import ONE_NIC_ALONE, claimed, put, without_option
from tests.claims import SERVICE, Shares, ask, entry, error_of, generation, held, new_uuid
from tests.planner_hosts import register, uuid_of

NUMA0 = uuid_of("host-numa0")
SWITCH, GPU, OTHER, ELSEWHERE = (uuid_of(f"host-{name}") for name in ("pcie0.0", "gpu0", "gpu1", "gpu2"))


def reshape(
    api: Api, claims: dict[str, Any], inventories: dict[str, dict[str, Any]] | None = None, *, unchanged: str = NUMA0
) -> TestResponse:
    """Reshape inventories, or keep a provider's inventories as they are, and write allocations."""
    found = ask(api, "GET", f"/resource_providers/{unchanged}/inventories")["inventories"]
    new = {
        provider: {"resource_provider_generation": generation(api, provider), "inventories": of}
        for provider, of in (inventories or {unchanged: found}).items()
    }
    return api.post("/reshaper", {"inventories": new, "allocations": claims}, headers=SERVICE)


def holdings(found: dict[str, Any]) -> Shares:
    """Return what the answer of a claim says its consumer holds."""
    return {provider: dict(one["resources"]) for provider, one in found["allocations"].items()}


def test_a_reshape_writes_nothing_of_others_into_a_place_that_is_held(api: Api) -> None:
    register(api)
    claimed(api, ONE_NIC_ALONE)
    other = new_uuid()
    error = error_of(reshape(api, {other: entry({GPU: {"PGPU": 1}})}), 409)
    assert error["code"] == "placement.held_exclusively"
    assert f"{SWITCH} (host-pcie0.0) is held exclusively by another consumer." in error["detail"]
    assert held(api, other) == {}
    assert reshape(api, {other: entry({ELSEWHERE: {"PGPU": 1}})}).status_code == 204


def test_a_reshape_moves_inventory_inside_of_a_place_with_what_its_holder_has(api: Api) -> None:
    """The virtual functions of a NIC move from one provider to another behind the switch."""
    register(api)
    found = claimed(api, ONE_NIC_ALONE)
    who, mine = found["consumer"]["uuid"], holdings(found)
    nic = next(provider for provider, of in mine.items() if "CUSTOM_RDMA_SHARE" in of)
    inventory = {"CUSTOM_RDMA_SHARE": {"total": 100}}
    moved = {**mine, GPU: {"CUSTOM_RDMA_SHARE": mine[nic].pop("CUSTOM_RDMA_SHARE")}}
    kept = {provider: of for provider, of in moved.items() if of}
    was = ask(api, "GET", f"/resource_providers/{nic}/inventories")["inventories"]
    there = ask(api, "GET", f"/resource_providers/{GPU}/inventories")["inventories"]
    left = {name: of for name, of in was.items() if name != "CUSTOM_RDMA_SHARE"}
    body = {who: entry(kept, found["consumer"]["consumer_generation"])}
    assert reshape(api, body, {nic: left, GPU: there | inventory}).status_code == 204
    assert held(api, who) == kept
    guest = new_uuid()
    assert reshape(api, {guest: entry({GPU: {"CUSTOM_RDMA_SHARE": 1}})}).status_code == 409


def test_who_is_in_a_held_place_may_be_written_again_but_takes_no_more(app: Flask, api: Api) -> None:
    """It got there while the option was off: a reshape may write it unchanged, or move it inside the place."""
    register(api)
    claimed(api, ONE_NIC_ALONE)
    guest = new_uuid()
    assert put(without_option(app), {"gpu0": {"PGPU": 1}}, guest).status_code == 204
    assert reshape(api, {guest: entry({GPU: {"PGPU": 1}}, 1)}).status_code == 204
    assert reshape(api, {guest: entry({OTHER: {"PGPU": 1}}, 2)}).status_code == 204
    assert reshape(api, {guest: entry({GPU: {"PGPU": 1}, OTHER: {"PGPU": 1}}, 3)}).status_code == 409
    assert reshape(api, {guest: entry({OTHER: {"PGPU": 1}, ELSEWHERE: {"PGPU": 1}}, 3)}).status_code == 204


def test_a_reshape_hands_a_place_on_as_a_whole(api: Api) -> None:
    """A consumer that gives the lock away must not keep anything behind it, although it held that before."""
    register(api)
    found = claimed(api, ONE_NIC_ALONE)
    who, other, mine = found["consumer"]["uuid"], new_uuid(), holdings(found)
    seen = found["consumer"]["consumer_generation"]
    nic = next(provider for provider, of in mine.items() if "CUSTOM_RDMA_SHARE" in of)
    rest = {nic: {"CUSTOM_RDMA_SHARE": mine[nic]["CUSTOM_RDMA_SHARE"]}}
    lock = {SWITCH: mine[SWITCH]}
    assert reshape(api, {who: entry(rest, seen), other: entry(lock)}).status_code == 409
    assert reshape(api, {who: entry({}, seen), other: entry(mine)}).status_code == 204
    assert held(api, other) == mine


def test_a_lock_that_comes_with_the_reshape_counts(api: Api) -> None:
    register(api)
    path = f"/resource_providers/{SWITCH}/inventories"
    locks = ask(api, "GET", path)["inventories"]
    for name in ("pcie0.0", "pcie0.1", "pcie1.0", "pcie1.1"):
        api.delete(f"/resource_providers/{uuid_of(f'host-{name}')}/inventories")
    alone, guest = new_uuid(), new_uuid()
    all_of_it = {SWITCH: {"CUSTOM_PCIE_LOCK": locks["CUSTOM_PCIE_LOCK"]["total"]}}
    claims = {alone: entry(all_of_it), guest: entry({GPU: {"PGPU": 1}})}
    assert reshape(api, claims, {SWITCH: locks}).status_code == 409
    del claims[guest]
    assert reshape(api, claims, {SWITCH: locks}).status_code == 204
