"""How a tree is drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.services.console.tree import ancestors, drawing


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
