"""Trees of providers: their roots, and how they are drawn."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.tree import true_roots
from placement.services.console.tree import ancestors, drawing
from tests.examples import examples


def walked(parents: dict[int, int | None], start: int) -> int | None:
    """Walk up step by step; more steps than providers indicate a cycle."""
    here = start
    for _ in range(len(parents)):
        above = parents[here]
        if above is None:
            return here
        if above not in parents:
            return None
        here = above
    return None


@examples(200)
@given(st.integers(0, 10**9))
def test_roots_are_what_walking_up_from_each_provider_finds(seed: int) -> None:
    choice = random.Random(seed)
    ids = range(1, choice.randint(1, 12))
    # Parents may be missing (99) or form cycles, as in a damaged database.
    parents = {id_: choice.choice([None, *ids, 99]) for id_ in ids}
    assert true_roots(parents) == {id_: walked(parents, id_) for id_ in ids}


def test_a_very_deep_tree_is_no_problem() -> None:
    parents: dict[int, int | None] = {id_: id_ - 1 for id_ in range(1, 20_000)}
    parents[0] = None
    assert set(true_roots(parents).values()) == {0}


@pytest.mark.parametrize("parents", [{1: 2, 2: 1}, {1: 1}, {1: 7}])
def test_rows_that_are_no_tree_end_all_the_same(parents: dict[int, int | None]):
    assert drawing(parents, 1, max_providers=10, deepest=10).drawn[0] in parents
    assert len(ancestors(parents, 1)) < 2


@given(st.data())
def test_what_is_drawn_and_what_is_hidden_make_up_the_tree(data: st.DataObject):
    size = data.draw(st.integers(1, 30))
    parents = {1: None} | {id_: data.draw(st.integers(1, id_ - 1)) for id_ in range(2, size + 1)}
    focus = data.draw(st.integers(1, size))
    most, deepest = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 6))
    drawn = drawing(parents, focus, max_providers=most, deepest=deepest)
    below = {id_ for id_ in parents if id_ == drawn.top or drawn.top in ancestors(parents, id_)}
    assert focus in drawn.children
    assert len(drawn.drawn) <= most
    assert len(drawn.drawn) + sum(drawn.hidden.values()) == len(below)
    assert all(parents[child] == id_ for id_, children in drawn.children.items() for child in children)
    assert max(len(ancestors(parents, id_)) - len(ancestors(parents, drawn.top)) for id_ in drawn.drawn) < deepest
    assert (drawn.top == 1) or not drawn.is_whole
