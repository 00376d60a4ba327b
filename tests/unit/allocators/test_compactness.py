"""The number that stands for compactness."""

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.ranking_profile import MAX_COMPACTNESS, compactness

COUNTS = st.lists(st.integers(1, 40), min_size=3, max_size=3).map(tuple)


@given(COUNTS, COUNTS)
def test_a_number_is_higher_exactly_where_the_counts_come_first(one, other):
    assert (compactness(one) > compactness(other)) == (one < other)


@given(COUNTS)
def test_a_number_lies_between_nothing_and_the_maximum(counts):
    assert 0 < compactness(counts) <= MAX_COMPACTNESS
    assert (compactness(counts) == MAX_COMPACTNESS) == (set(counts) == {1})
