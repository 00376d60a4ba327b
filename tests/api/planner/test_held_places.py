"""A place that a planner claim holds exclusively is closed to plain requests and reshapes, too: exclusive_for_all."""

from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from placement.settings.values import PlannerApiSettings
from tests.api.conftest import Api, with_settings
from tests.api.test_statement_counts import statements
from tests.claims import SERVICE, Shares, entry, error_of, generation, held, make_provider, new_uuid
from tests.http_calls import ask
from tests.planner_hosts import names_of, only, placed, register, uuid_of

ONE_NIC_ALONE = {
    "groups": {"_NIC": {"resources": {"CUSTOM_RDMA_SHARE": 1}}},
    "exclusive": [{"groups": ["_NIC"], "level": "pcie"}],
}
ONE = {"PGPU": 1}
NUMA0 = uuid_of("host-numa0")
SWITCH, GPU, OTHER, ELSEWHERE = (uuid_of(f"host-{name}") for name in ("pcie0.0", "gpu0", "gpu1", "gpu2"))
"""A switch, the two GPUs behind it, and one behind the next switch."""


@pytest.fixture
def holder(api: Api) -> dict[str, Any]:
    """The claim of a consumer that holds the first switch of a host for its NIC."""
    register(api)
    return placed(api, ONE_NIC_ALONE)


def holdings(claim: dict[str, Any]) -> Shares:
    """Return what the answer of a claim says its consumer holds."""
    return {provider: dict(share["resources"]) for provider, share in claim["allocations"].items()}


def served_by(api: Api, query: str) -> list[str]:
    """Return the names of the providers in the candidates of a query, in order."""
    answer, names = ask(api, "GET", f"/allocation_candidates?{query}"), names_of(api)
    return [names[uuid] for one in answer["allocation_requests"] for uuid in one["allocations"]]


def status_of_put(api: Api, shares: Shares, uuid: str | None = None, seen: int | None = None) -> int:
    return api.put(f"/allocations/{uuid or new_uuid()}", entry(shares, seen)).status_code


def unlocked(app: Flask) -> Api:
    """Return a client of a server on the same database that treats plain requests as the reference does."""
    return with_settings(app, planner_api=PlannerApiSettings(exclusive_for_all=False))


def test_plain_candidates_leave_out_a_switch_that_is_held(api: Api, holder: dict) -> None:
    assert served_by(api, "resources=PGPU:1&limit=1") == ["host-gpu2"]
    assert served_by(api, "resources=PGPU:1") == [f"host-gpu{number}" for number in range(2, 8)]
    groups = "&".join(f"resources_{number}=PGPU:1" for number in range(7))
    assert served_by(api, f"{groups}&group_policy=isolate") == []


def test_a_plain_allocation_on_a_switch_that_is_held_is_refused(api: Api, holder: dict) -> None:
    error = error_of(api.put(f"/allocations/{new_uuid()}", entry({GPU: ONE})), 409)
    assert error["code"] == "placement.held_exclusively"
    assert f"{SWITCH} (host-pcie0.0) is held exclusively by another consumer." in error["detail"]
    assert status_of_put(api, {uuid_of("host-nic0-vf"): {"SRIOV_NET_VF": 1}}) == 409
    assert status_of_put(api, {ELSEWHERE: ONE}) == 204
    assert status_of_put(api, {NUMA0: {"VCPU": 1}}) == 204
    many = {new_uuid(): entry({OTHER: ONE}), new_uuid(): entry({uuid_of("host-gpu3"): ONE})}
    assert api.post("/allocations", many).status_code == 409
    assert served_by(api, "resources=PGPU:1") == [f"host-gpu{number}" for number in range(3, 8)]


def test_who_holds_a_switch_may_take_more_of_it_and_hand_it_on(api: Api, holder: dict) -> None:
    """As nova does in a migration: the instance's allocations are transferred to another consumer in one request."""
    more = {**holdings(holder), GPU: ONE}
    uuid, other = holder["consumer"]["uuid"], new_uuid()
    assert status_of_put(api, more, uuid, holder["consumer"]["consumer_generation"]) == 204
    for stays_at, status in ((OTHER, 409), (ELSEWHERE, 204)):
        moved = {other: entry(more), uuid: entry({stays_at: ONE}, 2)}
        assert api.post("/allocations", moved).status_code == status
    ask(api, "DELETE", f"/allocations/{other}")
    assert status_of_put(api, {GPU: ONE}) == 204


def test_an_explanation_names_what_is_held(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 2, "nics": 1}]])
    placed(api, ONE_NIC_ALONE)
    explained = ask(api, "GET", "/planner/v1/explain?resources=PGPU:1")
    near_miss = explained["near_misses"][0]
    assert explained["cause"]["condition"] == near_miss["condition"] == "held_exclusively"
    assert near_miss["providers"][0]["name"] == "host-gpu0"
    assert "places that nobody else holds exclusively" in near_miss["message"]


def test_a_device_that_is_held_is_remembered(api: Api) -> None:
    """Koordinator's DeviceLevel: on the documented model the next claim takes another device."""
    register(api)
    plain = {"requests": {"koordinator.sh/rdma": 1}}
    body = {**plain, "device_allocate_hint": {"rdma": {"exclusivePolicy": "DeviceLevel"}}}
    assert only(api, body) == {"_rdma": "nic0"}
    placed(api, body)
    assert only(api, body) == only(api, plain) == {"_rdma": "nic1"}
    assert served_by(api, "resources=SRIOV_NET_VF:1&limit=1") == ["host-nic1-vf"]
    assert status_of_put(api, {uuid_of("host-nic0"): {"CUSTOM_RDMA_SHARE": 1}}) == 409


def test_a_shared_lock_without_room_closes_a_place_but_not_for_who_is_there(api: Api) -> None:
    register(api)
    path = f"/resource_providers/{SWITCH}/inventories/CUSTOM_PCIE_LOCK"
    ask(api, "PUT", path, body={"resource_provider_generation": 2, "total": 2})
    first, lock = new_uuid(), {SWITCH: {"CUSTOM_PCIE_LOCK": 1}}
    assert [status_of_put(api, lock, first), status_of_put(api, lock)] == [204, 204]
    assert status_of_put(api, {**lock, GPU: ONE}, first, 1) == 204
    assert status_of_put(api, {OTHER: ONE}) == 409


def test_a_guest_that_was_there_first_stays_moves_and_is_handed_on_but_takes_no_more(
    app: Flask, api: Api, holder: dict
) -> None:
    """Nova rewrites an instance's allocations unchanged; a migration transfers them to another consumer for a while."""
    guest, migration = new_uuid(), new_uuid()
    assert status_of_put(unlocked(app), {GPU: ONE}, guest) == 204
    assert status_of_put(api, {GPU: ONE}, guest, 1) == 204
    assert status_of_put(api, {OTHER: ONE}, guest, 2) == 204
    assert status_of_put(api, {GPU: ONE, OTHER: ONE}, guest, 3) == 409
    both = {migration: entry({GPU: ONE}), guest: entry({OTHER: ONE}, 3)}
    assert api.post("/allocations", both).status_code == 409
    handed_on = {migration: entry({OTHER: ONE}), guest: entry({ELSEWHERE: ONE}, 3)}
    assert api.post("/allocations", handed_on).status_code == 204
    assert status_of_put(api, {GPU: ONE}) == 409


def test_without_the_option_plain_requests_know_of_no_locks(app: Flask, holder: dict) -> None:
    plain = unlocked(app)
    assert served_by(plain, "resources=PGPU:1&limit=1") == ["host-gpu0"]
    assert status_of_put(plain, {GPU: ONE}) == 204
    assert headroom(plain, "resources=PGPU:1")["fits"] == 8 - 1


def test_where_nothing_has_a_lock_it_costs_no_statement(app: Flask, api: Api) -> None:
    uuid = make_provider(api, VCPU=8)

    def number_of_statements(client: Api) -> tuple[int, int]:
        assert status_of_put(client, {uuid: {"VCPU": 1}}) == 204
        ask(client, "GET", "/allocation_candidates?resources=VCPU:2")
        with statements(client.app) as sent:
            assert ask(client, "GET", "/allocation_candidates?resources=VCPU:1")["allocation_requests"]
        with statements(client.app) as written:
            assert status_of_put(client, {uuid: {"VCPU": 1}}) == 204
        return len(sent), len(written)

    assert number_of_statements(api) == number_of_statements(unlocked(app))


def headroom(api: Api, query: object, **body: object) -> dict:
    found: dict = ask(api, "POST", "/planner/v1/headroom", body={"requests": {"it": query}, **body})["headroom"]["it"]
    return found


def test_headroom_leaves_out_what_is_held(api: Api, holder: dict) -> None:
    """One more host like it is empty, whatever is held on this one."""
    free = headroom(api, "resources=PGPU:1")
    assert (free["fits"], free["at_most"], [one["fits"] for one in free["one_more"]]) == (6, 6, [8])
    more = {"with": [{"like": uuid_of("host"), "count": 2}]}
    assert headroom(api, "resources=PGPU:1", **more)["fits"] == 6 + 2 * 8
    assert headroom(api, "resources=PGPU:1", released=[holder["consumer"]["uuid"]])["fits"] == 8
    groups = "&".join(f"resources_{number}=PGPU:1" for number in range(7))
    assert headroom(api, f"{groups}&group_policy=isolate")["stranded"] == {"PGPU": 6}
    assert headroom(api, {"groups": {"_GPU": {"resources": ONE}}})["fits"] == 6


def reshape(api: Api, claims: dict[str, Any], inventories: dict[str, dict[str, Any]] | None = None) -> TestResponse:
    """Reshape inventories, or keep those of a NUMA node as they are, and write allocations."""
    every = inventories or {NUMA0: stocks_of(api, NUMA0)}
    new = {
        provider: {"resource_provider_generation": generation(api, provider), "inventories": of}
        for provider, of in every.items()
    }
    return api.post("/reshaper", {"inventories": new, "allocations": claims}, headers=SERVICE)


def stocks_of(api: Api, provider: str) -> dict[str, Any]:
    stocks: dict[str, Any] = ask(api, "GET", f"/resource_providers/{provider}/inventories")["inventories"]
    return stocks


def test_a_reshape_writes_nothing_of_others_into_a_place_that_is_held(api: Api, holder: dict) -> None:
    other = new_uuid()
    error = error_of(reshape(api, {other: entry({GPU: ONE})}), 409)
    assert error["code"] == "placement.held_exclusively"
    assert f"{SWITCH} (host-pcie0.0) is held exclusively by another consumer." in error["detail"]
    assert held(api, other) == {}
    assert reshape(api, {other: entry({ELSEWHERE: ONE})}).status_code == 204


def test_a_reshape_moves_inventory_inside_of_a_place_with_what_its_holder_has(api: Api, holder: dict) -> None:
    """The virtual functions of a NIC move from one provider to another behind the switch."""
    who, mine, name = holder["consumer"]["uuid"], holdings(holder), "CUSTOM_RDMA_SHARE"
    nic = next(provider for provider, of in mine.items() if name in of)
    moved = {**mine, GPU: {name: mine[nic].pop(name)}}
    kept = {provider: of for provider, of in moved.items() if of}
    left = {class_: of for class_, of in stocks_of(api, nic).items() if class_ != name}
    body = {who: entry(kept, holder["consumer"]["consumer_generation"])}
    new = {nic: left, GPU: stocks_of(api, GPU) | {name: {"total": 100}}}
    assert reshape(api, body, new).status_code == 204
    assert held(api, who) == kept
    assert reshape(api, {new_uuid(): entry({GPU: {name: 1}})}).status_code == 409


def test_who_is_in_a_held_place_may_be_reshaped_but_takes_no_more(app: Flask, api: Api, holder: dict) -> None:
    """It got there while the option was off: a reshape may write it unchanged, or move it inside the place."""
    guest = new_uuid()
    assert status_of_put(unlocked(app), {GPU: ONE}, guest) == 204
    steps = [({GPU: ONE}, 204), ({OTHER: ONE}, 204), ({GPU: ONE, OTHER: ONE}, 409), ({OTHER: ONE, ELSEWHERE: ONE}, 204)]
    seen = 1
    for shares, status in steps:
        assert reshape(api, {guest: entry(shares, seen)}).status_code == status
        seen += status == 204


def test_a_reshape_hands_a_place_on_as_a_whole(api: Api, holder: dict) -> None:
    """A consumer that gives the lock away must not keep anything behind it, although it held that before."""
    who, other, mine = holder["consumer"]["uuid"], new_uuid(), holdings(holder)
    seen, lock = holder["consumer"]["consumer_generation"], {SWITCH: mine[SWITCH]}
    rest = {provider: {"CUSTOM_RDMA_SHARE": 1} for provider, of in mine.items() if "CUSTOM_RDMA_SHARE" in of}
    assert reshape(api, {who: entry(rest, seen), other: entry(lock)}).status_code == 409
    assert reshape(api, {who: entry({}, seen), other: entry(mine)}).status_code == 204
    assert held(api, other) == mine


def test_a_lock_that_comes_with_the_reshape_counts(api: Api) -> None:
    register(api)
    locks = stocks_of(api, SWITCH)
    for name in ("pcie0.0", "pcie0.1", "pcie1.0", "pcie1.1"):
        api.delete(f"/resource_providers/{uuid_of(f'host-{name}')}/inventories")
    alone = {new_uuid(): entry({SWITCH: {"CUSTOM_PCIE_LOCK": locks["CUSTOM_PCIE_LOCK"]["total"]}})}
    assert reshape(api, {**alone, new_uuid(): entry({GPU: ONE})}, {SWITCH: locks}).status_code == 409
    assert reshape(api, alone, {SWITCH: locks}).status_code == 204
