"""What the document on resource-strategy-fit (seed 002) writes, pasted as the profile of a request."""

import pytest

from tests.api.conftest import Api
from tests.claims import ask, make_provider
from tests.planner_hosts import CANDIDATES

pytestmark = pytest.mark.any_database

SRA = {"sra": {"mode": "upstream", "weight": 2, "resources": {"nvidia.com/t4": 1, "nvidia.com/a10": 1}}}
AS_WRITTEN = {
    "resourceStrategyFitWeight": 10,
    "resources": {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}},
}
T4, A10 = "CUSTOM_NVIDIA_COM_T4", "CUSTOM_NVIDIA_COM_A10"


def test_the_table_of_scarce_resources_comes_over_http(api: Api) -> None:
    """Each task on each node that can serve it. The document's numbers have the weight of 2 in them, parts have not."""
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


def test_arguments_of_the_scheduler_are_refused_with_the_keys_to_type(api: Api) -> None:
    body = {"groups": {"": {"resources": {"VCPU": 1}}}, "profile": AS_WRITTEN}
    answer = api.post(CANDIDATES, body)
    assert answer.status_code == 400
    assert "expected one of the keys fit, sra, proportional, compactness" in answer.json["errors"][0]["detail"]
