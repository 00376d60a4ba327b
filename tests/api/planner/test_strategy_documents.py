"""Volcano's document on resource-strategy-fit: strategies.yaml has its scores; its profiles, pasted into requests."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement.domain.device_types import DeviceSettings
from tests.api.conftest import Api
from tests.claims import ask, claimed, make_provider
from tests.planner_hosts import CANDIDATES, CLAIMS

pytestmark = pytest.mark.any_database

TABLE = yaml.safe_load(Path(__file__).with_name("strategies.yaml").read_text(encoding="utf-8"))
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


@pytest.mark.parametrize("row", TABLE, ids=[row["says"] for row in TABLE])
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


def test_a_node_that_does_not_meet_the_request_scores_nothing(api: Api) -> None:
    """As in the document's table of scarce resources: gpu-task-1 on node2."""
    row = next(row for row in TABLE if len(row["sra" if "sra" in row else "fit"]) == 1 and "sra" in row)
    node = make_provider(api, **in_classes(api, row["nodes"]["node2"]["has"]))
    request = {"allocations": {node: {"resources": in_classes(api, row["requests"])}}}
    body = {"allocation_requests": [request], "profile": row["profile"]}
    (score,) = ask(api, "POST", "/planner/v1/scores", body=body)["scores"]
    assert (score["has_room"], score["total"], score["raw"]["sra"]) == (False, 0, 0)


def test_arguments_of_the_scheduler_are_refused_with_the_keys_to_type(api: Api) -> None:
    body = {"groups": {"": {"resources": {"VCPU": 1}}}, "profile": AS_WRITTEN}
    answer = api.post(CANDIDATES, body)
    assert answer.status_code == 400
    detail = answer.json["errors"][0]["detail"]
    assert "expected one of the keys fit, sra, proportional, compactness" in detail
    assert '"profile": {"fit":{"weight":10,"resources":{"PGPU":{"type":"MostAllocated","weight":2}}}}' in detail
    assert detail.endswith("becomes a planner file by: placement planner import FILE.")


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
    answer = api.post(path, {**groups, **pasted})
    assert answer.status_code == 400
    detail = answer.json["errors"][0]["detail"]
    assert detail.endswith("becomes a planner file by: placement planner import FILE.")
    shown = json.loads(detail[detail.index('or "profile": {') + 14 : detail.index(". What is written")])
    for part, said in profile.items():
        assert shown[part] | said == shown[part]
    assert api.post(CANDIDATES, {**groups, "profile": shown}).status_code == 200


def test_the_profile_that_a_refusal_shows_is_accepted(api: Api) -> None:
    detail = api.post(CANDIDATES, {"sra": {}}).json["errors"][0]["detail"]
    shown = detail[detail.index('"profile": {') : detail.index(". What is written")]
    groups = {"": {"resources": {"VCPU": 1}}}
    assert api.post(CANDIDATES, {"groups": groups, **json.loads(f"{{{shown}}}")}).status_code == 200


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
