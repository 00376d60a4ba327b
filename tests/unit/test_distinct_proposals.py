"""Trees that contribute nothing of their own and have the same pools are planned once."""

from placement.candidates.frontier import LAST, Portion
from placement.domain.tree import Tree
from placement.services.planner.distinct import once_of_pools

POOL, OTHER = 7, 8


def keyed(root: int, *rows: list[int]) -> tuple:
    return (False, 0.0, root), Tree(root, [*rows], sharing={POOL, OTHER}, root_of={POOL: POOL, OTHER: OTHER})


def test_of_trees_with_the_same_pools_alone_the_first_is_left():
    first = Portion([keyed(30, [POOL]), keyed(20, [POOL]), keyed(21, [21])], LAST)
    later = Portion([keyed(40, [POOL]), keyed(41, [POOL, 41]), keyed(42, [POOL, OTHER])], LAST)
    left = [[tree.root for _key, tree in portion.trees] for portion in once_of_pools([first, later])]
    assert left == [[20, 21], [41, 42]]


def test_who_gives_the_same_of_its_own_is_another_tree():
    trees = [keyed(root, [POOL], [root, OTHER]) for root in (20, 30)]
    (portion,) = once_of_pools([Portion(trees, LAST)])
    assert portion.trees == trees


def test_the_tree_of_a_pool_is_left_whoever_came_first():
    """A group that asks for everything finds it there, and nothing in a tree that only shares it."""
    trees = [keyed(root, [POOL]) for root in (5, POOL, 20)]
    (portion,) = once_of_pools([Portion(trees, LAST)])
    assert [tree.root for _key, tree in portion.trees] == [5, POOL]
