"""What a profile may contain: names and families, numbers and words, and the errors for everything else."""

import os_resource_classes
import pytest

from placement.allocators import InvalidEntry, best_match, resource_class
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, Sra

MOST = Preference("MostAllocated")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CUSTOM_GPU_A100", ("LeastAllocated", 5)),
        ("CUSTOM_GPU_V100", ("MostAllocated", 7)),
        ("CUSTOM_GPU_T4", ("MostAllocated", 2)),
        ("CUSTOM_NIC", ("LeastAllocated", 1)),
        ("CUSTOM_GPU_", ("MostAllocated", 2)),
    ],
    ids=lambda value: f"RS-23-{value}" if isinstance(value, str) else "",
)
def test_the_exact_name_comes_before_the_longest_family(name: str, expected: tuple[str, int]) -> None:
    resources = Fit(
        {
            "CUSTOM_GPU_*": Preference("MostAllocated", 2),
            "CUSTOM_*": Preference("LeastAllocated", 1),
            "CUSTOM_GPU_V*": Preference("MostAllocated", 7),
            "CUSTOM_GPU_A100": Preference("LeastAllocated", 5),
        }
    ).resources
    match = best_match(resources, name)
    assert match is not None
    assert (resources[match].type, resources[match].weight) == expected


def test_RS_23_a_class_outside_all_families_is_not_configured() -> None:  # noqa: N802
    assert best_match(["CUSTOM_GPU_*", "CUSTOM_*"], "VCPU") is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("nvidia.com/gpu/*", "CUSTOM_NVIDIA_COM_GPU_*"),
        ("nvidia.com/gpu*", "CUSTOM_NVIDIA_COM_GPU*"),
        ("nvidia.*", "CUSTOM_NVIDIA_*"),
        ("amd.com/gpu-mi100", "CUSTOM_AMD_COM_GPU_MI100"),
        ("VCPU", "VCPU"),
        ("CUSTOM_GPU_*", "CUSTOM_GPU_*"),
    ],
)
def test_the_name_of_a_vendor_means_a_custom_class(written: str, meant: str) -> None:
    assert resource_class(written) == meant


def test_vendors_families_cover_what_their_documentation_says() -> None:
    """The user story: ``nvidia.com/gpu/*`` matches gpu-v100 and gpu-a100, which it would not without translation."""
    families = [resource_class("nvidia.com/gpu/*"), resource_class("amd.com/gpu/*")]
    assert best_match(families, resource_class("nvidia.com/gpu-v100")) == families[0]
    assert best_match(families, resource_class("amd.com/gpu-mi100")) == families[1]


@pytest.mark.parametrize("name", ["nvidia.com/gpu-v100", "a.b", "xilinx.com/fpga--u30"])
def test_vendors_names_are_translated_as_openstack_does_it(name: str) -> None:
    assert resource_class(name) == os_resource_classes.normalize_name(name)


def test_two_names_of_one_class_are_refused() -> None:
    with pytest.raises(InvalidEntry, match="expected one entry for CUSTOM_NVIDIA_COM_GPU"):
        Fit({"CUSTOM_NVIDIA_COM_GPU": MOST, "nvidia.com/gpu": MOST})


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda: Preference("Least"), "type: expected MostAllocated or LeastAllocated, found 'Least'"),
        (lambda: Sra({"PGPU": 1}, mode="x"), "mode: expected unneeded or upstream, found 'x'"),
        (lambda: Proportional({"PGPU": {"VCPU": 1}}, exempt="x"), "exempt: expected all or own, found 'x'"),
        (lambda: Proportional({"PGPU": {"VCPU": 1}}, mode="x"), "mode: expected last or filter, found 'x'"),
        (lambda: Sra({}), "resources: expected a mapping of at least one resource class, found {}"),
        (lambda: Sra(["PGPU"]), "resources: expected a mapping of at least one resource class, found ['PGPU']"),
        (
            lambda: Proportional({"PGPU": {}}),
            "reserve.PGPU: expected a mapping of at least one resource class, found {}",
        ),
        (lambda: Fit({"VCPU": 1}), "resources.VCPU: expected a type and a weight, found 1"),
        (
            lambda: Proportional({"PGPU": {"MEM_*": 1}}),
            "reserve.PGPU.MEM_*: expected one other class, not a family, found 'MEM_*'",
        ),
        (
            lambda: Proportional({"CUSTOM_*": {"CUSTOM_A": 1}}),
            "reserve.CUSTOM_*.CUSTOM_A: expected one other class, not a family, found 'CUSTOM_A'",
        ),
    ],
)
def test_an_error_says_what_was_expected_where(policy, message: str) -> None:
    """Volcano treats an unknown type as LeastAllocated."""
    with pytest.raises(InvalidEntry) as refused:
        policy()
    assert str(refused.value) == message


def test_cpu_and_memory_are_spread_where_nothing_is_configured() -> None:
    least = Preference("LeastAllocated", 1)
    assert Fit() == Fit({"VCPU": least, "MEMORY_MB": least}, weight=10)


def test_the_maximum_is_that_of_all_policies() -> None:
    profile = Profile(
        fit=Fit(weight=0.1), sra=Sra({"PGPU": 1}, weight=2), proportional=Proportional({"PGPU": {"VCPU": 1}})
    )
    assert profile.maximum == 210
