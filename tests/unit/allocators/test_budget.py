"""Budgets of steps, and what children draw from their parents."""

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.budget import Budget


def test_steps_are_taken_until_none_is_left():
    budget = Budget(3)
    assert [budget.take() for _one in range(5)] == [True, True, True, False, False]
    assert (budget.left, budget.was_hit) == (0, True)


def test_a_budget_that_is_just_used_up_was_not_hit():
    budget = Budget(3)
    assert budget.take(3)
    assert budget.take(0)
    assert (budget.left, budget.was_hit) == (0, False)


def test_a_child_ends_with_its_parent():
    parent = Budget(5)
    one, other = parent.child(4), parent.child(4)
    assert one.take(4)
    assert other.left == 1
    assert not other.take(2)
    assert (parent.left, parent.was_hit, one.was_hit, other.was_hit) == (0, True, False, True)


def test_a_child_that_is_hit_leaves_the_parent_the_rest():
    """The child's part is spent: a search that was cut off has used everything it was allowed."""
    parent = Budget(10)
    child = parent.child(4)
    assert child.take()
    assert not child.take(5)
    assert (child.left, parent.left, parent.was_hit) == (0, 6, True)
    assert parent.take(6)


def test_grandchildren_draw_from_all_above():
    request = Budget(10)
    member = request.child(6)
    assert member.child(4).take(3)
    assert (member.left, request.left) == (3, 7)
    assert not member.child(4).take(4)
    assert (member.left, request.left, request.was_hit) == (0, 4, True)


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(0, 15), st.lists(st.integers(0, 8), max_size=6)), max_size=6))
def test_no_more_is_taken_than_is_allowed_and_nothing_is_lost(limit, children):
    parent, granted = Budget(limit), 0
    for allowed, steps in children:
        child, of_child = parent.child(allowed), 0
        for number in steps:
            of_child += number if child.take(number) else 0
        assert of_child <= allowed
        granted += of_child
    assert granted <= limit - parent.left <= limit
    assert parent.was_hit or granted == limit - parent.left
