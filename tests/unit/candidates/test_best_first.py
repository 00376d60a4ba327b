"""The order of the planner's proposals: the same as if everything had been composed, with less work."""

from collections import Counter
from itertools import combinations, islice

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.bounds import least_counts
from placement.candidates.compose.proposals import Proposal, touched_places
from placement.candidates.proposals_in_order import Scored, in_order
from placement.candidates.ranking import LAST, Portion
from placement.domain.tree import Tree
from tests.examples import examples

ROOTS = st.lists(st.integers(1, 50), unique=True, max_size=30)
SCORES = st.integers(0, 4)


@st.composite
def forecasts(draw):
    """Keys of trees and the totals of what is found in them; whole numbers, so that there are ties."""
    found = []
    for root in draw(ROOTS):
        bound = draw(SCORES)
        totals = sorted(draw(st.lists(st.integers(0, bound), max_size=3)), reverse=True)
        found.append(((draw(st.booleans()), -float(bound), root), totals))
    return sorted(found)


def scored(key, totals):
    fails, _bound, root = key
    for number, total in enumerate(totals):
        yield Scored((fails, -float(total), root, number), Proposal(root, {}, {str(number): ()}))


def portions(keys, size):
    """Trees in portions, each with the key of the first that is left."""
    for first in range(0, len(keys), size):
        some, left = keys[first : first + size], keys[first + size :]
        yield Portion([(key, Tree(key[2], [])) for key in some], left[0] if left else LAST)


@examples(100)
@given(forecasts(), st.integers(1, 5), st.integers(1, 8))
def test_the_order_is_that_of_everything_composed(forecast, wanted, size) -> None:
    totals = {key[2]: found for key, found in forecast}
    everything = sorted((s for key, found in forecast for s in scored(key, found)), key=lambda s: s.order)

    def compose(some):
        for key, _tree in some:
            yield from scored(key, totals[key[2]])

    found = list(in_order(portions([key for key, _ in forecast], size), compose, wanted=wanted))
    assert found == [s.proposal for s in everything]


def test_trees_that_cannot_appear_are_neither_read_nor_composed() -> None:
    keys = [(False, root - 100.0, root) for root in range(1, 90)]
    composed, read = [], []

    def reading():
        for portion in portions(keys, 8):
            read.extend(portion.trees)
            yield portion

    def compose(some):
        for key, _tree in some:
            composed.append(key[2])
            yield from scored(key, [-key[1]])

    first = list(islice(in_order(reading(), compose, wanted=3), 3))
    assert [one.root for one in first] == [1, 2, 3]
    assert len(composed) < 10
    assert len(read) == 8


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2) | st.none()), min_size=1, max_size=6), st.data())
def test_nothing_in_a_tree_touches_fewer_places_than_its_bound(places, data) -> None:
    positions = {index: (numa, None if pcie is None else 10 * numa + pcie) for index, (numa, pcie) in enumerate(places)}
    number = data.draw(st.integers(1, len(places)))
    least = least_counts([(1, spot) for spot in positions], number, positions, levels=2)[1]
    touched = [touched_places(list(chosen), 2) for chosen in combinations(positions.values(), number)]
    for level, bound in enumerate(least):
        # As low as can be, so that it tells trees apart.
        assert bound == max(1, min(counts[level] for counts in touched))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=20), st.integers(1, 4))
def test_trees_with_fewer_providers_than_wanted_have_no_bound(options, number) -> None:
    known = least_counts(options, number, {spot: (spot,) for _root, spot in options}, levels=1)
    assert known.keys() == {root for root, supply in Counter(root for root, _ in options).items() if supply >= number}
