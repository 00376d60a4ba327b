"""One name, one class: profiles, groups, pods and pending tasks understand the same names, those of ``devices``."""

import logging
from pathlib import Path
from typing import Any

import pytest

from placement.settings.planner.sections import load_planner
from tests.api.conftest import Api
from tests.claims import ask, detail_of, make_provider
from tests.planner_hosts import CANDIDATES

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


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (in_a_group(gpus=1), "groups..resources.gpus: This is neither a resource class nor a name under devices"),
        ({"resources": {"cpu": 2}}, '"groups": {"":{"resources":{"cpu":2}}}.'),
        (
            {"resources": {"requests": {"cpu": 2}}},
            '{"pod": {"spec":{"containers":[{"resources":{"requests":{"cpu":2}}}]}}}.',
        ),
        (
            {"kind": "Pod", "spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}},
            '{"pod": {"kind":"Pod","spec":{"containers":[{"resources":{"limits":{"cpu":1}}}]}}}.',
        ),
        (
            {**in_a_group(VCPU=1), "volcano.sh/hierarchy": "root/eng"},
            "planner file by: placement planner import FILE.",
        ),
    ],
)
def test_a_refusal_shows_what_to_write_instead(api: Api, asked: dict[str, Any], sentence: str) -> None:
    assert sentence in detail_of(api.post(CANDIDATES, asked))


@pytest.mark.parametrize(
    "asked",
    [
        in_a_group(memory="999999999999999999P"),
        in_a_group(VCPU=2**62, cpu=2**62),
        {"paths": {"memory": "999999999999999999P"}},
        {"paths": {"VCPU": 2**62, "cpu": 2**62}},
        {"requests": {"memory": 2**62}},
        in_a_pod(memory="9e99"),
    ],
)
def test_amounts_that_nobody_can_have_are_refused(api: Api, asked: dict[str, Any]) -> None:
    assert api.post(CANDIDATES, asked).status_code == 400
