"""Churn: tasks of 1 to 64 units end at random and what is freed is given out again; nobody below their share starves.

No order can help a task that is larger than what is ever free at once: it waits forever unless somebody gives something
back (reclaim). So a leaf is watched while it waits, its task fits, and with the task it still has no more than its
*entitlement*: on each level its weight relative to those siblings in which somebody waits. Then the **lag**, the number
of tasks that others are given in the meantime, never exceeds one turnover, the number of tasks that run at once.
"""

import random
from collections.abc import Iterator
from fractions import Fraction

import pytest

from placement.allocators.entries import exact
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch, Leaf, joined, leaf_paths
from tests.unit.allocators import fair_share_oracle as oracle
from tests.unit.allocators.test_fair_share_properties import numbers

CLASSES = ("cpu", "gpu", "memory")
SIZES = (1, 1, 2, 3, 4, 8, 16, 32, 64)
EVENTS = 4_000
"""For each depth from 1 to 5: 20,000 in all."""


def random_tree(rng: random.Random, depth: int, name: str = "root", weight=1) -> Branch:
    """Return a tree of this depth, with at least one branch on each level."""
    parts: list[Branch | Leaf] = []
    for number in range(rng.randint(2, 4)):
        part_weight = rng.choice((1, 1, 2, 3, 0.5, 5))
        if depth > 1 and (number == 0 or rng.random() < 0.4):
            parts.append(random_tree(rng, depth - 1, f"b{number}", part_weight))
        else:
            parts.append(Leaf(f"l{number}", part_weight))
    return Branch(name, tuple(parts), weight)


def entitlements(root: Branch, waiting: set[str]) -> dict[str, Fraction]:
    """Return each waiting leaf's part of the total, by its weight relative to its siblings that wait too."""
    active_paths = {
        "/".join(parts[:end]) for parts in (leaf.split("/") for leaf in waiting) for end in range(len(parts) + 1)
    }

    def below(part: Branch | Leaf, path: str, whole: Fraction) -> Iterator[tuple[str, Fraction]]:
        if isinstance(part, Leaf):
            yield path, whole
            return
        paths = {inner.name: joined(path, inner.name) for inner in part.parts}
        active = [inner for inner in part.parts if paths[inner.name] in active_paths]
        together = sum(exact(inner.weight) for inner in active)
        for inner in active:
            yield from below(inner, paths[inner.name], whole * exact(inner.weight) / together)

    return dict(below(root, root.name, Fraction(1)))


class Churn:
    """A cluster in which every waiting task that fits is served at once."""

    def __init__(self, depth: int) -> None:
        self.rng = random.Random(depth)
        self.root = random_tree(self.rng, depth)
        self.leaves = list(leaf_paths(self.root))
        self.totals = {name: self.rng.randint(200, 900) for name in CLASSES}
        self.tasks = {leaf: self.task() for leaf in self.leaves}
        self.used = {leaf: dict.fromkeys(CLASSES, 0) for leaf in self.leaves}
        self.running: list[str] = []
        self.waiting = set(self.leaves)
        self.entitled = entitlements(self.root, self.waiting)
        self.lag = dict.fromkeys(self.leaves, 0)
        self.worst = self.turnover = 0
        self.shares = FairShares(self.root, self.totals, tasks=self.tasks)
        self.serve()

    def task(self) -> dict[str, int]:
        return {name: self.rng.choice(SIZES) for name in self.rng.sample(CLASSES, self.rng.randint(1, 3))}

    def serve(self) -> None:
        while (leaf := self.shares.first()) is not None:
            self.watch(leaf)
            self.change(leaf, 1)
            self.running.append(leaf)
        self.turnover = max(self.turnover, len(self.running))

    def watch(self, served: str) -> None:
        """Count how often each leaf is passed over."""
        free = self.shares.free()
        self.lag[served] = 0
        for leaf in self.waiting - {served}:
            if not self.is_below(leaf):
                self.lag[leaf] = 0
            elif all(amount <= free[name] for name, amount in self.tasks[leaf].items()):
                self.lag[leaf] += 1
                self.worst = max(self.worst, self.lag[leaf])

    def is_below(self, leaf: str) -> bool:
        """Return whether a leaf, with its task, has at most its part of each class; in integers, because it is hot."""
        part, whole = self.entitled[leaf].as_integer_ratio()
        used, task = self.used[leaf], self.tasks[leaf]
        return all((used[name] + task.get(name, 0)) * whole <= part * self.totals[name] for name in CLASSES)

    def change(self, leaf: str, sign: int) -> None:
        for name, amount in self.tasks[leaf].items():
            self.used[leaf][name] += sign * amount
        self.shares.use(leaf, self.used[leaf])

    def event(self) -> None:
        """End a task, or let a leaf stop waiting or wait again."""
        if self.rng.random() < 0.1:
            leaf = self.rng.choice(self.leaves)
            self.waiting ^= {leaf}
            self.shares.want(leaf, self.tasks[leaf] if leaf in self.waiting else {})
            self.entitled = entitlements(self.root, self.waiting)
            self.lag[leaf] = 0
        elif self.running:
            number = self.rng.randrange(len(self.running))
            self.running[number], self.running[-1] = self.running[-1], self.running[number]
            self.change(self.running.pop(), -1)
        self.serve()


@pytest.mark.parametrize(
    "depth", [1, 2, 3, pytest.param(4, marks=pytest.mark.nightly), pytest.param(5, marks=pytest.mark.nightly)]
)
def test_nobody_below_its_entitlement_waits_longer_than_one_turnover(depth) -> None:
    churn = Churn(depth)
    for number in range(EVENTS):
        churn.event()
        if number % 200 == 0:
            waiting = {leaf: churn.tasks[leaf] for leaf in churn.waiting}
            anew = FairShares(churn.root, churn.totals, usage=churn.used, tasks=waiting)
            assert numbers(churn.shares) == numbers(anew)
            state = oracle.State(churn.totals, churn.used, waiting)
            assert all(churn.shares.node(path).is_blocked for path in oracle.order(churn.root, state))
    assert 0 < churn.worst <= churn.turnover
