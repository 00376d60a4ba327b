"""The headroom of small random clouds equals the result of filling them in every possible way."""

from dataclasses import replace

from hypothesis import assume, given

from placement.domain.search_plan import CandidateRequest, RequestGroup
from tests.small_clouds import Cloud, Inventory, Node, shares_of, situations
from tests.unit.candidates.filling import TooLarge, cloud_in_forms, counted_headroom, filled


def filled_or_too_large(request, cloud, roots=None) -> int:
    try:
        return filled(request, cloud, roots)
    except TooLarge:
        assume(False)
        raise


@given(situations)
def test_the_headroom_is_what_filling_finds(situation) -> None:
    request, cloud = situation
    found = counted_headroom(request, cloud_in_forms(cloud))
    expected = filled_or_too_large(request, cloud)
    assert found.copies.least <= expected <= found.copies.most
    if not shares_of(cloud):
        assert found.copies.is_exact


@given(situations)
def test_each_tree_has_what_filling_it_alone_finds(situation) -> None:
    request, cloud = situation
    found = counted_headroom(request, cloud_in_forms(cloud))
    trees = found.trees()
    for root in {node.root for node in cloud.values()}:
        expected = filled_or_too_large(request, cloud, {root})
        copies = trees.get(root)
        if copies is None:
            assert expected == 0
        else:
            assert copies.least <= expected <= copies.most
            if copies.is_exact:
                assert copies.least == expected


@given(situations)
def test_a_small_tree_without_sharing_is_always_known_exactly(situation) -> None:
    request, cloud = situation
    assume(not shares_of(cloud))
    found = counted_headroom(request, cloud_in_forms(cloud))
    assert all(copies.is_exact for copies in found.trees().values())


@given(situations)
def test_trees_that_are_alike_have_room_for_as_many(situation) -> None:
    request, cloud = situation
    assume(not shares_of(cloud) and not any(group.in_tree for group in request.groups))
    once, twice = (counted_headroom(request, cloud_in_forms(one)) for one in (cloud, doubled(cloud)))
    assert twice.copies == (2 * once.copies.least, 2 * once.copies.most)
    assert twice.trees() == once.trees() | {root + TWIN: copies for root, copies in once.trees().items()}
    assert (twice.with_room, twice.without_room) == (2 * once.with_room, 2 * once.without_room)
    assert twice.stranded == {name: 2 * much for name, much in once.stranded.items()}


TWIN = 1000
"""The offset added to ids."""


def doubled(cloud: Cloud) -> Cloud:
    """Return a cloud with a duplicate of each tree."""
    twins = [
        replace(node, id=node.id + TWIN, parent=node.parent and node.parent + TWIN, root=node.root + TWIN)
        for node in cloud.values()
    ]
    return cloud | {node.id: node for node in twins}


def test_classes_that_as_many_trees_lack_are_told_in_the_order_of_their_names() -> None:
    cloud = {
        1: Node(1, None, 1, {"VCPU": Inventory(8, used=8), "MEMORY_MB": Inventory(8)}),
        2: Node(2, None, 2, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8, used=8)}),
    }
    request = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),))
    found = counted_headroom(request, cloud_in_forms(cloud))
    assert [*found.lacking] == [("MEMORY_MB",), ("VCPU",)]
    assert [*found.stranded] == ["MEMORY_MB", "VCPU"]


def test_a_tree_lacks_a_class_that_is_free_only_where_the_rest_of_its_group_cannot_be() -> None:
    cloud = {
        1: Node(1, None, 1),
        2: Node(2, 1, 1, {"VCPU": Inventory(8, used=8)}),
        3: Node(3, 2, 1, {"DISK_GB": Inventory(2)}),
        4: Node(4, 1, 1, {"VCPU": Inventory(8)}),
    }
    groups = tuple([RequestGroup(suffix=f"_{name}", resources={name: 1}) for name in ("VCPU", "DISK_GB")])
    request = CandidateRequest(groups=groups, same_subtree=(frozenset({"_VCPU", "_DISK_GB"}),))
    assert counted_headroom(request, cloud_in_forms(cloud)).lacking == {("VCPU",): 1}
