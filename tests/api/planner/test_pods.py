"""One name, one class: profiles, groups and pods understand the names of devices; pods.yaml says what pods mean."""

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask

from placement.domain.device_types import DeviceSettings
from placement.errors import InvalidAt
from placement.formats.pods import PastedPod, pasted_pod
from placement.settings.planner.sections import load_planner
from tests.api.conftest import Api, with_settings
from tests.claims import ask, make_provider, new_uuid
from tests.planner_hosts import CANDIDATES, EIGHT_SWITCHES, consumer, register
from tests.stored_clouds import StoredProvider, store_providers

pytestmark = pytest.mark.any_database

PROFILE = "profiles: {default: {fit: {resources: {nvidia.com/gpu: {type: MostAllocated}}}}}\n"


def in_a_pod(**resources: object) -> dict[str, Any]:
    return {"pod": {"spec": {"containers": [{"resources": {"limits": resources}}]}}}


def in_a_group(**resources: object) -> dict[str, Any]:
    return {"groups": {"": {"resources": resources}}}


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        pytest.param(in_a_group(cpu=2, memory="8Gi"), {"VCPU": 2, "MEMORY_MB": 8192}, id="in a group"),
        pytest.param({"requests": {"cpu": 2, "memory": 2**30}}, {"VCPU": 2, "MEMORY_MB": 1024}, id="of Koordinator"),
        pytest.param(in_a_pod(cpu=2, memory=2**30), {"VCPU": 2, "MEMORY_MB": 1024}, id="in a pod"),
        pytest.param(in_a_group(**{"nvidia.com/gpu": 1}), {"PGPU": 1}, id="a device in a group"),
        pytest.param(in_a_pod(**{"nvidia.com/gpu": 1}), {"PGPU": 1}, id="a device in a pod"),
    ],
)
def test_a_request_takes_the_class_that_its_names_stand_for(api: Api, asked: dict[str, Any], taken: object) -> None:
    host = make_provider(api, VCPU=8, MEMORY_MB=16384, PGPU=4)
    (found,) = ask(api, "POST", CANDIDATES, body=asked)["allocation_requests"]
    assert found["allocations"] == {host: {"resources": taken}}


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "PGPU", "gpu"])
def test_a_profile_scores_the_devices_of_pods(api: Api, name: str) -> None:
    make_provider(api, PGPU=8)
    profile = {"fit": {"resources": {name: {"type": "MostAllocated"}}}}
    body = {**in_a_pod(**{"nvidia.com/gpu": 1}), "profile": profile}
    assert ask(api, "POST", CANDIDATES, body=body)["scores"][0]["fit"] == 12.5


def test_a_name_in_the_file_that_means_another_class_than_before_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "planner.yaml"
    file.write_text(PROFILE)
    with caplog.at_level(logging.WARNING):
        profile = load_planner(file).profiles["default"]
    assert profile.strategy.fit is not None
    assert set(profile.strategy.fit.resources) == {"PGPU"}
    other = "write CUSTOM_NVIDIA_COM_GPU if inventories have that."
    assert caplog.messages == [f"{file}, line 1: nvidia.com/gpu is PGPU, as under devices; {other}"]


def test_devices_say_what_a_name_means_in_a_profile(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "planner.yaml"
    types = "{gpu: {class: CUSTOM_NVIDIA_COM_GPU, resources: [nvidia.com/gpu]}}"
    file.write_text(f"{PROFILE}devices: {{types: {types}}}\n")
    profile = load_planner(file).profiles["default"]
    assert profile.strategy.fit is not None
    assert set(profile.strategy.fit.resources) == {"CUSTOM_NVIDIA_COM_GPU"}
    assert caplog.messages == []


pytestmark = pytest.mark.any_database

DEVICES = DeviceSettings(labels={"gpu.product": "CUSTOM_GPU_"})
PODS = yaml.safe_load(Path(__file__).with_name("pods.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", PODS, ids=[row["says"] for row in PODS])
def test_a_pod_means_what_it_means_in_kubernetes(row: dict[str, Any]) -> None:
    options = {"task": row.get("task"), "ignores_unknown": row.get("ignore_unknown", False)}
    if "refused" in row:
        with pytest.raises(InvalidAt) as refused:
            pasted_pod(row["manifest"], DEVICES, **options)
        assert refused.value.message == row["refused"]
        return
    words = {"requests": row["requests"], "root_required": row.get("root_required", [])}
    assert pasted_pod(row["manifest"], DEVICES, **options) == PastedPod(words, tuple(row.get("ignored", ())))


def test_a_pod_goes_to_a_host_with_any_of_the_values_of_a_label(app: Flask) -> None:
    api = with_settings(app, planner_yaml="devices: {labels: {gpu.product: CUSTOM_GPU_}}")
    traits = ["CUSTOM_GPU_A100", "CUSTOM_GPU_H100", "CUSTOM_GPU_OLD"]
    hosts = [StoredProvider(new_uuid(), trait, None, {"VCPU": {"total": 8}}, [trait]) for trait in traits]
    for trait in traits:
        ask(api, "PUT", f"/traits/{trait}")
    store_providers(api.database, hosts)
    manifest = next(row["manifest"] for row in PODS if "H100" in str(row))
    answer = ask(api, "POST", CANDIDATES, body={"pod": manifest})
    served = {uuid for candidate in answer["allocation_requests"] for uuid in candidate["allocations"]}
    assert served == {host.uuid for host in hosts[:2]}
    refused = {"groups": {"": {"resources": {"VCPU": 1}}}, "root_required": ["in:HW_NUMA_ROOT,CUSTOM_GPU"]}
    ask(api, "PUT", "/traits/CUSTOM_GPU")
    explanation = ask(api, "POST", CANDIDATES, body={**refused, "explain": True})["explanation"]
    assert explanation["cause"]["value"] == "in:CUSTOM_GPU,HW_NUMA_ROOT"


def test_answers_name_what_is_not_applied(api: Api) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    pod = {"spec": {"tolerations": [{}], "nodeName": "n", "containers": [{"resources": {"limits": {"cpu": 1}}}]}}
    body, ignored = {"pod": pod, "ignore_unknown": True}, ["spec.nodeName", "spec.tolerations"]
    assert api.post(CANDIDATES, body).json["ignored"] == ignored
    assert api.post("/planner/v1/headroom", {"requests": {"a": body}}).json["headroom"]["a"]["ignored"] == ignored
    reclaim = {"claimant": {"project_id": "a"}, "request": body}
    assert api.post("/planner/v1/fair-share/reclaim", reclaim).json["ignored"] == ignored
    claim = {**body, "consumer": consumer()}
    answers = [api.post("/planner/v1/claims", claim) for _time in range(2)]
    assert [(answer.status_code, answer.json["ignored"]) for answer in answers] == [(201, ignored), (200, ignored)]
    members = {"members": [{"consumer": consumer(), "request": body}], "all_or_nothing": False}
    assert api.post("/planner/v1/claims", members).json["ignored"] == ignored
