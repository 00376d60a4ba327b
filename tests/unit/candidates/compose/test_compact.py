"""The order of the candidates of one tree, compared with sorting all of them by the definition."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.compose.compact import FEW_COMBINATIONS, CompactFirst
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.domain.places import Places
from placement.domain.search_plan import CandidateRequest, Plan, RequestGroup, plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.searches import brute_force, devices, lay_out, moved, searches_with_places


def sorted_by_definition(plan: Plan, tree: Tree) -> list[tuple]:
    """Return (counts, choice) of every candidate in order: fewest places, then the options of fullest places."""
    ranks = [{provider: rank for rank, provider in enumerate(row)} for row in tree.options]
    prepared = SlotComposer(plan, RequestBudget()).prepared(tree)
    slots = prepared.order.slots if prepared else ()

    def key(choice):
        placed = dict(zip([slot.suffix + str(slot.resources) for slot in plan.slots], choice, strict=True))
        in_order = [placed[slot.suffix + str(slot.resources)] for slot in slots]
        return counts(choice), [ranks[slot.demand][provider] for slot, provider in zip(slots, in_order, strict=True)]

    def counts(choice):
        return touched(tree, [p for slot, p in zip(plan.slots, choice, strict=True) if slot.resources])

    return [(counts(choice), choice) for choice in sorted(brute_force(plan, tree), key=key)]


def touched(tree: Tree, providers: Iterable[int]) -> tuple[int, ...]:
    """Return how many places of each level providers lie in, at least 1."""
    at = [{tree.places.masks.get(provider, 0) & places for provider in providers} for places in tree.places.levels]
    return tuple(max(1, len(of_level - {0})) for of_level in at)


@examples(60)
@given(searches_with_places(), st.booleans())
def test_candidates_come_as_if_all_were_composed_and_sorted(search, all_wanted):
    plan, tree = search
    # With ``few``, so that even a small tree is searched in order.
    composer = CompactFirst(plan, RequestBudget(), all_wanted=all_wanted, few=0)
    counts, choices = composer.composed_in(tree) or ((), ())
    if tree.places.masks:
        expected = sorted_by_definition(plan, tree)
        assert list(choices) == [choice for _counts, choice in expected]
        assert counts == (expected[0][0] if expected else ())
    else:
        assert list(choices) == list(SlotComposer(plan, RequestBudget()).choices(tree))


def switches(count: int, each: int, groups: int) -> tuple[Plan, Tree]:
    """Two NUMA nodes with this many switches in total, each with this many devices."""
    plan, tree = devices(groups, count * each)
    marks = {1001: 0b01, 1002: 0b01}
    parents: dict[int, int | None] = {1000: None, 1001: 1000, 1002: 1000}
    for switch in range(count):
        marks[2000 + switch] = 0b10
        parents[2000 + switch] = 1001 + switch % 2
        parents |= {1 + switch * each + device: 2000 + switch for device in range(each)}
    lay_out(tree, parents, marks, dict.fromkeys(tree.options[0], 1.0))
    return plan, tree


@pytest.mark.parametrize("all_wanted", [False, True])
def test_the_most_compact_of_very_many_candidates_takes_few_steps(all_wanted):
    """8 groups on 16 devices have 518,918,400 candidates; four switches of one NUMA node have room for all."""
    plan, tree = switches(8, 2, 8)
    budget = RequestBudget(per_tree=2000)
    counts, choices = CompactFirst(plan, budget, all_wanted=all_wanted).composed_in(tree)
    first = list(islice(choices, 20))
    assert counts == (1, 4)
    assert len(first) == 20
    assert {touched(tree, choice) for choice in first} == {(1, 4)}
    assert not budget.was_hit


@pytest.mark.parametrize("amounts", [[2] * 8, [1, *[2] * 7]], ids=["alike", "one smaller"])
def test_what_is_left_over_everywhere_does_not_add_up(amounts):
    """Three units are left on each of ten switches, so eight groups of two touch eight of them, although six have 18.

    Six and seven switches were searched in every order: four million steps for the hosts of one request.
    """
    plan, tree = switches(10, 1, len(amounts))
    groups = tuple(
        [RequestGroup(suffix=f"_{at}", resources={"SRIOV_NET_VF": amount}) for at, amount in enumerate(amounts)]
    )
    plan = plan_for(CandidateRequest(groups=groups, isolate=False))
    (nics,) = tree.options
    tree.options = [nics for _demand in plan.demands]
    tree.room = dict.fromkeys([(nic, "SRIOV_NET_VF") for nic in nics], 3.0)
    budget = RequestBudget(per_tree=2000)
    counts, _choices = CompactFirst(plan, budget, all_wanted=False).composed_in(tree)
    assert counts == (2, 7 if 1 in amounts else 8)
    assert not budget.was_hit


@examples(22)
@given(searches_with_places(), st.data())
def test_trees_that_are_alike_come_as_if_each_were_the_only_one(search, data):
    plan, tree = search
    room = {spot: data.draw(st.sampled_from([0.0, 1.0, 9.0])) for spot in list(tree.room)[:1]}
    place = {
        provider: data.draw(st.sampled_from([0, *tree.places.masks.values()]))
        for provider in list(tree.places.masks)[:1]
    }
    fuller = replace(tree, room={**tree.room, **room})
    elsewhere = replace(tree, places=Places({**tree.places.masks, **place}, tree.places.levels))
    trees = [moved(one, 100 * number) for number, one in enumerate((tree, tree, fuller, elsewhere, tree))]
    at_once = data.draw(st.booleans())
    alone = [CompactFirst(plan, RequestBudget(), all_wanted=at_once).composed_in(moved(one, 0)) for one in trees]
    few = data.draw(st.sampled_from([0, FEW_COMBINATIONS]))
    together = CompactFirst(plan, RequestBudget(), all_wanted=at_once, few=few)
    for composed, expected in zip(map(together.composed_in, trees), alone, strict=True):
        assert (composed and composed.counts) == (expected and expected.counts)
        assert list(composed.choices if composed else ()) == list(expected.choices if expected else ())


@examples(45)
@given(searches_with_places(), st.integers(1, 12))
def test_order_hides_no_candidate_for_want_of_steps(search, steps):
    """If the plain search finds a candidate before its steps are used up, so does the ordered search."""
    plan, tree = search
    budget, without_order = RequestBudget(per_tree=steps), RequestBudget(per_tree=steps)
    by_id = replace(tree, options=[sorted(options) for options in tree.options])
    in_any_order = list(SlotComposer(plan, without_order).choices(by_id))
    composed = CompactFirst(plan, budget, all_wanted=False, few=0).composed_in(tree)
    if composed is None:
        assert not in_any_order
        assert without_order.was_hit or not budget.was_hit
        return
    found, everything = list(composed.choices), brute_force(plan, tree)
    assert set(found) <= everything
    assert budget.was_hit or len(found) == len(everything)
    if tree.places.masks:
        consuming = [provider for slot, provider in zip(plan.slots, found[0], strict=True) if slot.resources]
        assert composed.counts == touched(tree, consuming)
