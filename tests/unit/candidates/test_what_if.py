"""A hypothetical cloud has the same headroom as a real one with the same contents."""

from dataclasses import replace
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.domain.overlay import MoreTrees, Overlay
from tests.small_clouds import Cloud, Inventory, Node, random_cloud, random_request, shares_of
from tests.unit.candidates.filling import TooLarge, cloud_in_forms, counted_headroom, filled

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
    copies = counted_headroom(request, found).copies
    try:
        expected = filled(request, cloud)
    except TooLarge:
        assume(False)
    assert copies.least <= expected <= copies.most
    assert copies.is_exact or shares_of(cloud)


@given(seeds)
def test_one_more_tree_is_as_good_as_one_like_it(chance: Random) -> None:
    request, cloud = random_request(chance), random_cloud(chance)
    root = chance.choice(sorted({node.root for node in cloud.values()}))
    # Requests that name a tree do not apply to its copy.
    assume(all(group.in_tree is None for group in request.groups))
    count = chance.randint(1, 2)
    found = cloud_in_forms(cloud, Overlay(more=(MoreTrees(root, count),)))
    more = like(cloud, root)
    compare(request, found, more if count == 1 else like(more, root))


def test_further_trees_are_built_like_the_one_that_they_are_like() -> None:
    """Its two children differ: in another order they would make another host model."""
    cloud = {
        1: Node(1, None, 1),
        2: Node(2, 1, 1, {"VCPU": Inventory(8, used=4)}),
        3: Node(3, 1, 1, {"MEMORY_MB": Inventory(2)}),
    }
    forms = cloud_in_forms(cloud, Overlay(more=(MoreTrees(1, 2),))).forms
    assert [tuple(trees.form.max_units) for trees in forms for _root in trees.roots] == [((1, 0), (2, 1))] * 3


@given(seeds)
def test_a_tree_that_is_gone_is_not_counted(chance: Random) -> None:
    request, cloud = random_request(chance), random_cloud(chance)
    root = chance.choice(sorted({node.root for node in cloud.values()}))
    assume(all(group.in_tree is None for group in request.groups))
    found = cloud_in_forms(cloud, Overlay().without([root]))
    compare(request, found, without(cloud, root))


@given(seeds)
def test_what_is_given_back_is_free(chance: Random) -> None:
    request, cloud = random_request(chance), random_cloud(chance)
    node = cloud[chance.choice(sorted(cloud))]
    in_use = {name: stock.used for name, stock in node.inventories.items()}
    found = cloud_in_forms(cloud, Overlay().releasing({node.id: in_use}))
    compare(request, found, {**cloud, node.id: with_less_in_use(node)})
