"""Entitlements over HTTP: what GET shows is what reclaim, order and both gates go by, down to the project."""

import pytest
from flask import Flask

from placement.settings.values import FairnessSettings
from tests.api.conftest import Api, with_settings
from tests.claims import claimed, detail_of, entry, make_provider, new_uuid
from tests.planner_hosts import CLAIMS, consumer

pytestmark = pytest.mark.any_database

PATH = "/planner/v1/fair-share"
LARGEST = 2**31 - 1


def serving(app: Flask, queues: str, resource_class: str = "PGPU", *, enforce: str = "") -> Api:
    """Return a client of a server with these queues, and with the plain gate if that is enforced."""
    fair_share = f"fair_share: {{classes: [{resource_class}], keep_s: 0, tree: {{{queues}}}}}"
    fairness = FairnessSettings(enforce, ("INSTANCE",)) if enforce else FairnessSettings()
    return with_settings(app, planner_yaml=fair_share, fairness=fairness)


def asked(api: Api, method: str, what: str = "", body: object = None) -> dict:
    answer = api.get(PATH) if method == "GET" else api.post(f"{PATH}/{what}", body)
    assert answer.status_code == 200, answer.text
    return answer.json


def shown(api: Api) -> dict[str, dict]:
    return {node["path"]: node for node in asked(api, "GET")["nodes"]}


def hold(api: Api, provider: str, project: str, *amounts: int, name: str = "PGPU") -> list[str]:
    return [claimed(api, {provider: {name: amount}}, project_id=project) for amount in amounts]


def pending(*projects: str, gpus: int = 1) -> list[dict[str, object]]:
    return [{"project_id": project, "resources": {"PGPU": gpus}, "count": 50} for project in projects]


@pytest.fixture
def unequal(app: Flask) -> tuple[Api, dict[str, list[str]]]:
    """Thirty GPUs: l0 and l1 of one queue hold 25 and 4, in one task, though each is entitled to 7.5; pc holds one."""
    api = serving(app, "root/c: {projects: [pc]}")
    provider = make_provider(api, PGPU=30)
    return api, {
        "l0": hold(api, provider, "l0", 5, 5, 5, 5, 5),
        "l1": hold(api, provider, "l1", 4),
        "pc": hold(api, provider, "pc", 1),
    }


@pytest.mark.parametrize("claim", ["amounts", "request"])
def test_who_has_too_much_gives_and_not_a_sibling_with_what_is_its_own(unequal, claim: str) -> None:
    """Counted down to the project, in amounts and on a host: a task of 4 would be enough, but it is all l1 has."""
    api, held = unequal
    nodes = shown(api)
    assert [nodes[f"root/default/{name}"]["gives"] for name in ("l0", "l1")] == [{"PGPU": 17}, {}]
    claimant: dict[str, object] = {"project_id": "pc"}
    body: dict[str, object] = {"claimant": claimant, "values": dict.fromkeys(held["l0"], 9)}
    if claim == "request":
        body["request"] = {"groups": {"": {"resources": {"PGPU": 4}}}}
    else:
        claimant["resources"] = {"PGPU": 4}
    answer = asked(api, "POST", "reclaim", body)
    assert [one["consumer_uuid"] in held["l0"] for one in answer["give_back"]] == [True]
    answer = asked(api, "POST", "reclaim", body | {"keep": held["l0"]})
    assert (answer["feasible"], answer["give_back"]) == (False, [])


def test_what_is_deserved_decides_in_every_answer(app: Flask) -> None:
    """Of twenty, b deserves 15 and holds 11: b is next, others give to it, and a passes neither gate."""
    queues = "root/a: {projects: [pa]}, root/b: {projects: [pb], deserved: {PGPU: 15}}"
    api = serving(app, queues, enforce="plain")
    provider = make_provider(api, PGPU=20)
    hold(api, provider, "pb", 11)
    hold(api, provider, "pa", *[1] * 5)
    taken = put(api, provider, "pa", 3)
    assert (taken.status_code, taken.json["errors"][0]["code"]) == (409, "placement.unfair_allocation")
    assert shown(api)["root/a"]["entitled"] == {"PGPU": 5}
    waiting = {"pending": pending("pa", "pb")}
    assert [turn["project_id"] for turn in asked(api, "POST", "order", waiting)["order"]] == ["pb", "pa"]
    assert asked(api, "POST", "fill", waiting)["order"] == ["pb"] * 4
    for project, status in (("pa", 409), ("pb", 201)):
        body = {"groups": {"": {"resources": {"PGPU": 1}}}, "consumer": consumer(project_id=project)}
        terms = {"enforce": True, "pending": pending("pa", "pb")}
        assert api.post(CLAIMS, {**body, "fair_share": terms}).status_code == status
    assert put(api, provider, "pb", 3).status_code == 204


def put(api: Api, provider: str, project: str, gpus: int, *, uuid: str | None = None, generation: int | None = None):
    body = entry({provider: {"PGPU": gpus}}, generation, project_id=project)
    return api.put(f"/allocations/{uuid or new_uuid()}", body)


@pytest.mark.parametrize("queues", ["", "root/a: {projects: [pa]}"], ids=["one queue", "two queues"])
def test_the_plain_gate_is_not_passed_by_changing_a_project(app: Flask, queues: str) -> None:
    """What pb took is judged as pa's once it is pa's, though the request as a whole takes nothing."""
    api = serving(app, queues, enforce="plain")
    provider, uuid = make_provider(api, PGPU=10), new_uuid()
    assert put(api, provider, "pa", 5).status_code == 204
    assert put(api, provider, "pb", 4, uuid=uuid).status_code == 204
    answer = put(api, provider, "pa", 4, uuid=uuid, generation=1)
    assert "would hold 9 PGPU and is entitled to 5" in detail_of(answer, 409)
    assert put(api, provider, "pb", 5, uuid=uuid, generation=1).status_code == 204


def test_classes_may_be_counted_in_bytes(app: Flask) -> None:
    queues = "root/a: {projects: [pa]}, root/b: {weight: 3, projects: [pb], deserved: {CUSTOM_BYTES: 20000000000}}"
    api = serving(app, queues, "CUSTOM_BYTES", enforce="plain")
    assert api.put("/resource_classes/CUSTOM_BYTES").status_code == 201
    size = {"total": LARGEST, "allocation_ratio": 16.0, "max_unit": LARGEST}
    providers = [make_provider(api, CUSTOM_BYTES=size) for _provider in range(8)]
    for provider in providers:
        hold(api, provider, "pa", LARGEST, name="CUSTOM_BYTES")
    hold(api, providers[0], "pb", LARGEST, name="CUSTOM_BYTES")
    nodes = shown(api)
    assert nodes["root/b"]["entitled"] == {"CUSTOM_BYTES": 2 * 10**10}
    assert nodes["root/a"]["entitled"] == {"CUSTOM_BYTES": LARGEST * 16 * 8 - 2 * 10**10}
    wish = {"project_id": "pb", "resources": {"CUSTOM_BYTES": LARGEST}, "count": 10_000}
    assert len(asked(api, "POST", "fill", {"pending": [wish]})["order"]) == 16 * 8 - 9
    claimant = {"project_id": "pb", "resources": {"CUSTOM_BYTES": LARGEST}}
    assert asked(api, "POST", "reclaim", {"claimant": claimant})["feasible"]
