"""Sorting many names at once gives the order of their keys."""

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators import natural_key, natural_order
from tests.examples import examples

BEGINNINGS = st.sampled_from(["", "host", "host1", "host12-", "7"])
RESTS = st.text("a1-0\u00b2", max_size=4)


@examples(200)
@given(BEGINNINGS, st.lists(RESTS, max_size=6))
def test_names_that_begin_alike_come_in_the_order_of_their_keys(beginning: str, rests: list[str]) -> None:
    names = [beginning + rest for rest in rests]
    assert natural_order(names) == tuple(sorted(range(len(names)), key=lambda place: natural_key(names[place])))
