"""Fair shares against the numbers of Volcano's design of HDRF, of the paper and of Volcano itself: HD-01 to HD-20.

Where ours deliberately differs from Volcano (W), the test says why.
"""

import random

import pytest

from placement.allocators.fair_share.order import Task, fill, order, want
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import SCALE, Branch, Leaf, ratio
from tests.unit.allocators.fair_share_trees import COMPLEMENTARY, RESCALING, SATURATED, end_and_serve, tasks, tree


def state(parts, totals, usage=(), *, waiting=None) -> FairShares:
    shares = FairShares(tree("n", parts), totals)
    for path, amounts in dict(usage).items():
        shares.use(f"n/{path}", amounts)
    want(shares, tasks(parts) if waiting is None else waiting)
    return shares


def filled(parts, totals, count=None) -> dict[str, int]:
    """Return the number of tasks that each leaf gets, by name."""
    pending = {path: [Task(task, count)] for path, task in tasks(parts).items()}
    result = fill(FairShares(tree("n", parts), totals), pending)
    assert result.complete
    return {path.rpartition("/")[2]: sum(served) for path, served in result.served.items()}


def test_hd01_flat_dominant_resource_fairness() -> None:
    """The example of the DRF paper: both get two thirds of the resource they need most."""
    shares = FairShares(Branch("n", (Leaf("a"), Leaf("b"))), {"cpu": 9, "memory": 18})
    result = fill(shares, {"n/a": [Task({"cpu": 1, "memory": 4}, None)], "n/b": [Task({"cpu": 3, "memory": 1}, None)]})
    assert result.granted == {"n/a": {"cpu": 3, "memory": 12}, "n/b": {"cpu": 6, "memory": 2}}
    assert [path[-1] for path in result.order] == ["a", "b", "a", "b", "a"]
    assert shares.node("n/a").share == shares.node("n/b").share == 2 / 3


def test_hd02_children_are_scaled_to_the_smallest_before_they_are_added() -> None:
    """The design's figures, in a cloud twice as large: (10, 0) x 0.25 / 0.5 = (5, 0), so the parent has a quarter."""
    usage = {"n1": {"g": 5}, "n2/n21": {"c": 10}, "n2/n22": {"g": 5}}
    shares = state(COMPLEMENTARY, {"c": 20, "g": 20}, usage)
    assert [shares.node(f"n/{path}").share for path in ("n1", "n2/n21", "n2/n22")] == [0.25, 0.5, 0.25]
    assert shares.node("n/n2").vector == {"c": 5, "g": 5}
    assert shares.node("n/n2").share == 0.25


HD03 = {"n1": {"g": 5}, "n2/n21": {"c": 10}, "n2/n22": {"g": 4}}


def test_hd03_an_exhausted_resource_does_not_count_in_the_share_of_a_branch() -> None:
    """W: CPUs are exhausted and n21 has them. Volcano therefore gives n2 a share of 1, and the GPU goes to n1."""
    shares = state(COMPLEMENTARY, {"c": 10, "g": 10}, HD03)
    branch = shares.node("n/n2")
    assert branch.vector == {"c": 10, "g": 4}
    assert (branch.share, branch.dominant, branch.is_blocked) == (0.4, "g", False)
    assert shares.node("n/n2/n21").lacking == ("c",)
    assert [turn.leaf.path for turn in order(shares, tasks(COMPLEMENTARY))] == ["n/n2/n22", "n/n2/n21", "n/n1"]
    assert shares.first() == "n/n2/n22"


FILLS = [
    pytest.param(COMPLEMENTARY, {"c": 10, "g": 10}, None, {"n1": 5, "n21": 10, "n22": 5}, id="HD-04"),
    pytest.param(RESCALING, {"c": 10, "g": 10}, 10, {"sci": 5, "dev": 5, "prod": 5}, id="HD-05"),
    pytest.param(
        {("sci", 50): "cgp", ("eng", 50): {("dev", 10): "cp", ("prod", 10): "gp"}},
        {"c": 10, "g": 10, "p": 50},
        10,
        {"sci": 5, "dev": 5, "prod": 5},
        id="HD-05-with-pods",
    ),
    pytest.param(SATURATED, {"c": 30, "g": 30}, 30, {"n1": 10, "n2": 10, "n31": 10, "n32": 15, "n4": 15}, id="HD-06"),
]


@pytest.mark.parametrize(("parts", "totals", "count", "expected"), FILLS)
def test_filling_gives_what_the_paper_gives(parts, totals, count, expected) -> None:
    assert filled(parts, totals, count) == expected


def test_hd08_the_state_in_which_the_saturated_node_is_decided() -> None:
    used = {"n1": {"c": 10}, "n2": {"c": 10}, "n3/n31": {"c": 10}, "n3/n32": {"g": 10}, "n4": {"g": 11}}
    shares = state(SATURATED, {"c": 30, "g": 30}, used)
    blocked = {path: shares.node(f"n/{path}").is_blocked for path in ("n1", "n2", "n3/n31", "n3", "n4")}
    assert blocked == {"n1": True, "n2": True, "n3/n31": True, "n3": False, "n4": False}
    assert shares.node("n/n3").share == 1 / 3
    assert shares.node("n/n4").share == 11 / 30
    # n4 is scaled from 11 to 10, the smallest.
    assert shares.node("n").share == 2 / 3
    assert shares.node("n").dominant == "g"
    assert shares.first() == "n/n3/n32"


def churned(parts, totals, names: list[str], *, steps: int = 200) -> FairShares:
    """Fill, then end one task of each of these leaves in turn and queue it again."""
    shares = state(parts, totals)
    fill(shares, {path: [Task(task, None)] for path, task in tasks(parts).items()})
    end_and_serve(shares, [f"n/{name}" for name in names], tasks(parts), steps=steps)
    assert shares.first() is None
    return shares


def test_hd09_churn_does_not_starve_the_child_with_the_complementary_resource() -> None:
    """W, the design's first case: tasks of n1 and n22 end in turn. With Volcano, n1 gets every GPU: 10 and 0."""
    shares = churned(COMPLEMENTARY, {"c": 10, "g": 10}, ["n1", "n2/n22"])
    assert [shares.usage(f"n/{path}")["g"] for path in ("n1", "n2/n22")] == [5, 5]


def test_churn_does_not_take_from_the_other_children_of_a_saturated_node() -> None:
    """The design's second case over many steps: n4 keeps half of the GPUs, whosever task ends."""
    shares = churned(SATURATED, {"c": 30, "g": 30}, ["n1", "n4", "n3/n32", "n2", "n3/n31", "n4"], steps=600)
    assert [shares.usage(f"n/{path}")["g"] for path in ("n3/n32", "n4")] == [15, 15]
    assert [shares.usage(f"n/{path}")["c"] for path in ("n1", "n2", "n3/n31")] == [10, 10, 10]


WEIGHTED = {
    "HD-10": ({"a": {"a1": "c", ("a2", 3): "c"}, "b": {"b1": "c"}}, {"a1": 10, "a2": 30, "b1": 40}),
    "HD-11-volcano-1661": (
        {("dev", 50): {"little": "c", ("big", 9): "c"}, ("alt", 50): {"main": "c"}},
        {"little": 5, "big": 45, "main": 50},
    ),
    "HD-12": (
        {"ads": {"dev": "c", "test": "c"}, ("eng", 3): {"p": "c", ("q", 2): "c"}},
        {"dev": 60, "test": 60, "p": 120, "q": 240},
    ),
}


@pytest.mark.parametrize(("parts", "expected"), WEIGHTED.values(), ids=WEIGHTED)
def test_weights_hold_on_every_level(parts, expected) -> None:
    """W: Volcano scales by unweighted shares, so a child's weight also changes its parent's part."""
    assert filled(parts, {"c": sum(expected.values())}) == expected


def test_hd13_what_a_content_leaf_leaves_goes_to_its_sibling() -> None:
    parts = {"a": {"a1": "c", "a2": "c"}, "b": {"b1": "c", "b2": "c"}}
    pending = {path: [Task(task, 2 if path == "n/a/a1" else None)] for path, task in tasks(parts).items()}
    result = fill(FairShares(tree("n", parts), {"c": 40}), pending)
    assert [sum(served) for served in result.served.values()] == [2, 18, 10, 10]


@pytest.mark.parametrize(("used", "total", "share"), [(0, 0, 0), (5, 0, 1), (5, 10, 0.5)], ids=str)
def test_hd14_the_share_of_one_class(used, total, share) -> None:
    assert ratio(used, total) == share * SCALE
    shares = FairShares(Branch("n", (Leaf("a"),)), {"c": total})
    shares.use("n/a", {"c": used})
    assert shares.node("n/a").share == share


def test_hd15_what_can_be_served_precedes_what_is_blocked_whatever_its_share() -> None:
    parts = {"blocked": "c", "demanding": "c"}
    usage = {"blocked": {"c": 1}, "demanding": {"c": 8}}
    shares = state(parts, {"c": 10}, usage, waiting={"n/demanding": {"c": 1}, "n/blocked": {"c": 2}})
    first, second = order(shares, ["n/blocked", "n/demanding"])
    assert (first.leaf.path, first.leaf.share) == ("n/demanding", 0.8)
    assert (second.leaf.path, second.leaf.share, second.leaf.lacking) == ("n/blocked", 0.1, ("c",))
    assert second.behind is not None
    assert second.behind.reason == "blocked"


def test_hd16_where_shares_are_level_the_name_decides_and_a_way_that_ends_comes_first() -> None:
    """Volcano treats a path and its extensions as equal. That is no order: b may equal a/x and a/y, which differ."""
    parts = {"a": {"x": "c", "y": "c"}, "b": "c", "c": "c"}
    shares = state(parts, {"c": 24}, {"a/x": {"c": 2}, "a/y": {"c": 2}, "b": {"c": 4}, "c": {"c": 4}})
    assert {shares.node(f"n/{name}").weighted_share for name in "abc"} == {1 / 6}
    turns = order(shares, tasks(parts))
    assert [turn.leaf.path for turn in turns] == ["n/b", "n/c", "n/a/x", "n/a/y"]
    assert [turn.behind and turn.behind.reason for turn in turns] == [None, "name", "name", "name"]
    assert shares.first() == "n/b"


def test_hd17_a_weight_below_one_counts_as_it_is() -> None:
    """W: Volcano raises it to 1, and both get 10."""
    shares = state({("half", 0.5): "c", "whole": "c"}, {"c": 100}, {"half": {"c": 10}, "whole": {"c": 10}})
    assert [shares.node(f"n/{name}").weighted_share for name in ("half", "whole")] == [0.2, 0.1]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [pytest.param({}, "g", id="HD-18-holds-nothing"), pytest.param({"c": 2}, "cg", id="HD-19-holds-another-class")],
)
def test_a_leaf_is_blocked_by_what_it_wants_not_by_what_it_holds(held, wanted) -> None:
    """W: Volcano checks what it holds, so a queue that nobody can serve stays first in the order."""
    shares = state({"waits": wanted, "full": "g"}, {"c": 10, "g": 10}, {"waits": held, "full": {"g": 10}})
    assert shares.node("n/waits").is_blocked
    assert shares.node("n/waits").lacking == ("g",)
    assert shares.first() is None


def test_hd20_a_branch_without_parts_is_blocked_and_has_nothing() -> None:
    shares = FairShares(Branch("n", (Branch("empty"), Leaf("a"))), {"c": 10})
    shares.want("n/a", {"c": 1})
    empty = shares.node("n/empty")
    assert (empty.is_blocked, empty.vector, empty.share) == (True, {"c": 0}, 0)
    assert shares.first() == "n/a"


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_siblings_in_the_tree_changes_nothing(seed) -> None:
    """HD-21: trees with shuffled children are filled alike."""
    names = ["n1", "n2", "n10", "n20"]
    random.Random(seed).shuffle(names)
    shares = FairShares(Branch("n", tuple([Leaf(name) for name in names])), {"c": 7})
    result = fill(shares, {f"n/{name}": [Task({"c": 1}, None)] for name in names})
    assert result.order == ("n/n1", "n/n2", "n/n10", "n/n20", "n/n1", "n/n2", "n/n10")


def test_a_tree_may_be_as_deep_as_it_likes() -> None:
    deep: Branch | Leaf = Leaf("a")
    for number in range(1500):
        deep = Branch(f"part{number}", (deep,))
    shares = FairShares(Branch("n", (deep, Leaf("b"))), {"cpu": 4})
    leaves = [*shares.leaves()]
    inmost = max(leaves, key=len)
    want(shares, {leaf: {"cpu": 1} for leaf in leaves})
    shares.use(inmost, {"cpu": 1})
    assert [turn.leaf.path for turn in order(shares, leaves)] == ["n/b", inmost]
    assert len(shares.rank(inmost)[0]) == 1501
    assert fill(shares, {leaf: [Task({"cpu": 1}, 2)] for leaf in leaves}).granted == {
        "n/b": {"cpu": 2},
        inmost: {"cpu": 1},
    }
