"""From Koordinator's terms to the planner's: how many instances, how much of each, and under which conditions."""

from dataclasses import replace

import pytest

from placement.domain.device_types import DeviceSettings
from placement.domain.koordinator import in_planner_words
from placement.errors import InvalidAt

DEVICES = DeviceSettings()
RDMA = "CUSTOM_RDMA_SHARE"
AS_COUNT = {"allocateStrategy": "RequestsAsCount"}


def rdma(amount: int, **hint: object) -> dict:
    """Return the group for a request for NICs."""
    body = {"requests": {"koordinator.sh/rdma": amount}, **({"device_allocate_hint": {"rdma": hint}} if hint else {})}
    return in_planner_words(body, DEVICES)["groups"]["_rdma"]


@pytest.mark.parametrize(
    ("amount", "hint", "resources", "count"),
    [
        pytest.param(1, {}, {RDMA: 1}, 1, id="one-instance-of-the-amount"),
        pytest.param(400, {}, {RDMA: 100}, 4, id="whole-ones"),
        pytest.param(100, {"allocateStrategy": "ApplyForAll"}, {RDMA: 100}, "all", id="DV-14"),
        pytest.param(2, {**AS_COUNT, "vfSelector": {}}, {"SRIOV_NET_VF": 1}, 2, id="DV-15"),
        pytest.param(4, AS_COUNT, {RDMA: 1}, 4, id="DV-16"),
        pytest.param(4, {**AS_COUNT, "exclusivePolicy": "DeviceLevel"}, {RDMA: 100}, 4, id="DV-16-exclusive"),
        pytest.param(200, AS_COUNT, {RDMA: 100}, 2, id="DV-18"),
        pytest.param(100, AS_COUNT, {RDMA: 1}, 100, id="a-hundred-are-a-hundred-nics"),
    ],
)
def test_how_many_and_how_much_of_each(amount, hint, resources, count) -> None:
    group = rdma(amount, **hint)
    assert (group["resources"], group["count"]) == (resources, count)


@pytest.mark.parametrize(
    ("expression", "traits"),
    [
        ({"operator": "In", "values": ["a", "b-c"]}, ["in:CUSTOM_NIC_LABEL_TYPE_A,CUSTOM_NIC_LABEL_TYPE_B_C"]),
        ({"operator": "NotIn", "values": ["a", "b"]}, ["!CUSTOM_NIC_LABEL_TYPE_A", "!CUSTOM_NIC_LABEL_TYPE_B"]),
        ({"operator": "Exists"}, ["CUSTOM_NIC_LABEL_TYPE"]),
        ({"operator": "DoesNotExist"}, ["!CUSTOM_NIC_LABEL_TYPE"]),
    ],
)
def test_label_selectors_are_traits(expression, traits) -> None:
    selector = {"matchExpressions": [{"key": "type", **expression}]}
    assert rdma(1, selector=selector)["selector"] == traits
    assert rdma(1, vfSelector=selector)["vf_selector"] == traits


def test_dv_19_part_of_a_further_device_is_refused() -> None:
    with pytest.raises(InvalidAt, match="in multiples of 100, not 150"):
        rdma(150)


@pytest.mark.parametrize("expression", [{"operator": "In"}, {"operator": "Exists", "values": ["a"]}])
def test_expressions_have_the_values_that_they_need(expression) -> None:
    with pytest.raises(InvalidAt, match=r"rdma.selector.matchExpressions\[0\].values: "):
        rdma(1, selector={"matchExpressions": [{"key": "type", **expression}]})


WHOLE = {"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory-ratio": 100}
GPU = DeviceSettings().types["gpu"]
SHARES = DeviceSettings(types={"gpu": replace(GPU, resource_class="CUSTOM_GPU_SHARE", whole=100)})


@pytest.mark.parametrize(
    ("requests", "amount", "count"),
    [
        pytest.param({"nvidia.com/gpu": 2}, 100, 2, id="two GPUs"),
        pytest.param({"koordinator.sh/gpu": 100}, 100, 1, id="a GPU"),
        pytest.param({"koordinator.sh/gpu": 50}, 50, 1, id="half a GPU"),
        pytest.param({"koordinator.sh/gpu": 200}, 100, 2, id="two GPUs in percent"),
        pytest.param({"koordinator.sh/gpu-core": 30, "koordinator.sh/gpu-memory-ratio": 60}, 60, 1, id="the larger"),
        pytest.param({**WHOLE, "koordinator.sh/gpu.shared": 2}, 50, 2, id="half of each of two GPUs"),
    ],
)
def test_shares_of_gpus_are_those_of_koordinator(requests: dict[str, int], amount: int, count: int) -> None:
    group = in_planner_words({"requests": requests}, SHARES)["groups"]["_gpu"]
    assert (group["resources"], group["count"]) == ({"CUSTOM_GPU_SHARE": amount}, count)


@pytest.mark.parametrize(
    ("requests", "devices", "sentence"),
    [
        ({"koordinator.sh/gpu": 150}, SHARES, "in multiples of 100, not 150"),
        ({"koordinator.sh/gpu": 50}, DEVICES, "devices.types.gpu: class: CUSTOM_GPU_SHARE, whole: 100.$"),
        ({"koordinator.sh/gpu.shared": 1, "koordinator.sh/gpu": 150}, SHARES, "More than a whole device"),
        ({"koordinator.sh/gpu.shared": 1}, SHARES, "gpu.shared: The key needs gpu-core"),
        ({"nvidia.com/gpu": 1, "koordinator.sh/gpu": 100}, SHARES, "requested twice"),
    ],
)
def test_shares_that_koordinator_refuses_are_refused(requests, devices, sentence) -> None:
    with pytest.raises(InvalidAt, match=sentence):
        in_planner_words({"requests": requests}, devices)
