"""The order of the planner's proposals: the same as if everything had been composed, with less work."""

from itertools import combinations, islice

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.allocators.compactness import compactness
from placement.candidates.planner.best_first import Expected, Scored, best_compactness, in_order
from placement.candidates.planner.proposals import Proposal, touched_places
from placement.domain.tree import Tree

ROOTS = st.lists(st.integers(1, 50), unique=True, max_size=30)
SCORES = st.integers(0, 4)


@st.composite
def forecasts(draw):
    """Trees with a bound and the totals of what is found in them; whole numbers, so that there are ties."""
    found = []
    for root in draw(ROOTS):
        bound = draw(SCORES)
        totals = sorted(draw(st.lists(st.integers(0, bound), max_size=3)), reverse=True)
        found.append((Expected(Tree(root, []), draw(st.booleans()), 0.0, float(bound)), totals))
    return found


def scored(expected, totals):
    for number, total in enumerate(totals):
        root = expected.tree.root
        order = (not expected.keeps_proportion, -float(total), root, number)
        yield Scored(order, Proposal(root, {}, {str(number): ()}))


@settings(max_examples=300)
@given(forecasts(), st.integers(1, 5))
def test_the_order_is_that_of_everything_composed(forecast, wanted) -> None:
    totals = {one.tree.root: found for one, found in forecast}
    everything = sorted((s for one, found in forecast for s in scored(one, found)), key=lambda s: s.order)

    def compose(some):
        for one in some:
            yield from scored(one, totals[one.tree.root])

    assert list(in_order([one for one, _ in forecast], compose, wanted=wanted)) == [s.proposal for s in everything]


def test_trees_that_cannot_appear_are_not_composed() -> None:
    trees = [Expected(Tree(root, []), keeps_proportion=True, strategy=0.0, bound=100.0 - root) for root in range(1, 90)]
    composed = []

    def compose(some):
        for one in some:
            composed.append(one.tree.root)
            yield from scored(one, [one.bound])

    first = list(islice(in_order(trees, compose, wanted=3), 3))
    assert [one.root for one in first] == [1, 2, 3]
    assert len(composed) < 10


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2) | st.none()), min_size=1, max_size=6), st.data())
def test_nothing_in_a_tree_is_more_compact_than_its_bound(places, data) -> None:
    positions = {index: (numa, None if pcie is None else 10 * numa + pcie) for index, (numa, pcie) in enumerate(places)}
    number = data.draw(st.integers(1, len(places)))
    bound = best_compactness(Tree(1, [list(positions)]), [(0, number)], positions)
    for chosen in combinations(positions.values(), number):
        assert compactness([max(1, count) for count in touched_places(list(chosen), 2)]) <= bound + 1e-9
