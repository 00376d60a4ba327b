"""The bound on tightness, compared with every way to spread a gain."""

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.allocators.group.bounds import most_tightness
from tests.examples import examples


def best_spread(locations: list[tuple[int, int, int]], gain: int) -> int:
    """Return the most that the weighted squares gain if the gain is spread in whole numbers.

    Args:
        locations: (score before, how much it can rise, factor).
        gain: how much can be spread; it need not all be used.
    """
    spreads = product(*[range(min(most, gain) + 1) for _score, most, _factor in locations])
    return max(
        sum(
            ((score + rise) ** 2 - score**2) * factor
            for (score, _m, factor), rise in zip(locations, rises, strict=True)
        )
        for rises in spreads
        if sum(rises) <= gain
    )


def bound(locations: list[tuple[int, int, int]], gain: int) -> int:
    limited = [(score, min(most, gain), factor) for score, most, factor in locations if min(most, gain)]
    return most_tightness([((2 * score + most) * factor, most, score, factor) for score, most, factor in limited], gain)


@examples(105)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4)), max_size=4), st.integers(0, 9))
def test_no_way_to_spread_a_gain_exceeds_the_bound(locations, gain):
    assert bound(locations, gain) >= best_spread(locations, gain)


@examples(45)
@given(st.lists(st.integers(0, 4), max_size=4), st.integers(0, 12))
def test_for_locations_of_one_size_the_bound_is_exact(scores, gain):
    """Otherwise hosts with many equal devices would take a long search."""
    locations = [(score, 4 - score, 1) for score in scores]
    assume(all(rise <= gain for _score, rise, _factor in locations))
    assert bound(locations, gain) == best_spread(locations, gain)
