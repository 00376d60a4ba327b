"""Fair shares against their definition in exact fractions, over random trees, states and sequences of events."""

import random
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.fair_share.order import Task, fill, order
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import COMPARED, PRECISION, SCALE, Branch, Leaf
from tests.examples import examples
from tests.unit.allocators import fair_share_oracle as oracle
from tests.unit.allocators.fair_share_trees import (
    leaf_paths,
    limits_of,
    random_amounts,
    random_tasks,
    random_totals,
    random_tree,
    random_usage,
)

seeds = st.integers(0, 10**9)
CLOSE = Fraction(1, 1 << (PRECISION - 32))


def made(root: Branch, state: oracle.State) -> FairShares:
    return FairShares(root, state.totals, usage=state.usage, tasks=state.tasks)


def numbers(shares: FairShares) -> dict[str, tuple[object, ...]]:
    """Return everything known of the nodes, to the last bit."""
    shares.first()
    nodes = shares._nodes
    return {
        path: (node.vector, node.share, node.weighted, node.is_blocked, node.ranked()) for path, node in nodes.items()
    }


def check(root: Branch, shares: FairShares, state: oracle.State) -> None:
    expected = oracle.shares(root, state)
    for path, (vector, share, weighted, blocked, _best) in numbers(shares).items():
        exact = expected[path]
        assert blocked == exact.is_blocked, path
        assert abs(Fraction(share, SCALE) - exact.share) < CLOSE, path
        assert abs(Fraction(weighted, SCALE) - exact.weighted) < 10**6 * CLOSE, path
        for part, name in zip(vector, shares.classes, strict=True):
            assert abs(Fraction(part, SCALE) - exact.vector[name]) < CLOSE, (path, name)
    assert [turn.leaf.path for turn in order(shares, waiting(state))] == oracle.order(root, state)
    assert shares.first() == oracle.next_leaf(root, state)


def waiting(state: oracle.State) -> list[str]:
    return [path for path, task in state.tasks.items() if any(task.values())]


def random_state(rng: random.Random) -> tuple[Branch, oracle.State]:
    root, totals = random_tree(rng, limited=rng.random() < 0.5), random_totals(rng)
    usage, tasks = random_usage(rng, root, totals), random_tasks(rng, root, totals)
    return root, oracle.State(totals, usage, tasks, limits_of(root))


@examples(60)
@given(seeds)
def test_shares_and_order_are_those_of_the_definition(seed) -> None:
    root, state = random_state(random.Random(seed))
    check(root, made(root, state), state)


@examples(22)
@given(seeds)
def test_after_any_events_everything_equals_the_full_recomputation(seed) -> None:
    """Equal to the last bit to a newly built tree; compared with the definition in order and approximate value."""
    rng = random.Random(seed)
    root, state = random_state(rng)
    shares = made(root, state)
    leaves = list(leaf_paths(root))
    for _step in range(rng.randint(1, 12)):
        event(rng, shares, state, leaves)
        if rng.random() < 0.7:
            assert numbers(shares) == numbers(made(root, state))
            check(root, shares, state)


def event(rng: random.Random, shares: FairShares, state: oracle.State, leaves: list[str]) -> None:
    if not leaves:
        return
    if rng.random() < 0.6:
        leaf = rng.choice(leaves)
        state.usage[leaf] = random_amounts(rng, state.totals, 6)
        shares.use(leaf, state.usage[leaf])
    else:
        leaf = rng.choice(leaves)
        others = [*state.tasks.values(), random_amounts(rng, state.totals, 64)]
        state.tasks = {**state.tasks, leaf: rng.choice(others)}
        shares.want(leaf, state.tasks[leaf])


@examples(16)
@given(seeds)
def test_filling_gives_task_by_task_what_the_definition_gives(seed) -> None:
    rng = random.Random(seed)
    root, totals = random_tree(rng, limited=rng.random() < 0.5), random_totals(rng)
    usage = random_usage(rng, root, totals) if rng.random() < 0.5 else {}
    state = oracle.State(totals, usage, random_tasks(rng, root, totals), limits_of(root))
    shares = made(root, state)
    result = fill(shares, {path: [Task(task, None)] for path, task in state.tasks.items()})
    assert list(result.order) == oracle.fill(root, state)
    assert result.complete


@given(seeds)
def test_filling_never_gives_more_than_there_is(seed) -> None:
    rng = random.Random(seed)
    root, totals = random_tree(rng), random_totals(rng)
    shares = FairShares(root, totals)
    pending = {
        path: [Task(random_amounts(rng, totals, 4), rng.choice([None, 1, 3])) for _entry in range(rng.randint(0, 3))]
        for path in leaf_paths(root)
    }
    result = fill(shares, pending)
    for name, total in totals.items():
        assert sum(given.get(name, 0) for given in result.granted.values()) <= total
    for path, served in result.served.items():
        wanted = [
            sum(times * task.amounts.get(name, 0) for times, task in zip(served, pending[path], strict=True))
            for name in shares.classes
        ]
        assert list(result.granted[path].values()) == wanted


@given(seeds)
def test_one_class_without_end_is_divided_by_the_weights(seed) -> None:
    """HD-21: weighted max-min fairness on every level, to within one task for each leaf."""
    rng = random.Random(seed)
    parts = tuple(
        Branch(
            f"b{number}",
            tuple(Leaf(f"l{leaf}", rng.randint(1, 4)) for leaf in range(rng.randint(1, 3))),
            rng.randint(1, 4),
        )
        for number in range(rng.randint(1, 3))
    )
    root, total = Branch("root", parts), rng.randint(1, 120)
    result = fill(FairShares(root, {"cpu": total}), {path: [Task({"cpu": 1}, None)] for path in leaf_paths(root)})
    got = {path: amounts["cpu"] for path, amounts in result.granted.items()}
    for part in parts:
        # In a branch the smallest share counts, hence one task for each of its leaves, plus the one being given.
        assert_level([(sum(got[f"root/{part.name}/{leaf.name}"] for leaf in part.parts), part) for part in parts], 4)
        assert_level([(got[f"root/{part.name}/{leaf.name}"], leaf) for leaf in part.parts], 1)


def assert_level(amounts: list[tuple[int, Branch | Leaf]], tasks: int) -> None:
    """Check that nobody has more for its weight than another, up to this many tasks."""
    for amount, part in amounts:
        for other, beside in amounts:
            assert Fraction(amount - tasks, part.weight) <= Fraction(other, beside.weight)


def test_equal_shares_are_equal_however_they_came_about() -> None:
    """Three times a tenth is three tenths, also below branches that reach it by different sums."""
    parts = (
        Branch("a", (Leaf("x", 3),)),
        Branch("b", (Leaf("x"), Leaf("y"), Leaf("z"))),
        Branch("c", (Leaf("x", 0.1), Leaf("y", Fraction(1, 5)))),
    )
    shares = FairShares(Branch("root", parts), {"cpu": 30, "gpu": 7})
    for path in leaf_paths(Branch("root", parts)):
        shares.want(path, {"cpu": 1})
    used = {"a/x": 3, "b/x": 1, "b/y": 1, "b/z": 1, "c/x": 1, "c/y": 2}
    for path, amount in used.items():
        shares.use(f"root/{path}", {"cpu": amount})
    levels = {shares.rank(f"root/{path}")[0][0] for path in used}
    assert levels == {round(Fraction(1 << COMPARED, 10))}
