"""The pods of Koordinator's proposal "Device Allocate Hint APIs": devices.yaml has those of the document."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.conftest import Api
from tests.planner_hosts import CANDIDATES, EIGHT_SWITCHES, only, register

pytestmark = pytest.mark.any_database

SAME_PCIE = {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}
TABLE = yaml.safe_load(Path(__file__).with_name("devices.yaml").read_text(encoding="utf-8"))
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


@pytest.mark.parametrize("row", [pytest.param(row, id=row["says"]) for row in TABLE["pods"]])
def test_pods_of_the_document_get_the_devices_that_it_names(api: Api, row: dict[str, Any]) -> None:
    register(api, numa_nodes=TABLE["machines"][row["machine"]])
    assert only(api, {"pod": row["pod"]}) == row["gives"]
    template = {"kind": "Job", "spec": {"template": {key: row["pod"][key] for key in ("metadata", "spec")}}}
    assert only(api, {"pod": template}) == row["gives"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            pod({"koordinator.sh/rdma": "1"}, hint={"rdma": {"vfSelector": None, "selector": None}}),
            {"_rdma": "nic0"},
            id="null is nothing",
        ),
        pytest.param(
            pod(FOUR_AND_ONE, joint={**SAME_PCIE, "requiredScope": "SameNUMANode"}),
            {"_gpu": "gpu0 gpu1 gpu2 gpu3", "_rdma": "nic0"},
            id="a NUMA node as the scope",
        ),
    ],
)
def test_pods_beside_those_of_the_document(api: Api, asked: dict[str, Any], expected: dict[str, str]) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    assert only(api, {"pod": asked}) == expected


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
        ({"memory": "2e9"}, {"MEMORY_MB": 1908}),
        ({"ephemeral-storage": "20000000k"}, {"DISK_GB": 19}),
        ({"MEMORY_MB": 2048}, {"MEMORY_MB": 2048}),
        ({"cpu": "0.5"}, {"VCPU": 1}),
        ({"cpu": 1.5}, {"VCPU": 2}),
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
        ({"containers": {"name": "main"}}, "pod.spec.containers: The value is not a list."),
        ({"containers": [{}], "initContainers": 5}, "pod.spec.initContainers: The value is not a list."),
        ({"containers": [None]}, "pod.spec.containers[0]: The value is not an object."),
        ({"containers": [{"resources": {"requests": 5}}]}, "resources.requests: The value is not an object."),
        ({"containers": [{"resources": {"limits": "4"}}]}, "resources.limits: The value is not an object."),
        ({"containers": [{"resources": {"requests": {"cpu": -1}}}]}, "resources.cpu: -1 is not an amount"),
        ({"containers": [{"resources": {"requests": {"cpu": 1e300}}}]}, "resources.cpu: 1e+300 is not an amount"),
    ],
)
def test_parts_of_a_pod_have_the_form_they_have_in_kubernetes(api: Api, spec: dict[str, Any], sentence: str) -> None:
    answer = api.post(CANDIDATES, {"pod": {"spec": spec}})
    assert answer.status_code == 400
    assert sentence in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize(("metadata", "place"), [(5, "metadata"), ({"annotations": 5}, "metadata.annotations")])
def test_metadata_of_a_pod_are_objects(api: Api, metadata: object, place: str) -> None:
    answer = api.post(CANDIDATES, {"pod": {**pod(FOUR_AND_ONE), "metadata": metadata}})
    assert answer.status_code == 400
    assert f"pod.{place}: The value is not an object." in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"spec": {}}, "A pod has one container or more."),
        ({**pod(FOUR_AND_ONE), "metadata": {"annotations": {JOINT: "{"}}}, "The annotation is not JSON"),
        (pod({"cpu": "1Gi"}), "VCPU is not counted in bytes; write a whole number instead of 1Gi."),
        (pod({"example.com/tpu": 1}), "No device type and no class stands for it under devices"),
        (
            pod(FOUR_AND_ONE, joint={"deviceTypes": ["tpu"]}),
            "There is no device type 'tpu'; there are gpu, rdma, fpga.",
        ),
        (pod(FOUR_AND_ONE, joint={"deviceTypes": ["gpu"], "requiredScope": "Rack"}), "['SamePCIe', 'SameNUMANode']"),
    ],
)
def test_what_is_refused_says_what_is_wrong(api: Api, asked: dict[str, Any], sentence: str) -> None:
    answer = api.post(CANDIDATES, {"pod": asked})
    assert answer.status_code == 400
    assert sentence in answer.json["errors"][0]["detail"]
