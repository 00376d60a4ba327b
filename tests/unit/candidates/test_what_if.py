"""A hypothetical cloud has the same headroom as a real one with the same contents."""

from dataclasses import replace
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.candidates.headroom.fleets import fleets_of
from placement.candidates.headroom.headroom import headroom
from placement.candidates.headroom.what_if import MoreTrees, as_it_would_be
from placement.domain.overlay import Overlay
from placement.domain.search_plan import plan_for
from placement.domain.whole_cloud import WholeCloud
from tests.small_clouds import Cloud, Node, random_cloud, random_request, shares_of
from tests.unit.candidates.filling import TooLarge, filled, whole_cloud_of

seeds = st.integers(0, 2**32).map(Random)


def like(cloud: Cloud, root: int) -> Cloud:
    """Return the cloud with one more tree, an empty copy of an existing one."""
    first = max(cloud) + 1
    ids = {node.id: first + number for number, node in enumerate(n for n in cloud.values() if n.root == root)}
    copies = [
        replace(
            cloud[old],
            id=new,
            parent=ids.get(cloud[old].parent),
            root=ids[root],
            inventories={name: replace(stock, used=0) for name, stock in cloud[old].inventories.items()},
        )
        for old, new in ids.items()
    ]
    return {**cloud, **{node.id: node for node in copies}}


def without(cloud: Cloud, root: int) -> Cloud:
    return {id_: node for id_, node in cloud.items() if node.root != root}


def with_less_in_use(node: Node) -> Node:
    return replace(node, inventories={name: replace(stock, used=0) for name, stock in node.inventories.items()})


def compare(request, found, cloud: Cloud) -> None:
    copies = headroom(plan_for(request), fleets_of(found)).copies
    try:
        expected = filled(request, cloud)
    except TooLarge:
        assume(False)
    assert copies.least <= expected <= copies.most
    assert copies.is_exact or shares_of(cloud)


@given(seeds)
def test_one_more_tree_is_as_good_as_one_like_it(chance: Random) -> None:
    request, cloud = random_request(chance), random_cloud(chance)
    # A copy of a sharing tree would share with trees that the original does not share with.
    assume(not shares_of(cloud))
    root = chance.choice(sorted({node.root for node in cloud.values()}))
    # Requests that name a tree do not apply to its copy.
    assume(all(group.in_tree is None for group in request.groups))
    found = as_it_would_be(whole_cloud_of(cloud), more=[MoreTrees(root, 2)])
    compare(request, found, like(like(cloud, root), root))


def test_further_trees_are_built_like_the_one_that_they_are_like() -> None:
    """Its two children differ: in another order they would make another host model."""
    holdings = [(2, 1, 8, 4, 1, 8, 1), (3, 2, 2, 0, 1, 2, 1)]
    cloud = WholeCloud([(1, None, 1), (2, 1, 1), (3, 1, 1)], holdings, {"VCPU": 1, "PGPU": 2})
    (fleet,) = fleets_of(as_it_would_be(cloud, more=[MoreTrees(1, 2)])).fleets
    assert len(fleet.trees) == 3


@given(seeds)
def test_a_tree_that_is_gone_is_not_counted(chance: Random) -> None:
    request, cloud = random_request(chance), random_cloud(chance)
    root = chance.choice(sorted({node.root for node in cloud.values()}))
    assume(all(group.in_tree is None for group in request.groups))
    found = as_it_would_be(whole_cloud_of(cloud), Overlay().without([root]))
    compare(request, found, without(cloud, root))


@given(seeds)
def test_what_is_given_back_is_free(chance: Random) -> None:
    request, cloud = random_request(chance), random_cloud(chance)
    node = cloud[chance.choice(sorted(cloud))]
    freed = {name: stock.used for name, stock in node.inventories.items() if stock.used}
    found = as_it_would_be(whole_cloud_of(cloud), Overlay().releasing({node.id: freed} if freed else {}))
    compare(request, found, {**cloud, node.id: with_less_in_use(node)})
