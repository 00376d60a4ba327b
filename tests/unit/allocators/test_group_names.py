"""Hierarchical names: partitioning, omitted upper groups."""

import pytest

from placement.allocators.group import location_tree, partition, requirement_tree, split_name
from placement.allocators.group.tree import Capacity, Phase, Requirement, translated

TWO_LEVELS = [
    f"Gpugrp1/{upper}/Gpugrp0/{lower}/gpu/dev{device}/cards"
    for upper in range(2)
    for lower in range(2 * upper, 2 * upper + 2)
    for device in range(2 * lower, 2 * lower + 2)
]
"""The node from part IV of the paper: 8 GPUs in 4 pairs in 2 halves."""


@pytest.mark.parametrize(
    ("name", "path", "base"),
    [
        ("cpu", (), "cpu"),
        ("vendor/cpu", (), "vendor/cpu"),
        ("gpu/0/cards", (("gpu", "0"),), "cards"),
        ("gpu/0/vendor/cards", (("gpu", "0"),), "vendor/cards"),
        ("grp/A/gpu/0/cards", (("grp", "A"), ("gpu", "0")), "cards"),
        # A prefix shared by all names is one more group, with one location.
        ("alpha.kubernetes.io/group-resource/cpu", (("alpha.kubernetes.io", "group-resource"),), "cpu"),
    ],
)
def test_a_name_is_a_base_resource_unless_two_separators_follow_a_group(name, path, base):
    assert split_name(name) == (path, base)


@pytest.mark.parametrize("name", ["", "gpu//cards", "/gpu/0/cards", "gpu/0/cards/", "g/0/" * 33 + "cards"])
def test_names_with_empty_parts_or_too_many_groups_are_refused(name):
    with pytest.raises(ValueError, match="resource name"):
        split_name(name)


def test_each_group_name_and_index_makes_a_subgroup():
    """The example from part II-A of the paper."""
    group = partition({"cpu": 2, "gpu/0/cards": 1, "gpu/0/memory": 1, "gpu/1/cards": 1, "gpu/1/memory": 2})
    assert group.base == {"cpu": 2}
    assert {step: inner.base for step, inner in group.inside.items()} == {
        ("gpu", "0"): {"cards": 1, "memory": 1},
        ("gpu", "1"): {"cards": 1, "memory": 2},
    }


def test_use_belongs_to_the_resource_of_the_same_name():
    root = location_tree({"cpu": 4, "gpu/dev0/cards": 2}, {"gpu/dev0/cards": 1})
    assert root.capacities == {"cpu": Capacity(4)}
    assert root.children[0].capacities == {"cards": Capacity(2, used=1)}


def test_use_of_what_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="gpu/dev1/cards"):
        location_tree({"gpu/dev0/cards": 2}, {"gpu/dev1/cards": 1})


def test_a_record_pins_its_groups_also_where_the_request_left_some_out():
    requirement = requirement_tree({"gpu/0/cards": 1}, Phase.RUNNING, {"gpu/0/cards": "grp/7/gpu/dev3/cards"})
    assert requirement.parts[0].only == {(("grp", "7"), ("gpu", "dev3"))}


@pytest.mark.parametrize(
    "recorded",
    [
        {"grp/A/gpu/0/cards": "gpu/dev3/cards"},
        {"grp/A/gpu/0/cards": "grp/1/nic/2/cards"},
        {"grp/A/gpu/0/cards": "grp/1/gpu/2/cards", "grp/A/gpu/1/cards": "grp/2/gpu/2/cards"},
    ],
    ids=["group missing", "other group", "two places"],
)
def test_a_record_that_contradicts_the_request_is_an_error(recorded):
    requested = {"grp/A/gpu/0/cards": 1, "grp/A/gpu/1/cards": 1}
    with pytest.raises(ValueError, match=r"recorded|records"):
        requirement_tree(requested, Phase.RUNNING, recorded)


def filled_in(requested: dict[str, int]) -> list[str]:
    """Return the groups of a request on the node of part IV, outermost first, with those that it omits."""

    def written(requirement: Requirement, around: str) -> list[str]:
        own = f"{around}{requirement.level}/{requirement.label or '?'}"
        return [own, *[name for part in requirement.parts for name in written(part, f"{own}/")]]

    root = location_tree(dict.fromkeys(TWO_LEVELS, 1), {})
    outermost = translated(requirement_tree(requested, Phase.RUNNING, {}), root)
    return [name for part in outermost.parts for name in written(part, "")]


@pytest.mark.parametrize(
    ("requested", "innermost"),
    [
        (["Gpugrp0/RA/gpu/0", "Gpugrp0/RA/gpu/1"], ["Gpugrp1/?/Gpugrp0/RA/gpu/0", "Gpugrp1/?/Gpugrp0/RA/gpu/1"]),
        (["gpu/0"], ["Gpugrp1/?/Gpugrp0/?/gpu/0"]),
        (["Gpugrp1/X/gpu/0"], ["Gpugrp1/X/Gpugrp0/?/gpu/0"]),
        (["Gpugrp1/X/Gpugrp0/B/gpu/0"], ["Gpugrp1/X/Gpugrp0/B/gpu/0"]),
        (["fpga/0"], ["fpga/0"]),
    ],
    ids=["GA-09: above", "GA-10: all", "in the middle", "nothing", "no location has it"],
)
def test_outer_groups_that_a_request_omits_are_filled_in(requested, innermost):
    names = filled_in({f"{name}/cards": 1 for name in requested})
    assert [name for name in names if name.rpartition("/")[0].endswith(("gpu", "fpga"))] == innermost


def test_each_group_gets_outer_groups_of_its_own():
    """GA-10 and GA-11."""
    assert filled_in({"gpu/0/cards": 1, "gpu/1/cards": 1}).count("Gpugrp1/?") == 2
    names = filled_in({"Gpugrp1/0/Gpugrp0/B/gpu/0/cards": 1, "Gpugrp0/A/gpu/0/cards": 1})
    assert [name for name in names if name.count("/") == 1] == ["Gpugrp1/0", "Gpugrp1/?"]
