"""What the planner refuses, and the sentence that says why, with the path of the fault: refusals.yaml."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.conftest import Api
from tests.claims import detail_of, make_provider, sentence_of
from tests.planner_hosts import CANDIDATES, CLAIMS

pytestmark = pytest.mark.any_database

REFUSALS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))


PLANNER_YAML = """
levels: {numa: HW_NUMA_ROOT, pcie: CUSTOM_HW_PCIE_SWITCH, gpu: CUSTOM_GPU}
fair_share: {classes: [VCPU, PGPU], keep_s: 0, tree: {root/eng: {projects: [ann]}}}
aggregates:
  zone: {a1: 3c9a1f0e-5b7d-4e21-9a63-0d4f8b1c2e01}
  rack: {a1: 3c9a1f0e-5b7d-4e21-9a63-0d4f8b1c2e01}
"""


@pytest.mark.parametrize("path", REFUSALS)
def test_a_bad_request_is_refused_with_the_path_of_the_fault(api: Api, path: str) -> None:
    for body, sentence in REFUSALS[path]:
        told = sentence_of(api.post(f"/planner/v1/{path}", body))
        assert sentence in told, body


def test_long_lists_of_rules_are_refused(api: Api) -> None:
    groups = {"_A": {"resources": {"PGPU": 1}}}
    rules = [{"groups": ["_A"], "level": f"CUSTOM_{number}"} for number in range(65)]
    answer = api.post(CANDIDATES, {"groups": groups, "within": rules})
    assert sentence_of(answer) == "within: A list of 65 items is too long, the limit is 64"


def test_scores_name_an_unknown_class_and_providers_in_several_trees(api: Api) -> None:
    first, second = make_provider(api, VCPU=1), make_provider(api, VCPU=1)
    known = {first: {"resources": {"VCPU": 1}}}
    for taken, sentence in (
        (
            {second: {"resources": {"CUSTOM_WAND": 1}}},
            f".{second}.resources.CUSTOM_WAND: There is no such resource class.",
        ),
        ({**known, second: {"resources": {"VCPU": 1}}}, ": The providers are in several trees"),
    ):
        body = {"allocation_requests": [{"allocations": known}, {"allocations": taken}]}
        assert f"allocation_requests[1].allocations{sentence}" in detail_of(api.post("/planner/v1/scores", body))


AS_WRITTEN = {"resourceStrategyFitWeight": 10, "resources": {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}}}
FIT = {"fit": {"weight": 10, "resources": {"PGPU": {"type": "MostAllocated", "weight": 2}}}}
SRA = {"sra": {"weight": 10, "mode": "upstream", "resources": {"PGPU": 1}}}
PLUGIN = {"name": "resource-strategy-fit", "arguments": AS_WRITTEN}
PASTED: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "arguments": (AS_WRITTEN, FIT),
    "scarce resources": ({"sra": {"enable": True, "resources": "nvidia.com/gpu", "weight": 10}}, SRA),
    "proportions": (
        {"proportional": {"enable": True, "resources": "nvidia.com/gpu"}},
        {"proportional": {"mode": "filter", "exempt": "all"}},
    ),
    "a plugin": ({**PLUGIN}, FIT),
    "a configuration": ({"actions": "enqueue, allocate", "tiers": [{"plugins": [PLUGIN]}]}, FIT),
    "anything else": ({"arguments": 5}, FIT),
}


@pytest.mark.parametrize("path", [CANDIDATES, CLAIMS])
@pytest.mark.parametrize(("pasted", "profile"), PASTED.values(), ids=PASTED.keys())
def test_what_is_pasted_beside_the_groups_is_refused_with_what_to_type(
    api: Api, path: str, pasted: dict[str, Any], profile: dict[str, dict[str, Any]]
) -> None:
    groups = {"groups": {"": {"resources": {"VCPU": 1}}}}
    detail = detail_of(api.post(path, {**groups, **pasted}))
    assert detail.endswith("becomes a planner file by: placement planner import FILE.")
    shown = json.loads(detail[detail.index('or "profile": {') + 14 : detail.index(". What is written")])
    for part, said in profile.items():
        assert shown[part] | said == shown[part]
    assert api.post(CANDIDATES, {**groups, "profile": shown}).status_code == 200
