"""Bounds on how many places candidates in a tree touch."""

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.bounds import fewest_places, place_sizes


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2) | st.none()), min_size=1, max_size=6), st.data())
def test_nothing_in_a_tree_touches_fewer_places_than_its_bound(places, data) -> None:
    positions = {index: (numa, None if pcie is None else 10 * numa + pcie) for index, (numa, pcie) in enumerate(places)}
    number = data.draw(st.integers(1, len(places)))
    sizes = place_sizes([(1, locator) for locator in positions], positions, levels=2)[1]
    touched = [
        [len({at[level] for at in chosen} - {None}) for level in range(2)]
        for chosen in combinations(positions.values(), number)
    ]
    for level, bound in enumerate(fewest_places(sizes, number)):
        # As low as possible, so that it distinguishes trees.
        assert bound == max(1, min(counts[level] for counts in touched))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=20), st.integers(1, 4))
def test_trees_with_fewer_providers_than_wanted_have_no_bound(options, number) -> None:
    sizes = place_sizes(options, {locator: (locator,) for _root, locator in options}, levels=1)
    known = {root for root, of in sizes.items() if fewest_places(of, number) is not None}
    assert known == {root for root, supply in Counter(root for root, _ in options).items() if supply >= number}
