"""The best device of a tree under a profile that judges devices."""

from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FragmentationSettings
from placement.allocators.fragmentation.outlook import Outlook
from placement.candidates.fragmentation import DeviceJudge

GPU = "CUSTOM_GPU_MILLI"
ROOT, HALF, QUARTER = 1, 2, 3


def test_what_is_taken_beside_a_device_counts() -> None:
    """Once the last VCPUs are taken, everything left is useless, so using up the smaller device is best."""
    expected = {DeviceTask({"VCPU": 8}, 1, 500): 1.0, DeviceTask({"VCPU": 1}, 1, 250): 1.0}
    outlook = Outlook(expected, DeviceSupply({"": 4000}, 1000, {"VCPU": 16}, 4))
    judge = DeviceJudge(outlook, FragmentationSettings(devices=GPU, size=1000, beside=("VCPU",)), {}, {})
    left = {ROOT: {"VCPU": 4}, HALF: {GPU: 500}, QUARTER: {GPU: 250}}
    alone = judge.ranks(left, {GPU: 200}, [HALF, QUARTER], count=1, requested={GPU: 200})
    with_vcpus = judge.ranks(left, {GPU: 200}, [HALF, QUARTER], count=1, requested={GPU: 200, "VCPU": 4})
    assert alone[HALF] < alone[QUARTER]
    assert with_vcpus[QUARTER] < with_vcpus[HALF]
