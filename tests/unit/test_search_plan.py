"""Which traits a single provider must have, and which several must have together."""

import pytest

from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for

TRAITS = (frozenset({"STORAGE_DISK_SSD"}), frozenset({"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"}))


@pytest.mark.parametrize(
    ("suffix", "resources", "is_one"),
    [
        ("", {"VCPU": 1}, True),
        ("", {"VCPU": 1, "DISK_GB": 1}, False),
        ("_A", {"VCPU": 1, "DISK_GB": 1}, True),
        ("_A", {}, True),
    ],
)
def test_traits_are_wanted_of_one_provider_where_one_serves_the_whole_group(suffix, resources, is_one):
    group = RequestGroup(suffix=suffix, resources=resources, required=TRAITS)
    plan = plan_for(CandidateRequest(groups=(group,)))
    assert {demand.required for demand in plan.demands} == {TRAITS if is_one else ()}
    assert plan.trait_sets == (() if is_one else TRAITS)
