"""The search inside one tree, compared with trying every combination."""

from itertools import islice, product

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.candidates.budget import Budget
from placement.candidates.matching import can_match
from placement.candidates.search import Composer
from tests.unit.candidates.searches import brute_force, devices, searches


@settings(max_examples=600, deadline=None)
@given(searches())
def test_the_search_finds_exactly_what_trying_everything_finds(search):
    """No candidate is missed, none is wrong, none comes twice."""
    plan, tree = search
    found = list(Composer(plan, Budget()).choices(tree))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(plan, tree)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 4), unique=True), max_size=5),
    st.dictionaries(st.integers(1, 4), st.integers(0, 2)),
)
def test_matching_agrees_with_trying_everything(rows, places):
    def possible(choice):
        return all(choice.count(column) <= places.get(column, 1) for column in choice)

    expected = any(possible(choice) for choice in product(*rows))
    assert can_match(rows, lambda column: places.get(column, 1)) == expected


def test_groups_alike_are_of_one_kind():
    plan, _tree = devices(16, 16)
    assert len(plan.kinds) == 1
    assert len(plan.slots) == 16


def test_sixteen_groups_on_sixteen_devices_need_few_steps():
    """The reference would look at 16^16 combinations."""
    for isolate in (True, False):
        plan, tree = devices(16, 16, isolate=isolate)
        budget = Budget(per_tree=100_000)
        assert len(list(islice(Composer(plan, budget).choices(tree), 1000))) == 1000
        assert not budget.was_hit


def test_nine_groups_on_eight_devices_fail_at_once():
    for isolate in (True, False):
        plan, tree = devices(9, 8, isolate=isolate)
        budget = Budget(per_tree=0)
        assert list(Composer(plan, budget).choices(tree)) == []
        assert not budget.was_hit


def test_a_search_over_its_budget_says_so():
    plan, tree = devices(8, 8)
    budget = Budget(per_tree=100)
    found = list(Composer(plan, budget).choices(tree))
    assert found
    assert budget.was_hit


def test_a_budget_is_shared_by_all_trees_of_a_request():
    plan, tree = devices(3, 3)
    budget = Budget(per_request=40)
    complete = list(Composer(plan, budget).choices(tree))
    assert len(complete) == 6
    assert not budget.was_hit
    for _ in range(5):
        list(Composer(plan, budget).choices(tree))
    assert budget.was_hit
