"""What is given back: reclaim across queues against every subset there is, and preemption inside one queue."""

import random
from dataclasses import replace
from itertools import accumulate, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.allocators.entries import exact
from placement.allocators.fair_share.preempt import preempt
from placement.allocators.fair_share.reclaim import Held, queue_of, reclaim
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch, Leaf, joined
from tests.unit.allocators import fair_share_oracle as oracle
from tests.unit.allocators.fair_share_trees import tree

PLENTY = 10**6


def cluster(parts, totals, held: list[Held], waiting=()) -> FairShares:
    shares = FairShares(tree("n", parts), totals)
    for leaf in shares.leaves():
        own = [one.amounts for one in held if one.leaf == leaf]
        shares.use(leaf, {name: sum(amounts.get(name, 0) for amounts in own) for name in totals})
    for leaf, task in dict(waiting).items():
        shares.want(leaf, task)
    return shares


def names(giving) -> list[str]:
    return [one.name for one in giving.given_back]


def gpus(leaf: str, count: int, *, each: int = 1, value=0) -> list[Held]:
    return [Held(f"{leaf[-1]}{number}", leaf, {"g": each}, value) for number in range(count)]


TWO = {"a": {"x": "g"}, "b": {"y": "g"}}


def test_a_task_that_fits_needs_nothing_back() -> None:
    held = gpus("n/a/x", 4)
    giving = reclaim(cluster(TWO, {"g": 10}, held), "n/b/y", {"g": 6}, held=held)
    assert (giving.feasible, giving.given_back, giving.lacking) == (True, (), {})


def test_a_claimant_gets_its_half_and_no_more() -> None:
    """With a full cluster, where Volcano finds nobody (its issue 1748)."""
    held = gpus("n/a/x", 10)
    shares = cluster(TWO, {"g": 10}, held)
    half = reclaim(shares, "n/b/y", {"g": 5}, held=held)
    assert (half.feasible, len(half.given_back), half.lacking, half.complete) == (True, 5, {"g": 5}, True)
    more = reclaim(shares, "n/b/y", {"g": 6}, held=held)
    assert (more.feasible, more.given_back, more.lacking, more.complete) == (False, (), {"g": 6}, True)


def test_weights_say_where_it_ends() -> None:
    held = gpus("n/a/x", 12)
    shares = cluster({"a": {"x": "g"}, ("b", 2): {"y": "g"}}, {"g": 12}, held)
    assert reclaim(shares, "n/b/y", {"g": 8}, held=held).feasible
    assert not reclaim(shares, "n/b/y", {"g": 9}, held=held).feasible


def test_one_at_a_time_two_queues_never_take_turns() -> None:
    held = gpus("n/a/x", 5) + gpus("n/b/y", 5)
    shares = cluster(TWO, {"g": 10}, held)
    assert not reclaim(shares, "n/a/x", {"g": 1}, held=held).feasible
    assert not reclaim(shares, "n/b/y", {"g": 1}, held=held).feasible


def test_fewest_go_first_then_the_least_valuable() -> None:
    held = [*gpus("n/a/x", 4, each=1, value=0), Held("big", "n/a/x", {"g": 4}, 9), Held("mid", "n/a/x", {"g": 2}, 3)]
    shares = cluster(TWO, {"g": 10}, held)
    assert names(reclaim(shares, "n/b/y", {"g": 4}, held=held)) == ["big"]
    assert names(reclaim(shares, "n/b/y", {"g": 3}, held=held)) == ["big"]
    assert names(reclaim(shares, "n/b/y", {"g": 2}, held=held)) == ["mid"]
    assert names(reclaim(shares, "n/b/y", {"g": 1}, held=held)) == ["x0"]


def test_of_equals_the_queue_that_has_most_gives() -> None:
    parts = {"a": {"x": "g"}, "b": {"y": "g"}, "c": {"z": "g"}}
    held = gpus("n/a/x", 4) + gpus("n/b/y", 8)
    assert names(reclaim(cluster(parts, {"g": 12}, held), "n/c/z", {"g": 2}, held=held)) == ["y0", "y1"]


def test_nothing_is_taken_inside_the_claimants_own_queue() -> None:
    held = gpus("n/a/x", 10)
    shares = cluster({"a": {"x": "g", "w": "g"}}, {"g": 10}, held)
    assert not reclaim(shares, "n/a/w", {"g": 1}, held=held).feasible


def test_a_complementary_child_does_not_cost_its_sibling_what_it_has() -> None:
    """The seed's first case: n2 holds all CPUs, which n1 does not want; its GPUs stay with it."""
    parts = {"n1": {"p": "g"}, "n2": {"n21": {"q": "c"}, "n22": {"r": "g"}}}
    held = gpus("n/n1/p", 5) + gpus("n/n2/n22/r", 5) + [Held("cpus", "n/n2/n21/q", {"c": 10})]
    shares = cluster(parts, {"c": 10, "g": 10}, held)
    assert not reclaim(shares, "n/n1/p", {"g": 1}, held=held).feasible


def test_the_state_is_left_as_it_was() -> None:
    held = gpus("n/a/x", 10)
    shares = cluster(TWO, {"g": 10}, held, waiting={"n/b/y": {"g": 1}})
    before = shares.nodes()
    reclaim(shares, "n/b/y", {"g": 5}, held=held)
    preempt(shares, "n/a/x", {"g": 2}, priority=1, held=held)
    assert shares.nodes() == before


def test_a_search_that_ends_early_says_so() -> None:
    held = [Held(f"h{number}", "n/a/x", {"g": 1}, number) for number in range(30)]
    shares = cluster(TWO, {"g": 30}, held)
    giving = reclaim(shares, "n/b/y", {"g": 15}, held=held, steps=5)
    assert (giving.feasible, giving.complete) == (False, False)


def best_subset(root: Branch, state: oracle.State, claimant: str, task, held: list[Held]):
    """Try every subset, the smaller and the less valuable first, by the words of ``reclaim``."""
    lacking = {name: amount - state.free(name) for name, amount in task.items() if amount > state.free(name)}
    served = oracle.State(
        state.totals,
        {**state.usage, claimant: plus(state.usage[claimant], task)},
        {**state.tasks, claimant: task},
        supposed={name: PLENTY if name in lacking else state.free(name) for name in state.totals},
    )
    limits = oracle.shares(root, served)
    giving = [
        one
        for one in held
        if queue_of(one.leaf) != queue_of(claimant)
        and any(one.amounts.get(name, 0) for name in lacking)
        and is_above(one.leaf, claimant, limits, limits)
    ]
    for size in range(1, len(giving) + 1):
        found = [
            sum(exact(one.value) for one in chosen)
            for chosen in combinations(giving, size)
            if is_enough(chosen, lacking) and is_fair(root, served, claimant, limits, chosen)
        ]
        if found:
            return size, min(found)
    return None


def is_enough(chosen, lacking) -> bool:
    return all(sum(one.amounts.get(name, 0) for one in chosen) >= need for name, need in lacking.items())


def is_fair(root: Branch, served: oracle.State, claimant: str, limits, chosen) -> bool:
    usage = dict(served.usage)
    for one in chosen:
        usage[one.leaf] = plus(usage[one.leaf], one.amounts, -1)
    after = oracle.shares(root, replace(served, usage=usage))
    return all(is_above(one.leaf, claimant, after, limits) for one in chosen)


def is_above(leaf: str, claimant: str, shares, limits) -> bool:
    """Tell whether the branch of who gives has at least what the claimant's, beside it, has with the task."""
    pairs = zip(accumulate(leaf.split("/"), joined), accumulate(claimant.split("/"), joined), strict=False)
    theirs, ours = next(pair for pair in pairs if len(set(pair)) > 1)
    return shares[theirs].weighted >= limits[ours].weighted


def plus(amounts, more, sign: int = 1) -> dict[str, int]:
    return {name: amounts.get(name, 0) + sign * more.get(name, 0) for name in {*amounts, *more}}


def random_case(seed: int):
    rng = random.Random(seed)
    queues = [
        Branch(
            f"q{number}",
            tuple(Leaf(f"l{leaf}", rng.choice([1, 1, 2])) for leaf in range(rng.randint(1, 2))),
            rng.choice([1, 1, 2, 0.5]),
        )
        for number in range(rng.randint(2, 4))
    ]
    root = Branch("n", (Branch("deep", tuple(queues[:2]), rng.choice([1, 3])), *queues[2:]))
    leaves = [
        f"n/{'deep/' if at < 2 else ''}{queue.name}/{leaf.name}"
        for at, queue in enumerate(queues)
        for leaf in queue.parts
    ]
    classes = ["c", "g"][: rng.randint(1, 2)]
    held = [
        Held(f"h{number}", rng.choice(leaves), {name: rng.randint(0, 3) for name in classes}, rng.choice([0, 1, 1, 5]))
        for number in range(rng.randint(1, 8))
    ]
    usage = {leaf: dict.fromkeys(classes, 0) for leaf in leaves}
    for one in held:
        usage[one.leaf] = plus(usage[one.leaf], one.amounts)
    totals = {name: sum(amounts[name] for amounts in usage.values()) + rng.randint(0, 2) for name in classes}
    tasks = {leaf: {name: rng.randint(0, 2) for name in classes} for leaf in leaves if rng.random() < 0.6}
    task = {name: rng.randint(0, 4) for name in classes}
    return root, oracle.State(totals, usage, tasks), rng.choice(leaves), task, held


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_no_smaller_nor_cheaper_set_would_do(seed) -> None:
    root, state, claimant, task, held = random_case(seed)
    shares = FairShares(root, state.totals)
    for leaf, amounts in state.usage.items():
        shares.use(leaf, amounts)
    for leaf, wanted in state.tasks.items():
        shares.want(leaf, wanted)
    giving = reclaim(shares, claimant, task, held=held)
    assert giving.complete
    if all(amount <= state.free(name) for name, amount in task.items() if amount):
        assert (giving.feasible, giving.given_back) == (True, ())
        return
    expected = best_subset(root, state, claimant, task, held)
    found = (len(giving.given_back), sum(exact(one.value) for one in giving.given_back)) if giving.feasible else None
    assert found == expected


@given(st.integers(0, 10**6))
@settings(deadline=None)
def test_what_is_given_back_does_not_depend_on_the_order_of_the_list(seed) -> None:
    root, state, claimant, task, held = random_case(seed)
    shares = FairShares(root, state.totals)
    for leaf, amounts in state.usage.items():
        shares.use(leaf, amounts)
    first = reclaim(shares, claimant, task, held=held)
    random.Random(seed).shuffle(held)
    assert reclaim(shares, claimant, task, held=held) == first


ONE_QUEUE = {"q": {"ann": "g", "bob": "g", "eve": "g"}}


def own_queue(held: list[Held]) -> FairShares:
    return cluster(ONE_QUEUE, {"g": 10}, held)


def test_preemption_takes_the_lowest_priority_first() -> None:
    held = [*gpus("n/q/bob", 5, value=2), *gpus("n/q/eve", 5, value=1)]
    assert names(preempt(own_queue(held), "n/q/ann", {"g": 2}, priority=3, held=held)) == ["e0", "e1"]


def test_of_one_priority_preemption_takes_from_the_largest_share() -> None:
    held = [*gpus("n/q/bob", 3, value=1), *gpus("n/q/eve", 7, value=1)]
    assert names(preempt(own_queue(held), "n/q/ann", {"g": 2}, priority=3, held=held)) == ["e0", "e1"]


def test_equals_in_priority_give_only_down_to_an_equal_share() -> None:
    held = [*gpus("n/q/bob", 10, value=3)]
    shares = own_queue(held)
    assert len(preempt(shares, "n/q/ann", {"g": 5}, priority=3, held=held).given_back) == 5
    assert not preempt(shares, "n/q/ann", {"g": 6}, priority=3, held=held).feasible
    assert preempt(shares, "n/q/ann", {"g": 6}, priority=4, held=held).feasible


def test_what_is_more_important_or_elsewhere_is_left_alone() -> None:
    held = [*gpus("n/q/bob", 5, value=9), *gpus("n/other/x", 5, value=0)]
    shares = cluster({**ONE_QUEUE, "other": {"x": "g"}}, {"g": 10}, held)
    assert not preempt(shares, "n/q/ann", {"g": 1}, priority=3, held=held).feasible


def test_a_project_may_preempt_its_own_less_important_work_only() -> None:
    held = [*gpus("n/q/ann", 5, value=1), *gpus("n/q/ann", 5, value=3)]
    shares = own_queue(held)
    assert preempt(shares, "n/q/ann", {"g": 5}, priority=3, held=held).feasible
    assert not preempt(shares, "n/q/ann", {"g": 6}, priority=3, held=held).feasible


def test_preemption_keeps_what_turns_out_not_to_be_needed() -> None:
    held = [Held("small", "n/q/bob", {"g": 1}, 1), Held("big", "n/q/bob", {"g": 9}, 2)]
    assert names(preempt(own_queue(held), "n/q/ann", {"g": 9}, priority=3, held=held)) == ["big"]
