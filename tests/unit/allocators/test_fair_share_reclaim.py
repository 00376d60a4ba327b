"""Giving back: reclaim across queues compared with every possible subset, and preemption within a queue."""

import random
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators import exact
from placement.allocators.fair_share import fewest
from placement.allocators.fair_share.gate import is_next, overdraft
from placement.allocators.fair_share.reclaim import Held, queue_of, reclaim
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch, Leaf, joined
from tests.examples import examples
from tests.unit.allocators import fair_share_oracle as oracle
from tests.unit.allocators.fair_share_entitlement_oracle import amount_in, entitlements
from tests.unit.allocators.fair_share_trees import limits_of, plus, random_promises, tree


def cluster(parts, totals, held: list[Held], waiting: Mapping[str, Mapping[str, int]] | None = None) -> FairShares:
    return FairShares(tree("n", parts), totals, usage=usage_of(held), tasks=waiting or {})


def usage_of(held: list[Held]) -> dict[str, dict[str, int]]:
    usage: dict[str, dict[str, int]] = {}
    for holding in held:
        usage[holding.leaf] = plus(usage.get(holding.leaf, {}), holding.amounts)
    return usage


def shares_of(root: Branch, state: oracle.State) -> FairShares:
    return FairShares(root, state.totals, usage=state.usage, tasks=state.tasks)


def names(giving) -> list[str]:
    return [given.name for given in giving.given_back]


def gpus(leaf: str, count: int, *, each: int = 1, value=0) -> list[Held]:
    return [Held(f"{leaf[-1]}{number}", leaf, {"g": each}, value) for number in range(count)]


TWO = {"a": {"x": "g"}, "b": {"y": "g"}}


def test_a_claimant_gets_its_half_and_no_more() -> None:
    """In a full cluster, where Volcano finds nobody to give back (its issue 1748)."""
    held = gpus("n/a/x", 10)
    shares = cluster(TWO, {"g": 10}, held)
    half = reclaim(shares, "n/b/y", {"g": 5}, held=held)
    assert (half.feasible, len(half.given_back), half.lacking, half.complete) == (True, 5, {"g": 5}, True)
    more = reclaim(shares, "n/b/y", {"g": 6}, held=held)
    assert (more.feasible, more.given_back, more.lacking, more.complete) == (False, (), {"g": 6}, True)


def test_of_equals_the_queue_that_has_most_gives() -> None:
    parts = {"a": {"x": "g"}, "b": {"y": "g"}, "c": {"z": "g"}}
    held = gpus("n/a/x", 4) + gpus("n/b/y", 8)
    assert names(reclaim(cluster(parts, {"g": 12}, held), "n/c/z", {"g": 2}, held=held)) == ["y0", "y1"]


def test_the_state_is_left_as_it_was() -> None:
    held = gpus("n/a/x", 10)
    shares = cluster(TWO, {"g": 10}, held, waiting={"n/b/y": {"g": 1}})
    before = shares.nodes()
    reclaim(shares, "n/b/y", {"g": 5}, held=held)
    reclaim(shares, "n/a/x", {"g": 2}, priority=1, held=held)
    assert shares.nodes() == before


def test_where_not_all_choices_were_looked_at_the_answer_says_so() -> None:
    held = [Held(f"h{number}", "n/a/x", {"g": 3 + number % 5, "c": 1 + number % 7}, number) for number in range(30)]
    totals = {name: sum(holding.amounts[name] for holding in held) for name in "gc"}
    shares = cluster(TWO, totals, held)
    giving = reclaim(shares, "n/b/y", {"g": 40, "c": 41}, held=held, steps=5)
    assert (giving.feasible, giving.complete) == (True, False)
    assert reclaim(shares, "n/b/y", {"g": 40, "c": 41}, held=held, steps=10**6).complete


def best_subsets(root: Branch, state: oracle.State, claimant: str, task, held: list[Held]) -> list[tuple[Held, ...]]:
    """Try every subset, the smaller and less valuable first, by the definition of ``reclaim``; return the best."""
    model = Model(root, state, claimant, task)
    giving = [holding for holding in held if holding.leaf != claimant and model.is_entitled(holding.leaf)]
    for size in range(1, len(giving) + 1):
        found = [
            chosen for chosen in combinations(giving, size) if model.is_enough(chosen) and model.all_keep_theirs(chosen)
        ]
        if found:
            return [chosen for chosen in found if worth(chosen) == min(map(worth, found))]
    return []


def worth(given_back) -> Fraction:
    return sum((exact(given.value) for given in given_back), Fraction(0))


def check_best(root: Branch, state: oracle.State, claimant: str, task, held: list[Held], giving) -> None:
    """Check that a choice is one of the best, or that the best would not be for the claimant to take."""
    best = best_subsets(root, state, claimant, task, held)
    if giving.feasible:
        assert (len(giving.given_back), worth(giving.given_back)) == (len(best[0]), worth(best[0]))
        assert is_for(root, state, claimant, task, giving.given_back)
    else:
        assert not best or not all(is_for(root, state, claimant, task, chosen) for chosen in best)


def is_for(root: Branch, state: oracle.State, claimant: str, task, given_back) -> bool:
    """Return whether the claimant is next and passes both gates once this is given back and wanted again."""
    usage, tasks = {**state.usage}, {leaf: task for leaf, task in state.tasks.items() if any(task.values())}
    for holding in given_back:
        usage[holding.leaf] = plus(usage[holding.leaf], holding.amounts, -1)
        tasks.setdefault(holding.leaf, holding.amounts)
    shares = FairShares(root, state.totals, usage=usage, tasks=tasks)
    if not is_next(shares, claimant, {**tasks, claimant: task}):
        return False
    shares.use(claimant, plus(usage[claimant], task))
    return overdraft(shares, {claimant: task}) is None


class Model:
    """What each queue must keep, by the definition in the documentation."""

    def __init__(self, root: Branch, state: oracle.State, claimant: str, task) -> None:
        self.root, self.state, self.claimant = root, state, claimant
        self.task = {name: amount for name, amount in task.items() if amount}
        self.lacking = [name for name in self.task if not self.fits(name, ())]
        self.entitled = {name: self.entitlements(name) for name in self.lacking}

    def fits(self, name: str, given_back) -> bool:
        """Return whether totals and the limits above the claimant leave enough of a class."""
        bounds = [("n", self.state.totals[name])] + [
            (path, limit[name])
            for path, limit in limits_of(self.root).items()
            if self.claimant.startswith(f"{path}/") and name in limit
        ]
        return all(self.held(name, path, given_back) + self.task[name] <= most for path, most in bounds)

    def held(self, name: str, path: str, given_back=()) -> int:
        back = sum(one.amounts.get(name, 0) for one in given_back if f"{one.leaf}/".startswith(f"{path}/"))
        return amount_in(self.root, path, self.used(name)) - back

    def used(self, name: str) -> dict[str, int]:
        return {leaf: amounts.get(name, 0) for leaf, amounts in self.state.usage.items()}

    def entitlements(self, name: str):
        used = self.used(name)
        waits = {leaf for leaf, task in self.state.tasks.items() if task.get(name)} | {self.claimant}
        waiting = {leaf: 10**9 for leaf in used if used[leaf] or leaf in waits}
        return entitlements(self.root, self.state.totals[name], used, waiting, name)

    def parting(self, leaf: str) -> tuple[str, str]:
        pairs = zip(accumulate(leaf.split("/"), joined), accumulate(self.claimant.split("/"), joined), strict=False)
        return next(pair for pair in pairs if len(set(pair)) > 1)

    def is_entitled(self, leaf: str) -> bool:
        _theirs, parted = self.parting(leaf)
        return all(
            self.held(name, ours) + self.task[name] <= self.entitled[name][ours]
            for ours in accumulate(self.claimant.split("/"), joined)
            if ours.startswith(parted)
            for name in self.lacking
        )

    def is_enough(self, given_back) -> bool:
        useless = [one for one in given_back if not any(one.amounts.get(name) for name in self.lacking)]
        return not useless and all(self.fits(name, given_back) for name in self.lacking)

    def all_keep_theirs(self, given_back, is_free=lambda given: False) -> bool:
        """Return whether each node from the parting down to the giving leaf keeps what it is entitled to."""
        return all(
            self.held(name, path, given_back) >= self.entitled[name][path]
            for given in given_back
            if not is_free(given)
            for path in accumulate(given.leaf.split("/"), joined)
            if path.startswith(self.parting(given.leaf)[0])
            for name in self.lacking
            if given.amounts.get(name)
        )


def promises(rng: random.Random) -> dict[str, dict[str, int]]:
    return random_promises(rng, "cg", most=12, share=0.2)


def random_case(seed: int):
    rng = random.Random(seed)
    queues = [
        Branch(
            f"q{number}",
            tuple(Leaf(f"l{leaf}", rng.choice([1, 1, 2])) for leaf in range(rng.randint(1, 2))),
            rng.choice([1, 1, 2, 0.5]),
            **promises(rng),
        )
        for number in range(rng.randint(2, 4))
    ]
    root = Branch("n", (Branch("deep", tuple(queues[:2]), rng.choice([1, 3]), **promises(rng)), *queues[2:]))
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
    usage = {leaf: dict.fromkeys(classes, 0) for leaf in leaves} | usage_of(held)
    totals = {name: sum(amounts[name] for amounts in usage.values()) + rng.randint(0, 2) for name in classes}
    tasks = {leaf: {name: rng.randint(0, 2) for name in classes} for leaf in leaves if rng.random() < 0.6}
    task = {name: rng.randint(0, 4) for name in classes}
    return root, oracle.State(totals, usage, tasks), rng.choice(leaves), task, held


@examples(60)
@given(st.integers(0, 10**9))
def test_no_smaller_nor_cheaper_set_would_do(seed) -> None:
    root, state, claimant, task, held = random_case(seed)
    giving = reclaim(shares_of(root, state), claimant, task, held=held)
    assert giving.complete
    if not Model(root, state, claimant, task).lacking:
        assert (giving.feasible, giving.given_back) == (True, ())
        return
    check_best(root, state, claimant, task, held, giving)


@examples(60)
@given(st.integers(0, 10**9))
def test_what_is_found_among_many_is_the_best_where_it_is_called_complete(seed) -> None:
    """The same cases, searched as if there were too many choices to examine all."""
    root, state, claimant, task, held = random_case(seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fewest, "MAX_EXACT", 0)
        giving = reclaim(shares_of(root, state), claimant, task, held=held)
    if Model(root, state, claimant, task).lacking:
        best = best_subsets(root, state, claimant, task, held)
        if giving.complete:
            check_best(root, state, claimant, task, held, giving)
        elif giving.feasible:
            assert (len(giving.given_back), worth(giving.given_back)) >= (len(best[0]), worth(best[0]))


@given(st.integers(0, 10**6))
def test_what_is_given_back_does_not_depend_on_the_order_of_the_list(seed) -> None:
    root, state, claimant, task, held = random_case(seed)
    shares = shares_of(root, state)
    first = reclaim(shares, claimant, task, held=held)
    random.Random(seed).shuffle(held)
    assert reclaim(shares, claimant, task, held=held) == first


def test_of_one_priority_preemption_takes_from_the_largest_share() -> None:
    held = [*gpus("n/q/bob", 3, value=1), *gpus("n/q/eve", 7, value=1)]
    shares = cluster({"q": {"ann": "g", "bob": "g", "eve": "g"}}, {"g": 10}, held)
    assert names(reclaim(shares, "n/q/ann", {"g": 2}, priority=3, held=held)) == ["e0", "e1"]


def best_preemption(root: Branch, state: oracle.State, claimant: str, task, *, priority: int, held: list[Held]):
    """Try every subset of those that may go: lowest maximal priority first, then the fewest, then the lowest values."""
    model = Model(root, state, claimant, task)

    def is_free(holding: Held) -> bool:
        return queue_of(holding.leaf) == queue_of(claimant) and holding.value < priority

    def is_willing(holding: Held) -> bool:
        may_give = holding.value <= priority and holding.leaf != claimant and model.is_entitled(holding.leaf)
        return is_free(holding) or may_give

    willing = [*filter(is_willing, held)]
    return min(
        [
            (max(given.value for given in chosen), len(chosen), sum(given.value for given in chosen))
            for size in range(1, len(willing) + 1)
            for chosen in combinations(willing, size)
            if model.is_enough(chosen) and model.all_keep_theirs(chosen, is_free)
        ],
        default=None,
    )


@examples(60)
@given(st.integers(0, 10**9))
def test_no_preemption_would_be_less_important(seed) -> None:
    root, state, claimant, task, held = random_case(seed)
    if not Model(root, state, claimant, task).lacking:
        return
    giving = reclaim(shares_of(root, state), claimant, task, priority=1, held=held)
    values = [given.value for given in giving.given_back]
    expected = best_preemption(root, state, claimant, task, priority=1, held=held)
    assert ((max(values), len(values), sum(values)) if giving.feasible else None) == expected
