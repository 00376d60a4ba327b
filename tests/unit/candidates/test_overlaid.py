"""A reader with an overlay: which trees change in memory, and which stay as they are."""

import pytest

from placement.allocators.strategy_fit import ScoredNode
from placement.candidates.in_memory import TreesInMemory
from placement.candidates.overlaid import ChangedProvider, OverlaidReader
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.overlay import Overlay
from placement.domain.planner_tree import Stock
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree

PLAN = plan_for(CandidateRequest(groups=(RequestGroup(suffix="_A", resources={"PGPU": 1}),)))
CONTENDED = plan_for(
    CandidateRequest(
        groups=(RequestGroup(suffix="_A", resources={"PGPU": 1}), RequestGroup(suffix="_B", resources={"PGPU": 2}))
    )
)
TOTALS = {1: ScoredNode({"PGPU": 4}, {"PGPU": 1}), 5: ScoredNode({"PGPU": 2})}


def reader(overlay: Overlay, *, used: int) -> OverlaidReader:
    """Return two trees; provider 2 in tree 1 is changed."""
    trees = TreesInMemory(PLAN, [Tree(1, [[2, 3]]), Tree(5, [[6]])], TOTALS)
    return OverlaidReader(trees, overlay, {2: ChangedProvider(1, {"PGPU": Stock(2, used)})})


def options(read: OverlaidReader) -> dict[int, list[list[int]]]:
    return {tree.root: tree.options for tree in read.all_trees().trees}


@pytest.mark.parametrize(("used", "left"), [(0, [2, 3]), (1, [2, 3]), (2, [3])])
def test_who_would_have_no_room_is_no_option(used: int, left: list[int]) -> None:
    assert options(reader(Overlay().taking({2: {"PGPU": 1}}), used=used)) == {1: [left], 5: [[6]]}


def test_a_tree_where_nobody_would_have_room_is_left_out() -> None:
    trees = TreesInMemory(PLAN, [Tree(1, [[2]])])
    changed = {2: ChangedProvider(1, {"PGPU": Stock(2, 2)})}
    assert options(OverlaidReader(trees, Overlay().taking({2: {"PGPU": 1}}), changed)) == {}


def test_what_is_taken_of_one_who_shares_concerns_every_tree() -> None:
    trees = TreesInMemory(PLAN, [Tree(1, [[2, 9]], sharing={9}), Tree(5, [[9]], sharing={9})])
    changed = {9: ChangedProvider(8, {"PGPU": Stock(1, 1)})}
    assert options(OverlaidReader(trees, Overlay().taking({9: {"PGPU": 1}}), changed)) == {1: [[2]]}


def test_room_for_several_groups_is_what_would_be_left() -> None:
    trees = TreesInMemory(CONTENDED, [Tree(1, [[2], [2]], {(2, "PGPU"): 4.0, (3, "PGPU"): 4.0})])
    changed = {2: ChangedProvider(1, {"PGPU": Stock(6, 3, max_unit=2)})}
    (tree,) = OverlaidReader(trees, Overlay().taking({2: {"PGPU": 1}}), changed).all_trees().trees
    assert tree.room == {(2, "PGPU"): 2.0, (3, "PGPU"): 4.0}


def test_sums_are_those_that_would_be() -> None:
    overlay = Overlay().taking({2: {"PGPU": 2, "VCPU": 7}})
    assert reader(overlay, used=2).sums(["PGPU"], ()) == [(1, 4, 3), (5, 2, 0)]


def test_avoided_trees_are_not_read() -> None:
    overlay = Overlay().avoiding([1])
    trees = TreesInMemory(PLAN, [Tree(1, [[2]]), Tree(5, [[6]])], TOTALS)
    read = OverlaidReader(trees, overlay, {})
    assert [tree.root for tree in read.trees_of([1, 5]).trees] == [5]
    assert trees.read == [5]
    assert options(read) == {5: [[6]]}
    assert read.sums(["PGPU"], ()) == [(5, 2, 0)]


def test_trees_that_are_gone_share_nothing_and_avoided_ones_still_do() -> None:
    """Provider 9 is in tree 8, and shares with the others."""
    whole = [Tree(root, [row], root_of={9: 8}, sharing={9}) for root, row in ((1, [2, 9]), (5, [9]), (8, [9]))]
    trees = TreesInMemory(PLAN, whole)
    assert options(OverlaidReader(trees, Overlay().without([8]), {})) == {1: [[2]]}
    assert options(OverlaidReader(trees, Overlay().avoiding([8]), {})) == {1: [[2, 9]], 5: [[9]]}


def test_only_providers_of_which_less_is_in_use_are_released() -> None:
    overlay = Overlay().taking({1: {"PGPU": 1}, 2: {"PGPU": 1}}).releasing({2: {"PGPU": 1}, 3: {"PGPU": 2}})
    assert overlay.released == {3}
