"""A place that a planner claim holds exclusively is closed to plain requests: [planner] exclusive_for_all."""

from dataclasses import replace
from functools import partial

from flask import Flask

from placement.app import create_app
from placement.settings.values import PlannerApiSettings
from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import ask, error_of, make_provider, new_uuid
from tests.planner_hosts import CLAIMS, consumer, names_of, only, register, uuid_of

ONE_NIC_ALONE = {
    "groups": {"_NIC": {"resources": {"CUSTOM_RDMA_SHARE": 1}}},
    "exclusive": [{"groups": ["_NIC"], "level": "pcie"}],
}
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": None}


def claimed(api: Api, body: dict) -> dict:
    """Claim, and return the consumer with its allocations."""
    return ask(api, "POST", CLAIMS, body={**body, "consumer": consumer()})


def served_by(api: Api, query: str) -> list[str]:
    """Return the names of the providers in the candidates of a query, in order."""
    answer, names = ask(api, "GET", f"/allocation_candidates?{query}"), names_of(api)
    return [names[uuid] for one in answer["allocation_requests"] for uuid in one["allocations"]]


def put(api: Api, names: dict[str, dict[str, int]], uuid: str | None = None, **changed):
    """Allocate as a plain client does, and return the response."""
    allocations = {uuid_of(f"host-{name}"): {"resources": amounts} for name, amounts in names.items()}
    body = {"allocations": allocations, **OWNER, **changed}
    return api.put(f"/allocations/{uuid or new_uuid()}", body)


def test_plain_candidates_leave_out_a_switch_that_is_held(api: Api) -> None:
    register(api)
    claimed(api, ONE_NIC_ALONE)
    assert served_by(api, "resources=PGPU:1&limit=1") == ["host-gpu2"]
    assert served_by(api, "resources=PGPU:1") == [f"host-gpu{number}" for number in range(2, 8)]
    groups = "&".join(f"resources_{number}=PGPU:1" for number in range(7))
    assert served_by(api, f"{groups}&group_policy=isolate") == []


def test_a_plain_allocation_on_a_switch_that_is_held_is_refused(api: Api) -> None:
    register(api)
    claimed(api, ONE_NIC_ALONE)
    error = error_of(put(api, {"gpu0": {"PGPU": 1}}), 409)
    assert error["code"] == "placement.held_exclusively"
    assert f"{uuid_of('host-pcie0.0')} (host-pcie0.0) is held exclusively by another consumer." in error["detail"]
    assert put(api, {"nic0-vf": {"SRIOV_NET_VF": 1}}).status_code == 409
    assert put(api, {"gpu2": {"PGPU": 1}}).status_code == 204
    assert put(api, {"numa0": {"VCPU": 1}}).status_code == 204
    many = {
        new_uuid(): {"allocations": {uuid_of(f"host-{name}"): {"resources": {"PGPU": 1}}}, **OWNER}
        for name in ("gpu1", "gpu3")
    }
    assert api.post("/allocations", many).status_code == 409
    assert served_by(api, "resources=PGPU:1") == [f"host-gpu{number}" for number in range(3, 8)]


def test_who_holds_a_switch_may_take_more_of_it_and_hand_it_on(api: Api) -> None:
    """As nova does in a migration: the instance's allocations are transferred to another consumer in one request."""
    register(api)
    found = claimed(api, ONE_NIC_ALONE)
    mine = {uuid: {"resources": one["resources"]} for uuid, one in found["allocations"].items()}
    more = {**mine, uuid_of("host-gpu0"): {"resources": {"PGPU": 1}}}
    uuid, other = found["consumer"]["uuid"], new_uuid()
    body = {"allocations": more, **OWNER, "consumer_generation": found["consumer"]["consumer_generation"]}
    assert api.put(f"/allocations/{uuid}", body).status_code == 204
    generation = ask(api, "GET", f"/allocations/{uuid}")["consumer_generation"]
    moved = {
        other: {"allocations": more, **OWNER},
        uuid: {
            "allocations": {uuid_of("host-gpu1"): {"resources": {"PGPU": 1}}},
            **OWNER,
            "consumer_generation": generation,
        },
    }
    assert api.post("/allocations", moved).status_code == 409
    moved[uuid]["allocations"] = {uuid_of("host-gpu2"): {"resources": {"PGPU": 1}}}
    assert api.post("/allocations", moved).status_code == 204
    ask(api, "DELETE", f"/allocations/{other}")
    assert put(api, {"gpu0": {"PGPU": 1}}).status_code == 204


def test_an_explanation_names_what_is_held(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 2, "nics": 1}]])
    claimed(api, ONE_NIC_ALONE)
    explained = ask(api, "GET", "/planner/v1/explain?resources=PGPU:1")
    assert explained["cause"]["condition"] == "held_exclusively"
    assert explained["near_misses"][0]["condition"] == "held_exclusively"
    assert explained["near_misses"][0]["providers"][0]["name"] == "host-gpu0"
    assert "places that nobody else holds exclusively" in explained["near_misses"][0]["message"]


def test_a_device_that_is_held_is_remembered(api: Api) -> None:
    """Koordinator's DeviceLevel: on the documented model the next claim takes another device."""
    register(api)
    hint = {"rdma": {"exclusivePolicy": "DeviceLevel"}}
    body = {"requests": {"koordinator.sh/rdma": 1}, "device_allocate_hint": hint}
    assert only(api, body) == {"_rdma": "nic0"}
    claimed(api, body)
    assert only(api, body) == {"_rdma": "nic1"}
    assert only(api, {"requests": {"koordinator.sh/rdma": 1}}) == {"_rdma": "nic1"}
    assert served_by(api, "resources=SRIOV_NET_VF:1&limit=1") == ["host-nic1-vf"]
    assert put(api, {"nic0": {"CUSTOM_RDMA_SHARE": 1}}).status_code == 409


def test_a_shared_lock_without_room_closes_a_place_but_not_for_who_is_there(api: Api) -> None:
    register(api)
    path = f"/resource_providers/{uuid_of('host-pcie0.0')}/inventories/CUSTOM_PCIE_LOCK"
    ask(api, "PUT", path, body={"resource_provider_generation": 2, "total": 2})
    first = new_uuid()
    assert put(api, {"pcie0.0": {"CUSTOM_PCIE_LOCK": 1}}, first).status_code == 204
    assert put(api, {"pcie0.0": {"CUSTOM_PCIE_LOCK": 1}}).status_code == 204
    there = {"pcie0.0": {"CUSTOM_PCIE_LOCK": 1}, "gpu0": {"PGPU": 1}}
    assert put(api, there, first, consumer_generation=1).status_code == 204
    assert put(api, {"gpu1": {"PGPU": 1}}).status_code == 409


def without_option(app: Flask) -> Api:
    """Return a client of a server on the same database that treats plain requests as the reference does."""
    settings = app.extensions["placement"].settings
    return Api(create_app(replace(settings, planner_api=PlannerApiSettings(exclusive_for_all=False))))


def test_a_guest_that_was_there_first_stays_moves_and_is_handed_on_but_takes_no_more(app: Flask, api: Api) -> None:
    """Nova rewrites an instance's allocations unchanged; a migration transfers them to another consumer for a while."""
    register(api)
    claimed(api, ONE_NIC_ALONE)
    guest, migration = new_uuid(), new_uuid()
    assert put(without_option(app), {"gpu0": {"PGPU": 1}}, guest).status_code == 204
    assert put(api, {"gpu0": {"PGPU": 1}}, guest, consumer_generation=1).status_code == 204
    assert put(api, {"gpu1": {"PGPU": 1}}, guest, consumer_generation=2).status_code == 204
    assert put(api, {"gpu0": {"PGPU": 1}, "gpu1": {"PGPU": 1}}, guest, consumer_generation=3).status_code == 409
    there = {"allocations": {uuid_of("host-gpu1"): {"resources": {"PGPU": 1}}}, **OWNER}
    away = {"allocations": {uuid_of("host-gpu2"): {"resources": {"PGPU": 1}}}, **OWNER, "consumer_generation": 3}
    both = {migration: {**there, "allocations": {uuid_of("host-gpu0"): {"resources": {"PGPU": 1}}}}, guest: there}
    both[guest] = {**there, "consumer_generation": 3}
    assert api.post("/allocations", both).status_code == 409
    assert api.post("/allocations", {migration: there, guest: away}).status_code == 204
    assert put(api, {"gpu0": {"PGPU": 1}}).status_code == 409


def test_without_the_option_plain_requests_know_of_no_locks(app: Flask, api: Api) -> None:
    register(api)
    claimed(api, ONE_NIC_ALONE)
    plain = without_option(app)
    assert served_by(plain, "resources=PGPU:1&limit=1") == ["host-gpu0"]
    assert put(plain, {"gpu0": {"PGPU": 1}}).status_code == 204


def test_where_nothing_has_a_lock_it_costs_no_statement(app: Flask, api: Api) -> None:
    uuid = make_provider(api, VCPU=8)
    body = {"allocations": {uuid: {"resources": {"VCPU": 1}}}, **OWNER}

    def number_of_statements(client: Api) -> tuple[int, int]:
        put_once = partial(client.put, f"/allocations/{new_uuid()}", body)
        assert client.put(f"/allocations/{new_uuid()}", body).status_code == 204
        ask(client, "GET", "/allocation_candidates?resources=VCPU:2")
        with statements(client.app) as sent:
            assert ask(client, "GET", "/allocation_candidates?resources=VCPU:1")["allocation_requests"]
        with statements(client.app) as written:
            assert put_once().status_code == 204
        return len(sent), len(written)

    assert number_of_statements(api) == number_of_statements(without_option(app))


def headroom(api: Api, query: str, **body: object) -> dict:
    """Return the headroom of a query."""
    found: dict = ask(api, "POST", "/planner/v1/headroom", body={"requests": {"it": query}, **body})["headroom"]["it"]
    return found


def test_headroom_leaves_out_what_is_held(app: Flask, api: Api) -> None:
    """One more host like it is empty, whatever is held on this one."""
    register(api)
    found = claimed(api, ONE_NIC_ALONE)
    free = ask(api, "GET", "/planner/v1/headroom?resources=PGPU:1")
    assert (free["fits"], free["at_most"]) == (6, 6)
    assert [one["fits"] for one in headroom(api, "resources=PGPU:1")["one_more"]] == [8]
    more = {"with": [{"like": uuid_of("host"), "count": 2}]}
    assert headroom(api, "resources=PGPU:1", **more)["fits"] == 6 + 2 * 8
    assert headroom(api, "resources=PGPU:1", released=[found["consumer"]["uuid"]])["fits"] == 8
    groups = "&".join(f"resources_{number}=PGPU:1" for number in range(7))
    assert headroom(api, f"{groups}&group_policy=isolate")["stranded"] == {"PGPU": 6}
    plain = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
    assert headroom(api, plain)["fits"] == 6
    assert headroom(without_option(app), "resources=PGPU:1")["fits"] == 8
