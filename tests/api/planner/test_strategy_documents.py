"""Profiles from Volcano's document on resource-strategy-fit, pasted into requests."""

import json

import pytest

from tests.api.conftest import Api
from tests.claims import ask, claimed, make_provider
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer

pytestmark = pytest.mark.any_database

SRA = {"sra": {"mode": "upstream", "weight": 2, "resources": {"nvidia.com/t4": 1, "nvidia.com/a10": 1}}}
AS_WRITTEN = {
    "resourceStrategyFitWeight": 10,
    "resources": {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}},
}
GPU = "PGPU"
T4, A10 = "CUSTOM_NVIDIA_COM_T4", "CUSTOM_NVIDIA_COM_A10"


def test_the_table_of_scarce_resources_comes_over_http(api: Api) -> None:
    """Each task on each node that can serve it. The document's numbers include the weight of 2, parts do not."""
    for name in (T4, A10):
        ask(api, "PUT", f"/resource_classes/{name}")
    plain = make_provider(api, VCPU=32, MEMORY_MB=65536)
    with_t4 = make_provider(api, VCPU=16, MEMORY_MB=32768, **{T4: 10})
    with_both = make_provider(api, VCPU=16, MEMORY_MB=32768, **{T4: 5, A10: 10})

    def scores(**more: int) -> dict[str, float]:
        resources = {"VCPU": 2, "MEMORY_MB": 4096, **more}
        body = {"groups": {"": {"resources": resources}}, "profile": SRA}
        found = ask(api, "POST", CANDIDATES, body=body)
        served = [next(iter(one["allocations"])) for one in found["allocation_requests"]]
        return dict(zip(served, [2 * one["sra"] for one in found["scores"]], strict=True))

    assert scores() == {plain: 200, with_t4: 100, with_both: 0}
    assert scores(**{T4: 2}) == {with_t4: 100, with_both: 0}
    assert scores(**{T4: 1, A10: 2}) == {with_both: 0}


def test_the_score_of_a_node_is_the_mean_of_its_resources_by_weight(api: Api) -> None:
    """The document's formulas: GPUs are packed with weight 2, CPUs spread with weight 1."""
    node = make_provider(api, VCPU=64, **{GPU: 8})
    claimed(api, {node: {"VCPU": 32, GPU: 4}})
    resources = {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}, "VCPU": {"type": "LeastAllocated"}}
    body = {"groups": {"": {"resources": {"VCPU": 8, GPU: 2}}}, "profile": {"fit": {"resources": resources}}}
    (score,) = ask(api, "POST", CANDIDATES, body=body)["scores"]
    gpu, cpu = (4 + 2) / 8, (64 - (32 + 8)) / 64
    assert score["fit"] == pytest.approx(100 * (2 * gpu + 1 * cpu) / (2 + 1))


def test_the_exact_name_counts_before_the_longest_family(api: Api) -> None:
    """The document's order of matching: only the V100 is packed, the rest of its family is spread."""
    v100, a100 = "CUSTOM_NVIDIA_COM_GPU_V100", "CUSTOM_NVIDIA_COM_GPU_A100"
    for name in (v100, a100):
        ask(api, "PUT", f"/resource_classes/{name}")
    make_provider(api, **{v100: 4, a100: 4})
    resources = {
        "nvidia.com/gpu-v100": {"type": "MostAllocated", "weight": 3},
        "nvidia.com/gpu-*": {"type": "LeastAllocated", "weight": 2},
        "nvidia.com/*": {"type": "MostAllocated", "weight": 2},
    }

    def score(name: str) -> float:
        body = {"groups": {"": {"resources": {name: 1}}}, "profile": {"fit": {"resources": resources}}}
        found: float = ask(api, "POST", CANDIDATES, body=body)["scores"][0]["fit"]
        return found

    assert (score(v100), score(a100)) == (25, 75)


def test_the_second_job_is_kept_off_what_belongs_to_the_gpus(api: Api) -> None:
    """The document's node of 74 CPUs, 128 GB and 8 GPUs at 1:8:8 has room for one job of 8 CPUs without GPUs."""
    make_provider(api, VCPU=74, MEMORY_MB=128 << 10, **{GPU: 8})
    profile = {"proportional": {"mode": "filter", "reserve": {"nvidia.com/gpu": {"VCPU": 8, "MEMORY_MB": 8 << 10}}}}
    job = {"groups": {"": {"resources": {"VCPU": 8, "MEMORY_MB": 8 << 10}}}, "profile": profile}
    ask(api, "POST", CLAIMS, body={**job, "consumer": consumer()})
    answer = api.post(CLAIMS, {**job, "consumer": consumer()})
    assert answer.status_code == 409
    assert "(proportional, mode: filter)" in answer.json["errors"][0]["detail"]


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
