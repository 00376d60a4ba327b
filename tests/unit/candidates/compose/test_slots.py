"""The search inside one tree, compared with trying every combination."""

from itertools import islice

from hypothesis import given

from placement.candidates.compose.slots import RequestBudget, SlotComposer
from tests.examples import examples
from tests.unit.candidates.searches import brute_force, devices, searches


@examples(60)
@given(searches())
def test_the_search_finds_exactly_what_trying_everything_finds(search):
    """No candidate is missing, wrong, or given twice."""
    plan, tree = search
    found = list(SlotComposer(plan, RequestBudget()).choices(tree))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(plan, tree)


def test_sixteen_groups_on_sixteen_devices_need_few_steps():
    """The reference would look at 16^16 combinations."""
    for isolate in (True, False):
        plan, tree = devices(16, 16, isolate=isolate)
        budget = RequestBudget(per_tree=100_000)
        assert len(list(islice(SlotComposer(plan, budget).choices(tree), 1000))) == 1000
        assert not budget.was_hit


def test_nine_groups_on_eight_devices_fail_at_once():
    for isolate in (True, False):
        plan, tree = devices(9, 8, isolate=isolate)
        budget = RequestBudget(per_tree=0)
        assert list(SlotComposer(plan, budget).choices(tree)) == []
        assert not budget.was_hit


def test_a_budget_is_shared_by_all_trees_of_a_request():
    plan, tree = devices(3, 3)
    budget = RequestBudget(per_request=40)
    complete = list(SlotComposer(plan, budget).choices(tree))
    assert len(complete) == 6
    assert not budget.was_hit
    for _ in range(5):
        list(SlotComposer(plan, budget).choices(tree))
    assert budget.was_hit
