"""The gate for claims: refuses only if others, who have less, need what the claim would take."""

import random
from copy import deepcopy
from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.allocators.fair_share.gate import Competitor, decide, decide_each
from placement.allocators.fair_share.order import Task
from placement.allocators.fair_share.state import FairShares
from placement.allocators.fair_share.tree import Branch
from tests.unit.allocators import fair_share_oracle as oracle
from tests.unit.allocators.fair_share_trees import (
    leaf_paths,
    random_tasks,
    random_totals,
    random_tree,
    random_usage,
    tree,
)

PARTS = {"eng": {"ann": "g", "eve": "g"}, "sci": {"bob": "g"}}


def cluster(**used: int) -> FairShares:
    shares = FairShares(tree("n", PARTS), {"c": 100, "g": 10})
    paths = {"ann": "n/eng/ann", "eve": "n/eng/eve", "bob": "n/sci/bob"}
    for name, amount in used.items():
        shares.use(paths[name], {"g": amount})
    return shares


def ann(amount: int, count: int = 1) -> Competitor:
    return Competitor("n/eng/ann", Task({"g": amount}, count))


def bob_waits(count: int | None = 1, **amounts: int) -> list[Competitor]:
    return [Competitor("n/sci/bob", Task(amounts or {"g": 1}, count))]


def test_what_does_not_fit_at_all_is_not_for_the_gate_to_refuse() -> None:
    decision = decide(cluster(ann=6), ann(5), competitors=bob_waits(None))
    assert (decision.allowed, decision.reason) == (True, "no capacity")


def test_where_too_many_wait_to_tell_the_claim_is_let_through() -> None:
    decision = decide(cluster(ann=3), ann(5), competitors=bob_waits(None), steps=2)
    assert (decision.allowed, decision.reason) == (True, "undecided")


class Case(NamedTuple):
    """A random tree with usage, and a leaf that claims a task while the others wait for theirs without end."""

    root: Branch
    state: oracle.State
    shares: FairShares
    claimant: str
    task: dict[str, int]
    competitors: list[Competitor]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = random.Random(draw(st.integers(0, 10**9)))
    root, totals = random_tree(rng), random_totals(rng)
    leaves = list(leaf_paths(root))
    assume(leaves)
    usage = random_usage(rng, root, dict.fromkeys(totals, 1))
    state = oracle.State(totals, usage, random_tasks(rng, root, totals))
    claimant, shares = rng.choice(leaves), FairShares(root, totals)
    for leaf, amounts in usage.items():
        shares.use(leaf, amounts)
    competitors = [Competitor(leaf, Task(wanted, None)) for leaf, wanted in state.tasks.items() if leaf != claimant]
    return Case(root, state, shares, claimant, {**dict.fromkeys(totals, 0), **state.tasks[claimant]}, competitors)


@given(cases())
def test_a_claim_is_fair_if_its_turn_comes_while_it_fits(case: Case) -> None:
    """Against filling by the definition, over random trees."""
    root, state, shares, claimant, task, competitors = case
    before = {leaf: shares.usage(leaf) for leaf in leaf_paths(root)}
    decision = decide(shares, Competitor(claimant, Task(task)), competitors=competitors)
    expected = not any(task.values()) or not state.fits(claimant, task) or claimant in oracle.fill(root, state)
    assert decision.allowed == expected
    assert {leaf: shares.usage(leaf) for leaf in leaf_paths(root)} == before


def test_claims_that_come_later_wait_with_the_others() -> None:
    decisions = decide_each(cluster(), [ann(1, 10), *bob_waits(10)])
    assert [(decision.count, decision.reason) for decision in decisions] == [(5, "others first"), (5, "no capacity")]


@given(cases(), st.integers(1, 12))
def test_the_number_of_fair_tasks_is_that_of_filling(case: Case, wanted: int) -> None:
    """Against filling by the definition, over random trees; what fits nowhere passes."""
    root, state, shares, claimant, task, competitors = case
    decision = decide(shares, Competitor(claimant, Task(task, wanted)), competitors=competitors)
    expected = min(wanted, oracle.fill(root, deepcopy(state)).count(claimant)) if any(task.values()) else wanted
    assert decision.count == expected
    held = {name: state.usage[claimant].get(name, 0) + amount * expected for name, amount in task.items()}
    after = oracle.State(state.totals, {**state.usage, claimant: held}, state.tasks)
    assert decision.allowed == (expected == wanted or not after.fits(claimant, task))
