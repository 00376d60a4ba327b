"""Order, filling, reclaiming and both gates say the same, also where queues are promised amounts: one cloud's life.

Everybody waits without end for a task of its own. Whoever lacks what it is entitled to may reclaim; what is given back
is wanted again; what is free is filled. This must come to rest.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.fair_share.gate import Competitor, decide, overdraft
from placement.allocators.fair_share.order import Task, fill, order
from placement.allocators.fair_share.reclaim import Held, reclaim
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch, Leaf
from tests.examples import examples
from tests.unit.allocators.fair_share_trees import leaf_paths, plus, random_promises

MOST_ROUNDS = 200


class Life:
    """A tree, the things that its leaves hold, and the task that each waits for without end."""

    def __init__(
        self, root: Branch, totals: dict[str, int], tasks: dict[str, dict[str, int]], held: list[Held]
    ) -> None:
        self.root, self.totals, self.tasks, self.held = root, totals, tasks, held
        self._made = 0

    def shares(self) -> FairShares:
        usage: dict[str, dict[str, int]] = {}
        for held in self.held:
            usage[held.leaf] = plus(usage.get(held.leaf, {}), held.amounts)
        return FairShares(self.root, self.totals, usage=usage, tasks=self.tasks)

    def hold(self, leaf: str) -> None:
        self._made += 1
        self.held.append(Held(f"made{self._made}", leaf, self.tasks[leaf]))

    def fill(self) -> bool:
        """Give what is free to whoever is next; return whether anybody got something."""
        served = fill(self.shares(), {leaf: [Task(task, None)] for leaf, task in self.tasks.items()}, steps=1000).order
        for leaf in served:
            self.hold(leaf)
        return bool(served)

    def reclaim(self) -> bool:
        """Let the first whom others owe something take it; check that all agree."""
        for leaf, task in self.tasks.items():
            giving = reclaim(self.shares(), leaf, task, held=self.held)
            if giving.feasible and giving.given_back:
                gone = {given.name for given in giving.given_back}
                self.held = [held for held in self.held if held.name not in gone]
                self.check_next(leaf)
                self.hold(leaf)
                assert overdraft(self.shares(), {leaf: task}) is None
                return True
        return False

    def check_next(self, leaf: str) -> None:
        others = [Competitor(other, Task(task, None)) for other, task in self.tasks.items() if other != leaf]
        assert order(self.shares(), self.tasks)[0].leaf.path == leaf
        assert self.shares().first() == leaf
        assert decide(self.shares(), Competitor(leaf, Task(self.tasks[leaf])), competitors=others).reason == "fair"

    def comes_to_rest(self) -> bool:
        return any(not (self.fill() | self.reclaim()) for _round in range(MOST_ROUNDS))

    def held_by(self, leaf: str, name: str = "g") -> int:
        return sum(held.amounts.get(name, 0) for held in self.held if held.leaf == leaf)


def random_branch(rng: random.Random, name: str, *, depth: int, total: int) -> Branch:
    count = rng.randint(1, 3)
    parts: list[Branch | Leaf] = [Leaf(f"l{number}", rng.choice([1, 1, 3])) for number in range(count)]
    if depth:
        parts = [random_branch(rng, f"b{number}", depth=depth - 1, total=total // 2) for number in range(count)]
    return Branch(name, tuple(parts), rng.choice([1, 1, 3]), **random_promises(rng, "g", most=total, share=0.4))


def random_life(seed: int, classes: str) -> Life:
    rng = random.Random(seed)
    total = rng.choice([6, 10, 24, 41])
    depth = rng.randint(0, 2)
    root = Branch("n", tuple(random_branch(rng, f"q{number}", depth=depth, total=total) for number in range(2 + depth)))
    leaves = list(leaf_paths(root))
    size = rng.choice([1, 1, 3])
    tasks = {
        leaf: {name: rng.randint(1, size) for name in rng.sample(classes, rng.randint(1, len(classes)))}
        for leaf in leaves
    }
    held, left = [], dict.fromkeys(classes, total)
    for number in range(rng.randint(0, 60)):
        leaf = rng.choice(leaves[: rng.randint(1, len(leaves))])
        if all(amount <= left[name] for name, amount in tasks[leaf].items()):
            held.append(Held(f"h{number}", leaf, tasks[leaf], rng.randint(0, 3)))
            left = plus(left, tasks[leaf], -1)
    return Life(root, dict.fromkeys(classes, total), tasks, held)


@examples(8)
@given(st.integers(0, 10**9))
@pytest.mark.parametrize("classes", ["g", "cg"])
def test_who_takes_is_next_and_passes_both_gates_and_it_ends(classes: str, seed: int) -> None:
    assert random_life(seed, classes).comes_to_rest()


PA, PB = "n/a/pa", "n/b/pb"


def two(total: int, *, pa: int, pb: int, **promised: dict[str, int]) -> Life:
    """Two queues of equal weight, with promises to that of pb, in which pa and pb hold single GPUs and want more."""
    root = Branch("n", (Branch("a", (Leaf("pa"),)), Branch("b", (Leaf("pb"),), **promised)))
    held = [Held(f"{leaf}{number}", leaf, {"g": 1}) for leaf, count in ((PA, pa), (PB, pb)) for number in range(count)]
    return Life(root, {"g": total}, {PA: {"g": 1}, PB: {"g": 1}}, held)


PROMISED = {
    "deserved below the weight": ({"deserved": {"g": 5}}, (15, 5)),
    "a guarantee above the weight": ({"guarantee": {"g": 16}}, (4, 16)),
    "a guarantee below the weight": ({"guarantee": {"g": 2}}, (10, 10)),
    "a limit": ({"limit": {"g": 7}}, (13, 7)),
    "nearly all is deserved by one": ({"deserved": {"g": 19}}, (1, 19)),
    "all is deserved by one": ({"deserved": {"g": 20}}, (0, 20)),
    "nothing is deserved by one": ({"deserved": {"g": 0}}, (20, 0)),
}


@pytest.mark.parametrize(("promised", "expected"), PROMISED.values(), ids=PROMISED)
@pytest.mark.parametrize(("pa", "pb"), [(20, 0), (0, 20), (0, 0)])
def test_filling_and_reclaiming_lead_to_what_each_is_entitled_to(promised, expected, pa: int, pb: int) -> None:
    pb = min(pb, promised.get("limit", {}).get("g", 20))
    life = two(20, pa=pa, pb=pb, **promised)
    assert life.comes_to_rest()
    assert (life.held_by(PA), life.held_by(PB)) == expected
