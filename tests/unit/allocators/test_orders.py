"""The orders of names, and of placements by how compact they are."""

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators import natural_key, natural_order
from placement.allocators.ranking_profile import MAX_COMPACTNESS, compactness
from tests.examples import examples

BEGINNINGS = st.sampled_from(["", "host", "host1", "host12-", "7"])
RESTS = st.text("a1-0\u00b2", max_size=4)


@examples(200)
@given(BEGINNINGS, st.lists(RESTS, max_size=6))
def test_names_that_begin_alike_come_in_the_order_of_their_keys(beginning: str, rests: list[str]) -> None:
    names = [beginning + rest for rest in rests]
    assert natural_order(names) == tuple(sorted(range(len(names)), key=lambda place: natural_key(names[place])))


COUNTS = st.lists(st.integers(1, 40), min_size=3, max_size=3).map(tuple)


@given(COUNTS, COUNTS)
def test_a_number_is_higher_exactly_where_the_counts_come_first(one, other):
    assert (compactness(one) > compactness(other)) == (one < other)


@given(COUNTS)
def test_a_number_lies_between_nothing_and_the_maximum(counts):
    assert 0 < compactness(counts) <= MAX_COMPACTNESS
    assert (compactness(counts) == MAX_COMPACTNESS) == (set(counts) == {1})
