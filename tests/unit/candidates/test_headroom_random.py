"""The headroom of small random clouds equals the result of filling them in every possible way."""

from dataclasses import replace

from hypothesis import assume, given

from placement.candidates.headroom.fleets import fleets_of
from placement.candidates.headroom.headroom import headroom
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from placement.domain.whole_cloud import WholeCloud
from tests.small_clouds import Cloud, shares_of, situations
from tests.unit.candidates.filling import TooLarge, filled, whole_cloud_of


def filled_or_too_large(request, cloud, roots=None) -> int:
    try:
        return filled(request, cloud, roots)
    except TooLarge:
        assume(False)
        raise


@given(situations)
def test_the_headroom_is_what_filling_finds(situation) -> None:
    request, cloud = situation
    found = headroom(plan_for(request), fleets_of(whole_cloud_of(cloud)))
    expected = filled_or_too_large(request, cloud)
    assert found.copies.least <= expected <= found.copies.most
    if not shares_of(cloud):
        assert found.copies.is_exact


@given(situations)
def test_each_tree_has_what_filling_it_alone_finds(situation) -> None:
    request, cloud = situation
    found = headroom(plan_for(request), fleets_of(whole_cloud_of(cloud)))
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
    found = headroom(plan_for(request), fleets_of(whole_cloud_of(cloud)))
    assert all(copies.is_exact for copies in found.trees().values())


@given(situations)
def test_trees_that_are_alike_have_room_for_as_many(situation) -> None:
    request, cloud = situation
    assume(not shares_of(cloud) and not any(group.in_tree for group in request.groups))
    once, twice = (headroom(plan_for(request), fleets_of(whole_cloud_of(one))) for one in (cloud, doubled(cloud)))
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


def test_what_is_told_does_not_depend_on_the_order_of_rows() -> None:
    """One host lacks CPUs, the other memory: a tie."""
    cloud = WholeCloud(
        providers=[(1, None, 1), (2, None, 2)],
        holdings=[(1, 1, 8, 8, 1, 8, 1), (1, 2, 8, 0, 1, 8, 1), (2, 2, 8, 8, 1, 8, 1), (2, 1, 8, 0, 1, 8, 1)],
        classes={"VCPU": 1, "MEMORY_MB": 2},
    )
    plan = plan_for(CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),)))
    turned = replace(cloud, providers=cloud.providers[::-1], holdings=cloud.holdings[::-1])
    for found in [headroom(plan, fleets_of(one)) for one in (cloud, turned)]:
        assert [*found.lacking] == [("MEMORY_MB",), ("VCPU",)]
        assert [*found.stranded] == ["MEMORY_MB", "VCPU"]
        assert [root for one in found.counted for root in one.fleet.trees] == [1, 2]
