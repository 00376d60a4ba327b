"""The candidates of one tree, and their order, compared with trying every combination and sorting by the definition."""

from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.compose.compact import FEW_COMBINATIONS, CompactFirst
from placement.candidates.compose.proposals import Locks
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.candidates.tree_reader import Layout
from placement.domain.tree import PlannerTree, ProviderStocks, Stock, Tree
from tests.examples import examples
from tests.small_clouds import Cloud, columns_of, with_twins
from tests.unit.candidates.searches import INNER, LEVELS, Search, groups_of, host, search_in, situations

seeds = st.integers(0, 2**32)


@examples(300)
@given(situations)
def test_the_search_finds_exactly_what_trying_everything_finds(situation) -> None:
    """No candidate is missing, wrong, or given twice."""
    search = search_in(*situation, levels=())
    found = {tree.root: list(SlotComposer(search.plan, RequestBudget()).choices(tree)) for tree in search.trees}
    for root in {node.root for node in search.definition.cloud.values()}:
        assert sorted(found.get(root, [])) == sorted(search.definition.candidates(root))


def test_sixteen_groups_on_sixteen_devices_need_few_steps() -> None:
    """The reference would look at 16^16 combinations."""
    for isolate in (True, False):
        search = search_in(groups_of([1] * 16, isolate=isolate), host(2, 8), levels=())
        budget = RequestBudget(per_tree=100_000)
        assert len(list(islice(SlotComposer(search.plan, budget).choices(*search.trees), 1000))) == 1000
        assert not budget.was_hit


def test_nine_groups_on_eight_devices_fail_at_once() -> None:
    for isolate in (True, False):
        search = search_in(groups_of([1] * 9, isolate=isolate), host(2, 4), levels=())
        budget = RequestBudget(per_tree=0)
        assert list(SlotComposer(search.plan, budget).choices(*search.trees)) == []
        assert not budget.was_hit


def test_a_budget_is_shared_by_all_trees_of_a_request() -> None:
    search, budget = search_in(groups_of([1] * 3), host(1, 3), levels=()), RequestBudget(per_request=40)
    assert len(list(SlotComposer(search.plan, budget).choices(*search.trees))) == 6
    assert not budget.was_hit
    for _ in range(5):
        list(SlotComposer(search.plan, budget).choices(*search.trees))
    assert budget.was_hit


def in_order(search: Search, tree: Tree) -> list[tuple[int, ...]]:
    """Return the candidates of a tree sorted: fewest places, then slot by slot the options in the fullest places."""
    prepared = SlotComposer(search.plan, RequestBudget()).prepared(tree)
    slots = [search.plan.slots.index(slot) for slot in prepared.order.slots] if prepared else []
    ranks = [{provider: rank for rank, provider in enumerate(row)} for row in tree.options]

    def key(choice: tuple[int, ...]):
        return search.counts(tree.root, choice), [ranks[search.plan.slots[at].demand][choice[at]] for at in slots]

    return sorted(search.definition.candidates(tree.root), key=key)


@examples(120)
@given(situations, st.booleans())
def test_candidates_come_as_if_all_were_composed_and_sorted(situation, is_exhaustive) -> None:
    search = search_in(*situation)
    # With ``few``, so that even a small tree is searched in order.
    composer = CompactFirst(search.plan, RequestBudget(), is_exhaustive=is_exhaustive, few=0)
    for tree in search.trees:
        counts, choices = composer.composed_in(tree) or ((), ())
        if tree.places.masks:
            expected = in_order(search, tree)
            assert list(choices) == expected
            assert counts == (search.counts(tree.root, expected[0]) if expected else ())
        else:
            assert list(choices) == list(SlotComposer(search.plan, RequestBudget()).choices(tree))


@pytest.mark.parametrize("is_exhaustive", [False, True])
def test_the_most_compact_of_very_many_candidates_takes_few_steps(is_exhaustive) -> None:
    """8 groups on 16 devices have 518,918,400 candidates; four switches of one NUMA node have room for all."""
    search, budget = search_in(groups_of([1] * 8), host(8, 2)), RequestBudget(per_tree=2000)
    counts, choices = CompactFirst(search.plan, budget, is_exhaustive=is_exhaustive).composed_in(*search.trees)
    first = list(islice(choices, 20))
    assert counts == (1, 4)
    assert len(first) == 20
    assert {search.counts(1, choice) for choice in first} == {(1, 4)}
    assert not budget.was_hit


@pytest.mark.parametrize(("amounts", "switches"), [([2] * 8, 8), ([1, *[2] * 7], 7)], ids=["alike", "one smaller"])
def test_what_is_left_over_everywhere_does_not_add_up(amounts, switches) -> None:
    """Three units are left on each of ten switches: eight groups of two touch eight of them, although six have 18."""
    search, budget = search_in(groups_of(amounts, isolate=False), host(10, 1, units=3)), RequestBudget(per_tree=2000)
    counts, _choices = CompactFirst(search.plan, budget, is_exhaustive=False).composed_in(*search.trees)
    assert counts == (2, switches)
    assert not budget.was_hit


@examples(60)
@given(situations, seeds, st.booleans(), st.sampled_from([0, FEW_COMBINATIONS]))
def test_trees_that_are_alike_come_as_if_each_were_the_only_one(situation, seed, is_exhaustive, few) -> None:
    request, cloud = situation
    twins = with_twins(Random(seed), cloud)
    changed = Random(seed).choice(sorted(twins))
    twins[changed] = replace(twins[changed], traits=twins[changed].traits ^ {INNER})
    search = search_in(request, twins)
    together = CompactFirst(search.plan, RequestBudget(), is_exhaustive=is_exhaustive, few=few)
    for tree in search.trees:
        composed = together.composed_in(tree)
        alone = CompactFirst(search.plan, RequestBudget(), is_exhaustive=is_exhaustive).composed_in(tree)
        assert (composed and composed.counts) == (alone and alone.counts)
        assert list(composed.choices if composed else ()) == list(alone.choices if alone else ())


@examples(120)
@given(situations, st.integers(1, 12))
def test_order_hides_no_candidate_for_want_of_steps(situation, steps) -> None:
    """If the plain search finds a candidate before its steps are used up, so does the ordered search."""
    search = search_in(*situation)
    for tree in search.trees:
        budget, without_order = RequestBudget(per_tree=steps), RequestBudget(per_tree=steps)
        by_id = replace(tree, options=[sorted(options) for options in tree.options])
        in_any_order = list(SlotComposer(search.plan, without_order).choices(by_id))
        composed = CompactFirst(search.plan, budget, is_exhaustive=False, few=0).composed_in(tree)
        if composed is None:
            assert not in_any_order
            assert without_order.was_hit or not budget.was_hit
            continue
        found, everything = list(composed.choices), {*search.definition.candidates(tree.root)}
        assert {*found} <= everything
        assert budget.was_hit or len(found) == len(everything)
        if tree.places.masks:
            assert composed.counts == search.counts(tree.root, found[0])


def layout_of(cloud: Cloud) -> Layout:
    """Return the places of all providers of a cloud."""
    providers = columns_of(cloud).providers
    levels = [np.array([trait in cloud[id_].traits for id_ in providers.ids.tolist()]) for trait in LEVELS]
    return Layout(providers, np.arange(len(providers.ids)), levels)


@examples(120)
@given(situations, seeds)
def test_what_fits_around_a_provider_is_the_sum_over_its_place_and_those_inside(situation, seed) -> None:
    search = search_in(*situation)
    cloud, chance = search.definition.cloud, Random(seed)
    places = {id_: search.places(node.root, id_) for id_, node in cloud.items()}
    fits = {id_: chance.choice((0.0, 1.0, 2.0, 9.0)) for id_ in cloud}

    def around(provider: int) -> float:
        if places[provider] == (None, None):
            return fits[provider]
        same_tree = [other for other in cloud if cloud[other].root == cloud[provider].root]
        inside = [
            other
            for other in same_tree
            if all(here in (None, there) for here, there in zip(places[provider], places[other], strict=True))
        ]
        return sum(fits[other] for other in inside)

    layout = layout_of(cloud)
    assert layout.positions == places
    by_position = np.array([fits[id_] for id_ in columns_of(cloud).providers.ids.tolist()])
    assert layout.around(by_position) == {provider: around(provider) for provider in cloud}


def test_the_amounts_of_locks_come_in_the_order_of_the_providers() -> None:
    """Although strings hash differently in each process."""
    nodes, devices = range(101, 121), range(1, 21)
    positions = {device: (node,) for device, node in zip(devices, nodes, strict=True)}
    stocks = {node: ProviderStocks({"CUSTOM_LOCK": Stock(8, 0)}) for node in nodes}
    details = PlannerTree(1, {}, {}, stocks=stocks, positions=positions)
    amounts = {device: {"PGPU": 1} for device in devices}
    held = Locks(["numa"], {"numa": "CUSTOM_LOCK"}).taken(details, [*devices], [(103, "numa")], amounts)
    assert list(amounts) == [*devices, *nodes]
    assert [lock.provider for lock in held] == [103]
    assert (amounts[103], amounts[104]) == ({"CUSTOM_LOCK": 8}, {"CUSTOM_LOCK": 1})
