"""What the documents of Volcano, Koordinator and the scheduler say, as written: the tables are beside this file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask

from placement.allocators.fair_share.queues import Queue, tree_of
from placement.app import create_app
from placement.domain.device_types import DeviceSettings
from placement.settings import PlannerSettings
from placement.settings.planner.values import FairShareSettings
from tests.api.conftest import Api
from tests.claims import ask, claimed, detail_of, make_provider, new_uuid
from tests.planner_hosts import CANDIDATES, CLAIMS, EIGHT_SWITCHES, consumer, names_of, only, register
from tests.stored_clouds import StoredProvider, store_providers

pytestmark = pytest.mark.any_database


def table(file: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(file).read_text(encoding="utf-8"))


GROUPS = table("groups.yaml")
TRAITS = {
    "numa": "HW_NUMA_ROOT",
    "gpugrp1": "CUSTOM_GPUGRP1",
    "gpugrp0": "CUSTOM_GPUGRP0",
    "gpu": "CUSTOM_GPU",
}


@pytest.fixture
def grouped(app: Flask) -> Api:
    """A server that knows the document's groups of GPUs."""
    settings = app.extensions["placement"].settings
    api = Api(create_app(replace(settings, planner=replace(PlannerSettings(), levels=TRAITS))))
    for name in ("CUSTOM_GPU_MEMORY_MB", "CUSTOM_SHARE"):
        ask(api, "PUT", f"/resource_classes/{name}")
    for trait in (*TRAITS.values(), *[f"CUSTOM_ENUMTYPE_{bit}" for bit in range(3)]):
        if trait.startswith("CUSTOM_"):
            ask(api, "PUT", f"/traits/{trait}")
    return api


def providers(tree: Mapping[str, Any], parent: str | None = None) -> Iterator[StoredProvider]:
    """Yield the providers of a host of the table, parents first."""
    for own_name, said in tree.items():
        has = said.get("has", {}).items()
        inventories = {name: of_class if isinstance(of_class, dict) else {"total": of_class} for name, of_class in has}
        own = [TRAITS[said["level"]]] if "level" in said else []
        uuid = new_uuid()
        yield StoredProvider(uuid, own_name, parent, inventories, [*own, *said.get("traits", ())])
        yield from providers(said.get("inside", {}), uuid)


def store(api: Api, host: str) -> None:
    """Store a host of the table."""
    store_providers(api.app.extensions["placement"].database, [*providers(GROUPS["hosts"][host])])


@pytest.mark.parametrize("row", GROUPS["rows"], ids=[row["says"] for row in GROUPS["rows"]])
def test_seed_000_as_written(grouped: Api, row: dict[str, Any]) -> None:
    store(grouped, row["host"])
    answer = ask(grouped, "POST", CANDIDATES, body={**row["request"], "limit": 1, "explain": True})
    if "refused" in row:
        assert answer["allocation_requests"] == []
        assert answer["explanation"]["cause"]["message"] == row["refused"]
        return
    names = names_of(grouped)
    (candidate,), (scores,) = answer["allocation_requests"], answer["scores"]
    mapped = {prefix: " ".join(names[uuid] for uuid in uuids) for prefix, uuids in candidate["mappings"].items()}
    assert mapped == row["mapped"]
    taken = {names[uuid]: amounts["resources"] for uuid, amounts in candidate["allocations"].items()}
    assert taken == row.get("taken", taken)
    for key in ("group", "s_l"):
        assert scores[key] == pytest.approx(row.get(key, scores[key]))


def test_a_claim_takes_what_its_containers_need_together(grouped: Api) -> None:
    """Equations 19 to 25."""
    store(grouped, "two NUMA nodes")
    asked = {"containers": [{"gpu/0/cards": 1}] * 2, "init_containers": [{"cpu": 3}, {"cpu": 2, "gpu/0/cards": 1}]}
    answer = ask(grouped, "POST", CLAIMS, body={**asked, "consumer": consumer()})
    taken = [amounts["resources"] for amounts in answer["allocations"].values()]
    assert sorted(taken, key=repr) == [{"PGPU": 1}, {"PGPU": 1}, {"VCPU": 3}]
    assert set(answer["mappings"]) >= {"gpu/0", "containers/1/gpu/0", "init_containers/1/gpu/0"}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"paths": {"cpu": "1GiB"}}, "VCPU is not counted in bytes; write a whole number instead of 1GiB."),
        ({"paths": {"gpu/0/enumType": 1}}, "There must be an amount of a resource."),
        ({"paths": {"cpu": 1, "enumType": 1}}, "An enumerated resource stands inside a group: gpu/0/enumType."),
        ({"paths": {"gpu/0/cards": 1, "gpu/0/enumX": 1}}, "paths.gpu/0/enumX: There is no trait CUSTOM_ENUMX_0."),
        ({"init_containers": [{"cpu": 1}]}, "name containers or paths, too."),
    ],
)
def test_what_is_refused_says_what_to_type(levels: Api, body: dict, sentence: str) -> None:
    assert sentence in detail_of(levels.post(CANDIDATES, body))


PATH = "/planner/v1/fair-share"
SHARES = table("shares.yaml")


def queue(written: str) -> Queue:
    """Return a queue from its annotations."""
    path, _, weights = written.partition(" ")
    weighed = tuple(int(weight) for weight in weights.strip("()").split("/")[1:]) if weights else ()
    ways = path.count("/")
    return Queue(path, (None, *(weighed or (1,) * ways)), (path.rpartition("/")[2],))


@pytest.mark.parametrize("row", SHARES, ids=[row["says"] for row in SHARES])
def test_seed_001_as_written(app: Flask, row: dict[str, Any]) -> None:
    queues = tree_of([queue(written) for written in row["queues"]])
    planner = PlannerSettings(fair_share=FairShareSettings(classes=("VCPU", "PGPU"), queues=queues, keep_s=0))
    api = Api(create_app(replace(app.extensions["placement"].settings, planner=planner)))
    cloud = make_provider(api, **row["cloud"])
    for project, amount in row.get("holds", {}).items():
        claimed(api, {cloud: {row["wants"][project]: amount}}, project_id=project)
    pending = [
        {"project_id": project, "resources": {resource_class: 1}, "count": 100}
        for project, resource_class in row["wants"].items()
    ]
    if "fill" in row:
        portions = ask(api, "POST", f"{PATH}/fill", body={"pending": pending})["portions"]
        assert {one["project_id"]: sum(one["given"].values()) for one in portions} == row["fill"]
    if "order" in row:
        turns = ask(api, "POST", f"{PATH}/order", body={"pending": pending})["order"]
        assert [turn["project_id"] for turn in turns] == row["order"]
    if "shares" in row:
        shown = {node["path"]: node["share"] for node in ask(api, "GET", PATH)["nodes"]}
        assert {path: shown[path] for path in row["shares"]} == row["shares"]


STRATEGIES = table("strategies.yaml")
AS_WRITTEN = {
    "resourceStrategyFitWeight": 10,
    "resources": {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}},
}


def in_classes(api: Api, amounts: dict[str, int | str]) -> dict[str, int]:
    """Return amounts by class, created where they are new."""
    for name in amounts:
        if name.startswith("CUSTOM_"):
            ask(api, "PUT", f"/resource_classes/{name}")
    return DeviceSettings().amounts_by_class(amounts, ("resources",))


@pytest.mark.parametrize("row", STRATEGIES, ids=[row["says"] for row in STRATEGIES])
def test_seed_002_as_written(api: Api, row: dict[str, Any]) -> None:
    names = {}
    for name, node in row["nodes"].items():
        uuid = make_provider(api, **in_classes(api, node["has"]))
        names[uuid] = name
        if "used" in node:
            claimed(api, {uuid: in_classes(api, node["used"])})
    body = {"groups": {"": {"resources": row["requests"]}}, "profile": row["profile"]}
    found = ask(api, "POST", CANDIDATES, body=body)
    served = [names[uuid] for candidate in found["allocation_requests"] for uuid in candidate["allocations"]]
    part = "sra" if "sra" in row else "fit"
    assert served == [*row[part]]
    assert [score["raw"][part] for score in found["scores"]] == pytest.approx([*row[part].values()])


FIT = {"fit": {"weight": 10, "resources": {"PGPU": {"type": "MostAllocated", "weight": 2}}}}
SHOWN_SRA = {"sra": {"weight": 10, "mode": "upstream", "resources": {"PGPU": 1}}}
PLUGIN = {"name": "resource-strategy-fit", "arguments": AS_WRITTEN}


@pytest.mark.parametrize("path", [CANDIDATES, CLAIMS])
@pytest.mark.parametrize(
    ("pasted", "profile"),
    [
        pytest.param(AS_WRITTEN, FIT, id="arguments"),
        pytest.param(
            {"sra": {"enable": True, "resources": "nvidia.com/gpu", "weight": 10}}, SHOWN_SRA, id="scarce resources"
        ),
        pytest.param(
            {"proportional": {"enable": True, "resources": "nvidia.com/gpu"}},
            {"proportional": {"mode": "filter", "exempt": "all"}},
            id="proportions",
        ),
        pytest.param({**PLUGIN}, FIT, id="a plugin"),
        pytest.param({"actions": "enqueue, allocate", "tiers": [{"plugins": [PLUGIN]}]}, FIT, id="a configuration"),
        pytest.param({"arguments": 5}, FIT, id="anything else"),
    ],
)
def test_what_is_pasted_beside_the_groups_is_refused_with_what_to_type(
    api: Api, path: str, pasted: dict[str, object], profile: dict[str, dict[str, object]]
) -> None:
    groups = {"groups": {"": {"resources": {"VCPU": 1}}}}
    detail = detail_of(api.post(path, {**groups, **pasted}))
    assert detail.endswith("becomes a planner file by: placement planner import FILE.")
    shown = json.loads(detail[detail.index('or "profile": {') + 14 : detail.index(". What is written")])
    for part, said in profile.items():
        assert shown[part] | said == shown[part]
    assert api.post(CANDIDATES, {**groups, "profile": shown}).status_code == 200


def test_resources_beside_the_groups_are_refused_with_what_to_type(api: Api) -> None:
    detail = api.post(CANDIDATES, {"resources": {"VCPU": 2}}).json["errors"][0]["detail"]
    assert detail.endswith('\n\nresources: A group requests resources: "groups": {"":{"resources":{"VCPU":2}}}.')


@pytest.mark.parametrize("where", ["beside the groups", "in a group"])
def test_a_scorer_is_refused_with_the_profile_that_names_one_for_each_resource(api: Api, where: str) -> None:
    scorer = {"scorer": {"PGPU": "MostAllocated"}}
    group = {"resources": {"VCPU": 1}}
    body = {"groups": {"": group}, **scorer} if where == "beside the groups" else {"groups": {"": {**group, **scorer}}}
    detail = api.post(CANDIDATES, body).json["errors"][0]["detail"]
    assert detail.endswith(
        '"profile": {"fit": {"resources": {"PGPU": {"type": "MostAllocated"}, "VCPU": {"type": "LeastAllocated"}}}}.'
    )


DEVICES = table("devices.yaml")
JOINT, HINT = "scheduling.koordinator.sh/device-joint-allocate", "scheduling.koordinator.sh/device-allocate-hint"
FOUR_AND_ONE = {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 1}


def pod(requests: dict[str, Any], **annotations: object) -> dict[str, Any]:
    """Return a pod as in the document, whose annotations are texts with JSON in them."""
    names = {"joint": JOINT, "hint": HINT}
    return {
        "kind": "Pod",
        "metadata": {
            "name": "test-pod",
            "namespace": "default",
            "annotations": {names[key]: json.dumps(value, indent=2) for key, value in annotations.items()},
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
    }


@pytest.mark.parametrize("row", [pytest.param(row, id=row["says"]) for row in DEVICES["pods"]])
def test_pods_of_the_document_get_the_devices_that_it_names(api: Api, row: dict[str, Any]) -> None:
    register(api, numa_nodes=DEVICES["machines"][row["machine"]])
    assert only(api, {"pod": row["pod"]}) == row["gives"]
    template = {"kind": "Job", "spec": {"template": {key: row["pod"][key] for key in ("metadata", "spec")}}}
    assert only(api, {"pod": template}) == row["gives"]


def test_containers_of_a_pod_add_up(api: Api) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    container = {"resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}}
    asked = {"spec": {"containers": [container, container], "initContainers": [{"resources": {"limits": {"cpu": 9}}}]}}
    found = api.post(CANDIDATES, {"pod": asked}).json["allocation_requests"][0]["allocations"]
    taken = [one["resources"] for one in found.values()]
    assert {"VCPU": 9} in taken
    assert {"MEMORY_MB": 2048} in taken
    assert sum("PGPU" in one for one in taken) == 2


@pytest.mark.parametrize(
    ("requests", "taken"),
    [
        ({"memory": "1073741824"}, {"MEMORY_MB": 1024}),
        ({"memory": 1073741825}, {"MEMORY_MB": 1025}),
        ({"ephemeral-storage": "20000000k"}, {"DISK_GB": 19}),
        ({"MEMORY_MB": 2048}, {"MEMORY_MB": 2048}),
        ({"cpu": "0.5"}, {"VCPU": 1}),
    ],
)
def test_amounts_of_a_pod_are_what_they_are_in_kubernetes(
    api: Api, requests: dict[str, Any], taken: dict[str, int]
) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    found = api.post(CANDIDATES, {"pod": pod(requests)}).json["allocation_requests"][0]["allocations"]
    assert [one["resources"] for one in found.values()] == [taken]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"containers": 5}, "pod.spec.containers: The value is not a list."),
        ({"containers": [None]}, "pod.spec.containers[0]: The value is not an object."),
        ({"containers": [{"resources": {"requests": {"cpu": -1}}}]}, "resources.cpu: -1 is not an amount"),
    ],
)
def test_parts_of_a_pod_have_the_form_they_have_in_kubernetes(api: Api, spec: dict[str, Any], sentence: str) -> None:
    assert sentence in detail_of(api.post(CANDIDATES, {"pod": {"spec": spec}}))


@pytest.mark.parametrize(("metadata", "place"), [(5, "metadata"), ({"annotations": 5}, "metadata.annotations")])
def test_metadata_of_a_pod_are_objects(api: Api, metadata: object, place: str) -> None:
    answer = api.post(CANDIDATES, {"pod": {**pod(FOUR_AND_ONE), "metadata": metadata}})
    assert f"pod.{place}: The value is not an object." in detail_of(answer)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({**pod(FOUR_AND_ONE), "metadata": {"annotations": {JOINT: "{"}}}, "The annotation is not JSON"),
        (pod({"cpu": "1Gi"}), "VCPU is not counted in bytes; write a whole number instead of 1Gi."),
        (pod({"example.com/tpu": 1}), "No device type and no class stands for it under devices"),
        (
            pod(FOUR_AND_ONE, joint={"deviceTypes": ["tpu"]}),
            "There is no device type 'tpu'; there are gpu, rdma, fpga.",
        ),
    ],
)
def test_what_is_refused_says_what_is_wrong(api: Api, asked: dict[str, Any], sentence: str) -> None:
    assert sentence in detail_of(api.post(CANDIDATES, {"pod": asked}))
