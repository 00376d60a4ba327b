"""Hierarchical names: partitioning, omitted upper groups, counts, automatic topology."""

import pytest

from placement.allocators.group.requests import arranged, shape_of, translated, with_count
from placement.allocators.group.scorers import Phase
from placement.allocators.group.tree import Capacity, location_tree, partition, requirement_tree, split_name
from placement.allocators.natural_order import natural_key

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


def test_names_are_case_sensitive():
    assert set(partition({"gpu/0/cards": 1, "GPU/0/cards": 1}).inside) == {("gpu", "0"), ("GPU", "0")}


def test_use_belongs_to_the_resource_of_the_same_name():
    root = location_tree({"cpu": 4, "gpu/dev0/cards": 2}, {"gpu/dev0/cards": 1})
    assert root.capacities == {"cpu": Capacity(4)}
    assert root.children[0].capacities == {"cards": Capacity(2, used=1)}


def test_use_of_what_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="gpu/dev1/cards"):
        location_tree({"gpu/dev0/cards": 2}, {"gpu/dev1/cards": 1})


def test_numbers_in_names_are_sorted_by_value():
    assert sorted(["d10", "d2", "d02", "d", "10", "9", "d2b"], key=natural_key) == [
        "9", "10", "d", "d02", "d2", "d2b", "d10",
    ]  # fmt: skip


def test_a_record_pins_its_groups_also_where_the_request_left_some_out():
    requirement = requirement_tree({"gpu/0/cards": 1}, Phase.RUNNING, {"gpu/0/cards": "grp/7/gpu/dev3/cards"})
    assert requirement.parts[0].pinned == (("grp", "7"), ("gpu", "dev3"))


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


def test_a_group_without_upper_groups_gets_new_ones():
    """GA-09; the example from part V of the paper."""
    names = translated({"Gpugrp0/RA/gpu/gpu0/cards": 1, "Gpugrp0/RA/gpu/gpu1/cards": 1}, TWO_LEVELS)
    assert list(names.values()) == [
        "Gpugrp1/0/Gpugrp0/RA/gpu/gpu0/cards",
        "Gpugrp1/0/Gpugrp0/RA/gpu/gpu1/cards",
    ]


def test_each_device_without_groups_gets_groups_of_its_own():
    """GA-10: a request for devices without groups asks for no affinity."""
    names = translated({"gpu/1/cards": 1, "gpu/0/cards": 1}, TWO_LEVELS)
    assert names == {
        "gpu/0/cards": "Gpugrp1/0/Gpugrp0/0/gpu/0/cards",
        "gpu/1/cards": "Gpugrp1/1/Gpugrp0/1/gpu/1/cards",
    }


def test_new_groups_are_numbered_on_from_those_of_the_request():
    """GA-11."""
    names = translated({"Gpugrp1/0/Gpugrp0/B/gpu/0/cards": 1, "Gpugrp0/A/gpu/0/cards": 1}, TWO_LEVELS)
    assert names["Gpugrp0/A/gpu/0/cards"] == "Gpugrp1/1/Gpugrp0/A/gpu/0/cards"
    assert names["Gpugrp1/0/Gpugrp0/B/gpu/0/cards"] == "Gpugrp1/0/Gpugrp0/B/gpu/0/cards"


def test_a_group_left_out_in_the_middle_is_filled_in_there():
    names = translated({"Gpugrp1/X/gpu/0/cards": 1, "Gpugrp1/X/cpu": 1}, TWO_LEVELS)
    assert names["Gpugrp1/X/gpu/0/cards"] == "Gpugrp1/X/Gpugrp0/0/gpu/0/cards"
    assert names["Gpugrp1/X/cpu"] == "Gpugrp1/X/cpu"


def test_what_no_location_has_keeps_its_name():
    assert translated({"cpu": 1, "fpga/0/cards": 1}, TWO_LEVELS) == {"cpu": "cpu", "fpga/0/cards": "fpga/0/cards"}


@pytest.mark.parametrize(
    ("requested", "count", "added"),
    [
        ({"cpu": 1}, 2, ["gpu/0/cards", "gpu/1/cards"]),
        ({"gpu/3/cards": 1, "gpu/a/cards": 1}, 4, ["gpu/4/cards", "gpu/5/cards"]),
        ({"Gpugrp0/A/gpu/0/cards": 1, "Gpugrp0/B/gpu/0/cards": 1}, 3, ["gpu/1/cards"]),
        ({"gpu/0/cards": 1, "gpu/0/memory": 5, "gpu/1/memory": 5}, 1, []),
        ({"gpu/0/cards": 1, "gpu/1/cards": 1}, 1, []),
    ],
    ids=["none named", "some named", "named in groups", "memory alone is no device", "more named than counted"],
)
def test_a_count_adds_the_devices_that_are_not_named(requested, count, added):
    assert with_count(requested, count) == requested | dict.fromkeys(added, 1)


def node_of(*sizes: tuple[int, ...]) -> list[str]:
    """Return the names of a node with upper groups that contain lower groups of the given sizes."""
    return [
        f"up/{upper}/low/{lower}/gpu/{device}/cards"
        for upper, lowers in enumerate(sizes)
        for lower, size in enumerate(lowers)
        for device in range(size)
    ]


EVEN = shape_of(node_of((2, 2), (2, 2)))
UNEVEN = shape_of(node_of((2, 2), (4,)))


def test_devices_in_fewer_deeper_groups_are_tied_more_closely():
    """GA-23."""
    assert (EVEN.score(), UNEVEN.score()) == (12, 16)


def test_a_count_is_arranged_in_the_shape_that_is_tied_most_closely():
    """GA-24: three in one lower group if one has four, otherwise two and one."""
    assert list(arranged(3, [EVEN, UNEVEN])) == [f"up/0/low/0/gpu/{number}/cards" for number in range(3)]
    assert list(arranged(3, [EVEN], topology=1)) == [
        "up/0/low/0/gpu/0/cards",
        "up/0/low/0/gpu/1/cards",
        "up/0/low/1/gpu/2/cards",
    ]


def test_shapes_do_not_depend_on_names_or_their_order():
    renamed = [name.replace("up/0", "up/z") for name in reversed(node_of((4,), (2, 2)))]
    assert shape_of(renamed) == UNEVEN
    assert arranged(5, [UNEVEN, EVEN]) == arranged(5, [EVEN, UNEVEN])


def test_a_shape_with_too_few_devices_is_not_taken():
    """If no node has enough, the request keeps its form without groups and fits nowhere."""
    assert list(arranged(9, [EVEN, UNEVEN])) == [f"gpu/{number}/cards" for number in range(9)]
    small = shape_of(node_of((2,)))
    assert all(name.startswith("up/0/low/") for name in arranged(4, [small, EVEN]))


def test_topology_can_be_switched_off_and_nothing_else_can_be_said():
    assert list(arranged(2, [UNEVEN], topology=0)) == ["gpu/0/cards", "gpu/1/cards"]
    with pytest.raises(ValueError, match="topology"):
        arranged(2, [UNEVEN], topology=2)
