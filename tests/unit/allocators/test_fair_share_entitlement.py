"""The entitlements of queues: vectors computed by hand, and random trees compared with trying every water level."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch, Leaf
from tests.unit.allocators.fair_share_entitlement_oracle import entitlements
from tests.unit.allocators.fair_share_trees import WEIGHTS, leaf_paths, random_promises

PLENTY = 10**9


def queue(name: str, weight=1, **capacity: int) -> Branch:
    """Return a queue with one leaf, with amounts of GPUs."""
    said = {promise: {"g": amount} for promise, amount in capacity.items()}
    return Branch(name, (Leaf("x"),), weight, **said)


def entitled(*queues: Branch, used: dict[str, int], waiting: str) -> list[float]:
    """Return each queue's entitlement to 100 GPUs if the named ones wait for more."""
    shares = FairShares(
        Branch("n", queues),
        {"g": 100},
        usage={f"n/{q}/x": {"g": n} for q, n in used.items()},
        tasks={f"n/{name}/x": {"g": 1} for name in waiting},
    )
    entitlements_ = shares.entitlements()
    return [float(entitlements_.amounts(f"n/{branch.name}")["g"]) for branch in queues]


VECTORS = {
    "QC-01 by weight": ([queue("a"), queue("b")], {"a": 60}, "ab", [50, 50]),
    "QC-02 a weight of three": ([queue("a"), queue("b", 3)], {"a": 60}, "ab", [25, 75]),
    "QC-03 what is left is borrowed": ([queue("a"), queue("b")], {"a": 60}, "a", [100, 0]),
    "QC-04 who uses wants more": ([queue("a"), queue("b"), queue("c")], {"b": 2}, "a", [50, 50, 0]),
    "QC-05 a guarantee above the weight": ([queue("a", guarantee=70), queue("b")], {}, "ab", [70, 30]),
    "QC-06 a guarantee not used": ([queue("a", guarantee=70), queue("b")], {}, "b", [0, 100]),
    "QC-07 a guarantee below the weight": ([queue("a", guarantee=30), queue("b")], {}, "ab", [50, 50]),
    "QC-08 a limit": ([queue("a", limit=20), queue("b")], {}, "ab", [20, 80]),
    "QC-09 deserved, not the weight": ([queue("a", 9, deserved=10), queue("b")], {}, "ab", [10, 90]),
    "QC-10 the rest by weight": ([queue("a", deserved=40), queue("b"), queue("c", 2)], {}, "abc", [40, 20, 40]),
    "QC-11 promised too much": ([queue("a", deserved=60), queue("b", deserved=60)], {}, "ab", [60, 60]),
}


@pytest.mark.parametrize(("queues", "used", "waiting", "expected"), VECTORS.values(), ids=VECTORS)
def test_what_queues_are_entitled_to(queues, used, waiting, expected) -> None:
    assert entitled(*queues, used=used, waiting=waiting) == expected


def random_queues(rng: random.Random, depth: int, name: str = "n") -> Branch:
    parts: list[Branch | Leaf] = []
    for number in range(rng.randint(1, 4)):
        if depth and rng.random() < 0.7:
            parts.append(random_queues(rng, depth - 1, f"b{number}"))
        else:
            parts.append(Leaf(f"l{number}", rng.choice(WEIGHTS)))
    return Branch(name, tuple(parts), rng.choice(WEIGHTS), **random_promises(rng, "g", most=60, share=0.3))


@given(st.integers(0, 10**9))
@example(219)
def test_the_water_level_is_the_one_that_trying_finds(seed) -> None:
    rng = random.Random(seed)
    root, total = random_queues(rng, 3), rng.randint(0, 100)
    used = {leaf: rng.randint(0, 30) for leaf in leaf_paths(root)}
    used = {leaf: amount * rng.randint(0, 1) for leaf, amount in used.items()}
    tasks = {leaf: {"g": rng.choice([0, 0, 3])} for leaf in used}
    usage = {leaf: {"g": amount} for leaf, amount in used.items()}
    shares = FairShares(root, {"g": total}, usage=usage, tasks=tasks)
    found = shares.entitlements()
    waiting = {leaf: PLENTY for leaf in used if used[leaf] or tasks[leaf]["g"]}
    expected = entitlements(root, total, used, waiting, "g")
    assert {path: found.amounts(path)["g"] for path in shares._nodes} == expected
