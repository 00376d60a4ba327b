"""Pods and what has their templates: pods.yaml says what each requests, what is not applied, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from placement.domain.device_types import DeviceSettings
from placement.domain.pods import PastedPod, pasted_pod
from placement.errors import InvalidAt
from tests.api.conftest import Api
from tests.claims import detail_of
from tests.planner_hosts import CANDIDATES, EIGHT_SWITCHES, consumer, register

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


def test_what_is_for_pods_is_refused_without_one(api: Api) -> None:
    answer = api.post(CANDIDATES, {"groups": {"": {"resources": {"VCPU": 1}}}, "ignore_unknown": True})
    assert "ignore_unknown: The key needs a pod, and the request has none." in detail_of(answer)
