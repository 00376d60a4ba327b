"""Placing requirements in trees of locations: what makes no difference, what is in the answer, when the search ends."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators import Budget
from placement.allocators.group import location_tree, requirement_tree
from placement.allocators.group.locations import Rules
from placement.allocators.group.place import STEPS, place
from placement.allocators.group.search import STEPS_OF_A_TRY
from placement.allocators.group.tree import (
    Capacity,
    Location,
    Phase,
    Placed,
    Requirement,
    Scorer,
    Used,
    Verdict,
    judge_quantity,
    translated,
)
from tests.examples import examples
from tests.unit.allocators.group_instances import Everything, choice_of
from tests.unit.allocators.group_random import instances

pytestmark = pytest.mark.exhaustive


def shuffled(location: Location, rng: random.Random) -> Location:
    """Return the same tree with everything in another order."""
    children = [shuffled(child, rng) for child in location.children]
    rng.shuffle(children)
    capacities = list(location.capacities.items())
    rng.shuffle(capacities)
    return replace(location, capacities=dict(capacities), children=tuple(children))


def relabelled(requirement: Requirement, rng: random.Random) -> Requirement:
    """Return the same requirement with other labels and in another order."""
    parts = [relabelled(part, rng) for part in requirement.parts]
    rng.shuffle(parts)
    amounts = list(requirement.amounts.items())
    rng.shuffle(amounts)
    return replace(requirement, label=f"{rng.random()}", amounts=dict(amounts), parts=tuple(parts))


def without_labels(placed: Placed) -> tuple:
    """Return what was requested and where it was placed, with parts in an order independent of labels."""
    amounts = sorted(placed.requirement.amounts.items())
    return placed.path, amounts, sorted([without_labels(part) for part in placed.parts])


@examples(50)
@given(instances, st.randoms())
def test_neither_labels_nor_the_order_of_what_is_given_matter(instance, rng):
    root, requirements, distinct, _levels = instance
    rules = Rules(distinct=distinct)
    others = [relabelled(requirement, rng) for requirement in requirements]
    rng.shuffle(others)
    budget, other_budget = Budget(STEPS), Budget(STEPS)
    one = place(root, requirements, rules, budget=budget)
    other = place(shuffled(root, rng), others, rules, budget=other_budget)
    assert (other.feasible, other.complete, other_budget.remaining) == (one.feasible, one.complete, budget.remaining)
    assert (other.objective, other.taken) == (one.objective, one.taken)
    assert sorted(map(without_labels, other.placed)) == sorted(map(without_labels, one.placed))


@examples(44)
@given(instances)
def test_what_was_placed_is_scored_the_same_again(instance):
    """Recorded places are kept."""
    root, requirements, distinct, _levels = instance
    rules = Rules(distinct=distinct)
    first = place(root, requirements, rules)
    if not first.feasible:
        return
    again = place(root, [pinned(placed) for placed in first.placed], rules)
    assert (again.objective, choice_of(again)) == (first.objective, choice_of(first))


def pinned(placed: Placed) -> Requirement:
    return replace(
        placed.requirement, only=frozenset([placed.path]), parts=tuple([pinned(part) for part in placed.parts])
    )


@examples(22)
@given(st.data())
def test_filling_in_upper_groups_changes_nothing_if_siblings_may_share(data):
    offer = {
        f"up/{upper}/low/{lower}/gpu/{device}/memory": data.draw(st.integers(0, 3))
        for upper in range(2)
        for lower in range(2)
        for device in range(data.draw(st.integers(1, 2)))
    }
    groups = st.sampled_from(["", "low/A/", "low/B/", "up/A/", "up/A/low/A/"])
    asked = data.draw(st.dictionaries(st.tuples(groups, st.integers(0, 2)), st.integers(0, 2), max_size=4))
    requested = {f"{around}gpu/{number}/memory": amount for (around, number), amount in asked.items()}
    root, asks = location_tree(offer, {}), requirement_tree(requested, Phase.RUNNING, {})
    short, full = place(root, [asks]), place(root, [translated(asks, root)])
    assert (short.feasible, short.objective) == (full.feasible, full.objective)


def devices(count: int, **amounts: int) -> Location:
    """Return a root with equal devices d0, d1, ..."""
    capacities = {base: Capacity(amount) for base, amount in ({"cards": 1} | amounts).items()}
    return Location(children=tuple([Location(f"d{number}", "gpu", capacities) for number in range(count)]))


def cards(*amounts: int) -> Requirement:
    return Requirement(
        parts=tuple([Requirement(f"{number}", "gpu", {"cards": one}) for number, one in enumerate(amounts)])
    )


def test_fewest_numa_nodes_come_before_fewest_devices_if_the_levels_say_so():
    """Two slices: on one device of the full NUMA node, or on two of the empty one with the rest of the request."""
    full = Location("0", "numa", {"cpu": Capacity(1)}, devices(1, cards=2).children)
    empty = Location("1", "numa", {"cpu": Capacity(2)}, devices(2, cards=1).children)
    root = Location(children=(full, empty))
    wanted = Requirement(
        parts=(Requirement("a", "numa", {"cpu": 0}), *cards(1, 1).parts, Requirement("b", "numa", {"cpu": 2}))
    )
    # The score is highest with both small devices, whatever the levels; a flat scorer leaves the choice to the levels.
    touched = [place(root, [wanted], Rules(levels=levels, scorer_for=flat)).objective for levels in (None, ["numa"])]
    assert [one.touched for one in touched] == [(1, 2), (1,)]


def flat(_base: str):
    def judge(allocatable, used, requested, phase):
        verdict = judge_quantity(allocatable, used, requested, phase)
        return Verdict(verdict.fits, 0, verdict.used)

    return Scorer(judge, adds_up=True, diminishing=True)


def test_a_whole_location_is_left_free_for_others():
    """Best fit: of two equally small requests the second goes to the location of the first, not to an empty one."""
    root = devices(2, cards=4)
    used = replace(root.children[1], capacities={"cards": Capacity(4, used=1)})
    placement = place(replace(root, children=(root.children[0], used)), [cards(1)])
    assert placement.placed[0].parts[0].path == (("gpu", "d1"),)


# ---- budget and bounds


def hard() -> tuple[Location, Requirement]:
    """Return bins that the pieces fill almost completely, so that the first attempt is rarely the best."""
    sizes = [41, 33, 29, 23, 47, 37, 31, 19, 43, 27, 53, 15, 49, 21, 35, 25, 39, 17]
    pieces = [Requirement(f"{number}", "gpu", {"memory": size}) for number, size in enumerate(sizes)]
    bins = [Location(f"d{number}", "gpu", {"memory": Capacity(100)}) for number in range(6)]
    return Location(children=tuple(bins)), Requirement(parts=tuple(pieces))


def test_a_search_that_ends_before_its_time_says_so_and_gives_what_it_has():
    root, wanted = hard()
    placement = place(root, [wanted], budget=Budget(2500))
    assert (placement.feasible, placement.complete) == (True, False)
    assert Everything(root, [wanted]).worth(choice_of(placement)) == placement.objective.rank


def test_a_bigger_budget_never_makes_it_worse_and_without_any_nothing_is_claimed():
    root, wanted = hard()
    placement = place(root, [wanted], budget=Budget(0))
    assert (placement.feasible, placement.complete) == (False, False)
    ranks = [place(root, [wanted], budget=Budget(steps)).objective.rank for steps in (10_000, 25_000, 100_000)]
    assert ranks == sorted(ranks)


def test_more_devices_than_there_are_fail_without_a_search():
    placement = place(devices(8), [cards(*[1] * 9)], budget=Budget(0))
    assert (placement.feasible, placement.complete) == (False, True)


@pytest.mark.parametrize("distinct", [False, True])
def test_as_many_demands_as_are_allowed_are_placed(distinct):
    """Each step of the search is one level deeper on Python's stack."""
    wanted, root = cards(*[1] * 199), devices(199 if distinct else 20, cards=1 if distinct else 10)
    placement = place(root, [wanted], Rules(distinct=distinct), budget=Budget(100_000))
    assert (placement.feasible, placement.complete) == (True, distinct)


@pytest.mark.parametrize(
    ("root", "requirement", "words"),
    [
        (devices(1), cards(-1), "negative"),
        (devices(1), cards(*[0] * 200), "200"),
        (devices(1, cards=-1), cards(1), "gpu/d0/cards .*negative"),
        (Location(children=devices(1).children * 2), cards(1), "two locations gpu/d0"),
    ],
    ids=["negative request", "more demands than are allowed", "negative capacity", "one name twice"],
)
def test_what_makes_no_sense_is_refused(root, requirement, words):
    with pytest.raises(ValueError, match=words):
        place(root, [requirement])


def test_a_score_that_is_no_share_is_refused():
    scorer = Scorer(lambda *_what: Verdict(fits=True, score=1.5, used=Used()))
    with pytest.raises(ValueError, match=r"1\.5"):
        place(devices(1), [cards(1)], Rules(scorer_for=lambda _base: scorer))


# ---- effort: steps, not seconds, so that the machine does not matter


def four_levels(devices_per_switch: int) -> Location:
    """Return a host with 2 NUMA nodes of 2 switches, with equal GPUs and a NIC at each switch."""

    def switch(number: int) -> Location:
        gpus = devices(devices_per_switch, memory=81920).children
        return Location(f"{number}", "switch", {}, (*gpus, Location("n", "nic", {"vf": Capacity(8)})))

    numas = [Location(f"{n}", "numa", {"cpu": Capacity(32)}, (switch(2 * n), switch(2 * n + 1))) for n in range(2)]
    return Location(capacities={"ram": Capacity(512)}, children=tuple(numas))


def beside_a_nic(count: int) -> Requirement:
    parts = (*cards(*[1] * count).parts, Requirement("n", "nic", {"vf": 1}))
    return Requirement("s", "switch", {}, parts)


@pytest.mark.parametrize(
    ("parts", "tries"),
    [
        (cards(1, 1, 1, 1).parts, 50),
        (cards(*[1] * 8).parts, 100),
        ((beside_a_nic(2), beside_a_nic(2), beside_a_nic(1)), 120),
        (tuple([Requirement(f"{n}", "numa", {"cpu": 8}, (beside_a_nic(1), beside_a_nic(2))) for n in range(2)]), 60),
    ],
    ids=["4 anywhere", "all 8", "3 switches", "2 NUMA nodes"],
)
def test_a_host_of_eight_gpus_takes_few_steps(parts, tries):
    budget = Budget((tries + 1) * STEPS_OF_A_TRY)
    placement = place(four_levels(2), [Requirement(amounts={"ram": 64}, parts=parts)], budget=budget)
    assert (placement.feasible, placement.complete) == (True, True)
    assert budget.remaining


@pytest.mark.parametrize("sizes", [[2] * 8, [1, 1, 2, 2, 3, 3, 4, 4]], ids=["alike", "of four forms"])
def test_groups_that_leave_out_a_level_are_not_searched_for(sizes: list[int]) -> None:
    """64 GPUs in nodes of four in racks of four nodes; the groups ask for nodes, nothing asks for racks."""
    nodes = [Location(f"n{number}", "node", {}, devices(4).children) for number in range(16)]
    racks = [Location(f"r{number}", "rack", {}, tuple(nodes[4 * number : 4 * number + 4])) for number in range(4)]
    wanted = [Requirement(f"{number}", "node", {}, cards(*[1] * size).parts) for number, size in enumerate(sizes)]
    budget = Budget(2_000 * STEPS_OF_A_TRY)
    found = place(
        Location(children=tuple(racks)), [Requirement(parts=tuple(wanted))], Rules(distinct=True), budget=budget
    )
    assert (found.feasible, found.complete) == (True, True)
    assert found.objective is not None
    assert found.objective.touched == (2, 8, sum(sizes))
