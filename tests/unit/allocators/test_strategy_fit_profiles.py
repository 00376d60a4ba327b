"""What a profile may contain: names and families, and the errors for everything else."""

import pytest
from os_resource_classes import normalize_name

from placement.allocators import InvalidEntry, best_match, resource_class
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, Sra


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CUSTOM_GPU_A100", ("LeastAllocated", 5)),
        ("CUSTOM_GPU_V100", ("MostAllocated", 7)),
        ("CUSTOM_GPU_T4", ("MostAllocated", 2)),
        ("CUSTOM_NIC", ("LeastAllocated", 1)),
        ("CUSTOM_GPU_", ("MostAllocated", 2)),
        ("VCPU", None),
    ],
)
def test_the_exact_name_comes_before_the_longest_family(name: str, expected: tuple[str, int] | None) -> None:
    """RS-23."""
    resources = Fit(
        {
            "CUSTOM_GPU_*": Preference("MostAllocated", 2),
            "CUSTOM_*": Preference("LeastAllocated", 1),
            "CUSTOM_GPU_V*": Preference("MostAllocated", 7),
            "CUSTOM_GPU_A100": Preference("LeastAllocated", 5),
        }
    ).resources
    match = best_match(resources, name)
    assert (match and (resources[match].type, resources[match].weight)) == expected


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *[(name, normalize_name(name)) for name in ("nvidia.com/gpu-v100", "a.b", "xilinx.com/fpga--u30")],
        ("nvidia.com/gpu/*", "CUSTOM_NVIDIA_COM_GPU_*"),
        ("nvidia.com/gpu*", "CUSTOM_NVIDIA_COM_GPU*"),
        ("nvidia.*", "CUSTOM_NVIDIA_*"),
        ("VCPU", "VCPU"),
        ("CUSTOM_GPU_*", "CUSTOM_GPU_*"),
    ],
)
def test_the_name_of_a_vendor_means_a_custom_class_as_openstack_translates_it(written: str, meant: str) -> None:
    assert resource_class(written) == meant


def test_vendors_families_cover_what_their_documentation_says() -> None:
    """The user story: ``nvidia.com/gpu/*`` matches gpu-v100 and gpu-a100, which it would not without translation."""
    families = [resource_class("nvidia.com/gpu/*"), resource_class("amd.com/gpu/*")]
    assert best_match(families, resource_class("nvidia.com/gpu-v100")) == families[0]
    assert best_match(families, resource_class("amd.com/gpu-mi100")) == families[1]


REFUSED = [
    (lambda: Preference("Least"), "type: expected MostAllocated or LeastAllocated, found 'Least'"),
    (lambda: Sra({"PGPU": 1}, mode="x"), "mode: expected unneeded or upstream, found 'x'"),
    (lambda: Proportional({"PGPU": {"VCPU": 1}}, exempt="x"), "exempt: expected all or own, found 'x'"),
    (lambda: Proportional({"PGPU": {"VCPU": 1}}, mode="x"), "mode: expected last or filter, found 'x'"),
    (lambda: Sra(["PGPU"]), "resources: expected a mapping of at least one resource class, found ['PGPU']"),
    (lambda: Fit({"VCPU": 1}), "resources.VCPU: expected a type and a weight, found 1"),
    (lambda: Proportional({"PGPU": {}}), "reserve.PGPU: expected a mapping of at least one resource class, found {}"),
    (lambda: Proportional({"PGPU": {"A*": 1}}), "reserve.PGPU.A*: expected one other class, not a family, found 'A*'"),
]


@pytest.mark.parametrize(("policy", "message"), REFUSED)
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
