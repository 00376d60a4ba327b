"""/planner/v1/trees: who is on a host, taking it out of service and back, and removing it with what is left on it."""

from typing import Any

import pytest
from flask import Flask

from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import ask, claimed, consumer_generation, entry, error_of, generation, held, new_uuid
from tests.clouds import Cloud, build, provider

TREES = "/planner/v1/trees"
DISABLED = "COMPUTE_STATUS_DISABLED"


def host(name: str, gpus: int = 2) -> Any:
    devices = [provider(f"{name}-gpu{number}", PGPU=1) for number in range(gpus)]
    return provider(name, *devices, VCPU={"total": 8, "reserved": 1}, MEMORY_MB=64)


@pytest.fixture
def cloud(api: Api) -> Cloud:
    """Two equal hosts and one without GPUs."""
    return build(api, host("host"), host("other"), host("small", gpus=0))


def tree(cloud: Cloud, name: str, *below: str) -> str:
    return "/".join((TREES, cloud.providers[name], *below))


def everything(api: Api) -> Any:
    return ask(api, "GET", "/planner/v1/inventory")


def free(api: Api) -> set[str]:
    """Return the names of the hosts that nova may choose for a CPU."""
    found = ask(api, "GET", f"/allocation_candidates?resources=VCPU:1&required=!{DISABLED}")
    names = {row["uuid"]: row["name"] for row in ask(api, "GET", "/resource_providers")["resource_providers"]}
    return {names[root] for root in found["provider_summaries"] if "-" not in names[root]}


@pytest.fixture
def vm(api: Api, cloud: Cloud) -> str:
    """A consumer with a CPU and both GPUs of a host."""
    gpus = {cloud.providers[f"host-gpu{number}"]: {"PGPU": 1} for number in range(2)}
    return claimed(api, {cloud.providers["host"]: {"VCPU": 2}, **gpus})


def test_trees_are_listed_by_name_with_what_they_have(api: Api, cloud: Cloud) -> None:
    found = ask(api, "GET", f"{TREES}?name=ho")
    assert [one["name"] for one in found["trees"]] == ["host"]
    assert found["trees"][0]["resources"]["VCPU"] == {"capacity": 7, "used": 0}
    assert (found["trees"][0]["providers"], found["complete"]) == (3, True)
    first = ask(api, "GET", f"{TREES}?limit=1")
    assert (len(first["trees"]), first["complete"]) == (1, False)
    ask(api, "POST", tree(cloud, "other", "drain"), body={})
    assert [one["name"] for one in ask(api, "GET", f"{TREES}?disabled=true")["trees"]] == ["other"]


def test_no_tree_has_a_name_beyond_all_bounds(api: Api, cloud: Cloud) -> None:
    assert ask(api, "GET", f"{TREES}?name={'a' * 60_000}")["trees"] == []


def test_a_tree_shows_who_holds_what_since_when(api: Api, cloud: Cloud, vm: str) -> None:
    found = ask(api, "GET", tree(cloud, "host-gpu0"))
    (consumer,) = found["consumers"]
    assert (found["name"], found["disabled"], found["complete"]) == ("host", False, True)
    assert consumer.pop("since") is not None
    assert consumer == {
        "consumer_uuid": vm,
        "project_id": "project",
        "user_id": "user",
        "consumer_type": "INSTANCE",
        "resources": {"PGPU": 2, "VCPU": 2},
    }


def test_a_dry_run_names_a_target_for_each_and_changes_nothing(api: Api, cloud: Cloud, vm: str) -> None:
    """Those that come first take their places from those that follow."""
    second = claimed(api, {cloud.providers["host"]: {"VCPU": 5, "MEMORY_MB": 60}})
    before = everything(api)
    found = ask(api, "POST", tree(cloud, "host", "drain"), body={"dry_run": True})
    targets = {one["consumer_uuid"]: one["target"] for one in found["consumers"]}
    assert [*targets] == [second, vm]  # the largest first
    assert targets[vm]["name"] == "other"
    assert {cloud.name_of(one) for one in targets[vm]["allocations"]} == {"other", "other-gpu0", "other-gpu1"}
    assert targets[second]["name"] in {"other", "small"}
    assert found["dry_run"]
    assert everything(api) == before


@pytest.mark.parametrize("by", ["trait", "reserve"])
def test_a_drained_tree_is_no_candidate_until_it_is_enabled(api: Api, cloud: Cloud, vm: str, by: str) -> None:
    before = everything(api)
    ask(api, "POST", tree(cloud, "host-gpu0", "drain"), body={"by": by})
    ask(api, "POST", tree(cloud, "host", "drain"), body={"by": by})  # again: nothing is forgotten
    assert free(api) == {"other", "small"}
    assert generation(api, cloud.providers["host"]) > before["providers"][0]["generation"]
    ask(api, "POST", tree(cloud, "host", "enable"))
    assert free(api) == {"host", "other", "small"}
    after = everything(api)
    for document in (before, after):
        for one in document["providers"]:
            del one["generation"]
    assert after == before


def test_a_word_that_is_none_of_an_enumeration_is_refused_with_its_words(api: Api, cloud: Cloud) -> None:
    refusal = error_of(api.post(tree(cloud, "host", "drain"), {"by": "magic"}), 400)
    assert refusal["detail"].endswith("by: 'magic' is not one of ['trait', 'reserve']")


def test_a_reserve_refuses_claims_but_lets_consumers_go(api: Api, cloud: Cloud, vm: str) -> None:
    ask(api, "POST", tree(cloud, "host", "drain"), body={"by": "reserve"})
    root = cloud.providers["host"]
    answer = api.put(f"/allocations/{new_uuid()}", entry({root: {"VCPU": 1}}))
    assert "exceed the capacity" in error_of(answer, 409)["detail"]
    # As nova moves an instance: its allocations become those of the migration.
    swap = {vm: entry({cloud.providers["other"]: {"VCPU": 2}}, 1), new_uuid(): entry({root: {"VCPU": 2}})}
    ask(api, "POST", "/allocations", body=swap)


def test_enabling_keeps_what_somebody_has_changed_since(api: Api, cloud: Cloud) -> None:
    ask(api, "POST", tree(cloud, "small", "drain"), body={"by": "reserve"})
    root = cloud.providers["small"]
    body = {"resource_provider_generation": generation(api, root), "total": 16, "reserved": 3}
    ask(api, "PUT", f"/resource_providers/{root}/inventories/VCPU", body=body)
    ask(api, "POST", tree(cloud, "small", "enable"))
    ask(api, "POST", tree(cloud, "small", "enable"))  # nothing is left to do
    stocks = ask(api, "GET", f"/resource_providers/{root}/inventories")["inventories"]
    assert (stocks["VCPU"]["reserved"], stocks["MEMORY_MB"]["reserved"]) == (3, 0)


def test_a_dead_host_goes_with_what_is_left_on_it(api: Api, cloud: Cloud, vm: str) -> None:
    """A consumer that has been rebuilt elsewhere keeps what it holds there."""
    gpu, there = cloud.providers["host-gpu0"], cloud.providers["small"]
    ask(api, "PUT", f"/allocations/{vm}", body=entry({gpu: {"PGPU": 1}}, 1))
    moved = claimed(api, {cloud.providers["host"]: {"VCPU": 1}, there: {"VCPU": 1}})
    ask(api, "POST", tree(cloud, "host", "drain"), body={"by": "reserve"})
    before = everything(api)
    for wrong in ("", f"?consumers={vm}", f"?consumers={vm},{moved},{new_uuid()}"):
        answer = error_of(api.delete(tree(cloud, "host") + wrong), 409)
        assert answer["code"] == "placement.resource_provider.inuse"
    assert moved in error_of(api.delete(f"{tree(cloud, 'host')}?consumers={vm}"), 409)["detail"]
    assert everything(api) == before
    assert api.delete(f"{tree(cloud, 'host')}?consumers={vm},{moved}").status_code == 204
    assert held(api, vm) == {}
    assert held(api, moved) == {there: {"VCPU": 1}}
    assert consumer_generation(api, moved) == 2
    assert not {"host", "host-gpu0"} & {one["name"] for one in everything(api)["providers"]}
    entries = ask(api, "GET", f"/planner/v1/journal?consumer={vm}&limit=1")["entries"]
    assert (entries[0]["action"], entries[0]["kind"]) in {("deleted", "allocation"), ("deleted", "consumer")}
    removed = ask(api, "GET", f"/planner/v1/journal?provider={cloud.providers['host']}")["entries"]
    assert {("provider", "deleted"), ("allocation", "deleted")} <= {(row["kind"], row["action"]) for row in removed}
    assert {row["route"] for row in removed if row["action"] == "deleted"} >= {f"DELETE {TREES}/<uuid>"}


def test_a_host_of_many_devices_takes_no_more_statements_than_a_small_one(app: Flask, api: Api) -> None:
    counts = []
    for gpus in (1, 30):
        name = f"host{gpus}"
        tree_of = "/".join((TREES, build(api, host(name, gpus=gpus)).providers[name]))
        with statements(app) as sent:
            ask(api, "POST", f"{tree_of}/drain", body={"by": "reserve"})
            ask(api, "POST", f"{tree_of}/enable")
            ask(api, "DELETE", tree_of)
        counts.append(len(sent))
    assert counts[1] <= counts[0]  # the first one looks up names


def test_only_a_root_can_be_removed(api: Api, cloud: Cloud) -> None:
    assert cloud.providers["host"] in error_of(api.delete(tree(cloud, "host-gpu0")), 400)["detail"]


def test_what_does_not_exist_is_not_found(api: Api) -> None:
    unknown = f"{TREES}/{new_uuid()}"
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/drain"), ("POST", "/enable")):
        answer = api.request(method, unknown + path, **({"json": {}} if path == "/drain" else {}))
        assert "No resource provider with uuid" in error_of(answer, 404)["detail"]


@pytest.mark.parametrize("body", [{"by": "force"}, {"dry_run": 1}, {"hosts": []}], ids=str)
def test_a_wrong_body_changes_nothing(api: Api, cloud: Cloud, body: dict[str, Any]) -> None:
    before = everything(api)
    error_of(api.post(tree(cloud, "host", "drain"), body), 400)
    assert everything(api) == before
