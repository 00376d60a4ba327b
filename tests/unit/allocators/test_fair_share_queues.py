"""Trees from lines with paths and weights, and contradictions between lines."""

import pytest

from placement.allocators.fair_share.queues import Contradiction, Queue, tree_of
from placement.allocators.fair_share.tree import Branch, Leaf
from tests.unit.allocators.fair_share_trees import leaf_paths

PROD = Queue("root/eng/prod", (1, 2, 8), ("p1",))


def test_the_form_of_volcano_makes_a_tree_with_these_weights() -> None:
    """From Volcano's design: the hierarchy root/eng/prod with the weights 1/2/8 is a tree of three levels."""
    queues = tree_of([PROD, Queue("root/eng/dev", (1, 2, 2), ("p2", "p3")), Queue("root/sci", (1, 8), ())])
    assert queues.weights == {"root/eng": 2, "root/eng/prod": 8, "root/eng/dev": 2, "root/sci": 8, "root/default": 1}
    tree = queues.tree([])
    assert list(leaf_paths(tree)) == ["root/eng/dev/p2", "root/eng/dev/p3", "root/eng/prod/p1"]
    assert {part.name: part.weight for part in tree.parts} == {"eng": 2, "sci": 8, "default": 1}


def test_a_weight_may_be_left_out_and_is_one() -> None:
    queues = tree_of([Queue("root/a", (None, 0.5), ()), Queue("root/b", (), ())])
    assert queues.weights == {"root/a": 0.5, "root/b": 1, "root/default": 1}


def test_who_is_not_written_is_in_the_default_queue() -> None:
    queues = tree_of([PROD])
    assert (queues.path_of("p1"), queues.path_of("new")) == ("root/eng/prod/p1", "root/default/new")
    assert list(leaf_paths(queues.tree(["new", "p1"]))) == ["root/default/new", "root/eng/prod/p1"]
    assert tree_of([PROD], default="root/eng/prod").path_of("new") == "root/eng/prod/new"


def test_any_name_can_be_a_member() -> None:
    names = ["a/b", "a%2Fb", "%", "/", "ä b"]
    queues = tree_of([Queue("root/q", (), tuple(names))])
    paths = [queues.path_of(name) for name in names]
    assert sorted(leaf_paths(queues.tree([]))) == sorted(paths)
    assert len(set(paths)) == len(names)


def test_the_default_queue_must_not_be_a_branch() -> None:
    with pytest.raises(Contradiction, match="root/eng is a queue and cannot contain the queue root/eng/prod"):
        tree_of([PROD], default="root/eng")


@pytest.mark.parametrize("weight", [0, -1, 1e-9, 1e9, float("nan")])
def test_a_weight_that_makes_no_sense_is_refused(weight) -> None:
    with pytest.raises(ValueError, match="weight"):
        Leaf("a", weight)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_cannot_be_in_a_path_is_refused(name) -> None:
    with pytest.raises(ValueError, match="a name without a slash"):
        Branch(name)


def test_two_parts_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one part of each name"):
        Branch("root", (Leaf("a"), Branch("a")))
