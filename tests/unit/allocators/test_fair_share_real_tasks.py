"""Tasks of many units, as in real clouds: what must not happen to queues that share, case by case."""

import pytest

from placement.allocators.fair_share.order import Task, fill
from placement.allocators.fair_share.reclaim import Held, reclaim
from placement.allocators.fair_share.state import FairShares
from tests.unit.allocators.fair_share_trees import COMPLEMENTARY, end_and_serve, tree


@pytest.mark.parametrize(("cpus", "size"), [(10, 1), (10, 3), (1004, 8), (1004, 64)])
def test_saturation_a_rest_too_small_for_anybody_counts_as_exhausted(cpus, size) -> None:
    """With 9 of 10 CPUs used in tasks of 3, n21 is blocked. Were CPUs not exhausted, n22 would lose all its GPUs."""
    tasks = {"n/n1": {"g": 1}, "n/n2/n21": {"c": size}, "n/n2/n22": {"g": 1}}
    shares = FairShares(tree("n", COMPLEMENTARY), {"c": cpus, "g": 10})
    fill(shares, {leaf: [Task(task, None)] for leaf, task in tasks.items()})
    assert shares.usage("n/n2/n21")["c"] == cpus // size * size
    end_and_serve(shares, ["n/n1", "n/n2/n22"], tasks)
    assert [shares.usage(leaf)["g"] for leaf in ("n/n1", "n/n2/n22")] == [5, 5]


@pytest.mark.parametrize("begins_with", [0, 1])
def test_who_holds_nothing_counts_in_the_minimum(begins_with) -> None:
    """n22 waits without a GPU, so n2 is first, whatever n21 has. With n22 left out of M, n2's share would be n21's."""
    parts = {"n1": "g", "n2": {"n21": "c", "n22": "g"}, "n3": "g"}
    tasks = {"n/n1": {"g": 1}, "n/n2/n21": {"c": 1}, "n/n2/n22": {"g": 1}}
    usage = {"n/n1": {"g": 30 - begins_with}, "n/n2/n21": {"c": 40}, "n/n2/n22": {"g": begins_with}, "n/n3": {"g": 69}}
    shares = FairShares(tree("n", parts), {"c": 100, "g": 100}, usage=usage, tasks=tasks)
    end_and_serve(shares, ["n/n1"], tasks)
    assert shares.usage("n/n2/n22")["g"] == 15


def singles(leaf: str, count: int) -> list[Held]:
    return [Held(f"{leaf[-2:]}-{number}", leaf, {"g": 1}) for number in range(count)]


RECLAIM = {"A": {"a1": {"x": "g"}, "a2": {"y": "g"}}, "B": {"b": {"z": "g"}}}
A1, A2, B = "n/A/a1/x", "n/A/a2/y", "n/B/b/z"


def reclaiming(claimant: str, amount: int):
    used = {A1: {"g": 60}, A2: {"g": 4}, B: {"g": 36}}
    waiting = {A1: {"g": 1}, B: {"g": 1}}
    shares = FairShares(tree("n", RECLAIM), {"g": 100}, usage=used, tasks=waiting)
    held = [single for leaf, amounts in used.items() for single in singles(leaf, amounts["g"])]
    return reclaim(shares, claimant, {"g": amount}, held=held)


def test_reclaim_takes_nothing_from_a_queue_below_its_entitlement() -> None:
    """a2 is poor, but its branch A has 64 of 100 GPUs: a1 has what a2 lacks, and B keeps its 36."""
    giving = reclaiming(A2, 4)
    assert {given.leaf for given in giving.given_back} == {A1}
    assert len(giving.given_back) == 4
    (parting,) = giving.partings
    assert (parting.claimant, parting.giver) == ("n/A/a2", "n/A/a1")
    assert (parting.claims, parting.holds) == ({"g": 8}, {"g": 60})


def test_reclaim_gives_a_queue_below_its_entitlement_what_it_claims() -> None:
    """The mirror case: B has 36, below its half; A has 14 above its own half."""
    giving = reclaiming(B, 4)
    assert {given.leaf for given in giving.given_back} == {A1}
    (parting,) = giving.partings
    assert (parting.claimant, parting.giver) == ("n/B", "n/A")
    assert (parting.claims, parting.claimant_entitled) == ({"g": 40}, {"g": 50.0})
    assert (parting.holds, parting.giver_entitled) == ({"g": 64}, {"g": 50.0})
    assert reclaiming(B, 14).feasible
    refused = reclaiming(B, 15)
    assert not refused.feasible
    assert [(parting.claimant, parting.claims) for parting in refused.partings] == [("n/B", {"g": 51})]


def test_reclaim_is_certain_of_one_that_is_enough_alone_among_many() -> None:
    """A large one may go while `rich` keeps its half: one is fewer than sixty, whatever its value."""
    parts = {"poor": {"p": "g"}, "rich": {"r": "g"}}
    large = [Held(name, "n/rich/r", {"g": amount}, 9) for name, amount in (("mid", 80), ("large", 320))]
    held = [*singles("n/rich/r", 600), *large]
    shares = FairShares(tree("n", parts), {"g": 1000}, usage={"n/rich/r": {"g": 1000}})
    giving = reclaim(shares, "n/poor/p", {"g": 60}, held=held)
    assert ([given.name for given in giving.given_back], giving.complete) == (["mid"], True)
    assert [given.name for given in reclaim(shares, "n/poor/p", {"g": 200}, held=held).given_back] == ["large"]
    assert not reclaim(shares, "n/poor/p", {"g": 330}, held=held).complete


def test_preempt_finds_several_of_lower_priority_among_many_where_one_of_a_higher_would_do() -> None:
    """`rich` may give 100. In order of priority the 60 go first, which leaves no room for anything of priority 1."""
    sizes = [(60, 0), (45, 1), (45, 1), (90, 2), *[(30, 2)] * 400]
    held = [Held(f"r{number}", "n/rich/r", {"g": size}, value) for number, (size, value) in enumerate(sizes)]
    total = sum(size for size, _value in sizes)
    parts = {("poor", 100): {"p": "g"}, ("rich", total - 100): {"r": "g"}}
    shares = FairShares(tree("n", parts), {"g": total}, usage={"n/rich/r": {"g": total}})
    giving = reclaim(shares, "n/poor/p", {"g": 90}, priority=2, held=held)
    assert ([given.name for given in giving.given_back], giving.complete) == (["r1", "r2"], True)
