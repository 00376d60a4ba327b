"""The frontier yields the same as composing everything, with less work."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.frontier import (
    ALL_AT_ONCE,
    LAST,
    NEGATED,
    ONE_BY_ONE,
    ROOT,
    Batches,
    Portion,
    best_first,
)
from placement.domain.tree import Tree
from tests.examples import examples

ROOTS = st.lists(st.integers(1, 50), unique=True, max_size=30)
SCORES = st.integers(0, 4)


@st.composite
def forecasts(draw):
    """Draw keys of trees and the totals of their candidates: whole numbers, to produce ties."""
    found = []
    for root in draw(ROOTS):
        bound = draw(SCORES)
        totals = sorted(draw(st.lists(st.integers(0, bound), max_size=3)), reverse=True)
        found.append(((draw(st.booleans()), -float(bound), root), totals))
    return sorted(found)


def scored(key, totals):
    fails, _bound, root = key
    for number, total in enumerate(totals):
        yield (fails, -float(total), root, number), (root, number)


def portions(keys, size):
    """Yield trees in portions, each with the key of the first remaining one."""
    for first in range(0, len(keys), size):
        some, left = keys[first : first + size], keys[first + size :]
        yield Portion([(key, Tree(key[ROOT], [])) for key in some], left[0] if left else LAST)


@examples(60)
@given(forecasts(), st.sampled_from([ONE_BY_ONE, Batches(2, 5), ALL_AT_ONCE]), st.integers(1, 8))
def test_the_order_is_that_of_everything_composed(forecast, batches, size) -> None:
    totals = {key[ROOT]: found for key, found in forecast}
    everything = sorted((s for key, found in forecast for s in scored(key, found)), key=lambda s: s[0])

    def compose(some):
        for key, _tree in some:
            yield from scored(key, totals[key[ROOT]])

    found = list(best_first(portions([key for key, _ in forecast], size), compose, batches))
    assert found == everything


def test_trees_that_cannot_appear_are_neither_read_nor_composed() -> None:
    keys = [(False, root - 100.0, root) for root in range(1, 90)]
    composed, read = [], []

    def reading():
        for portion in portions(keys, 8):
            read.extend(portion.trees)
            yield portion

    def compose(some):
        for key, _tree in some:
            composed.append(key[ROOT])
            yield from scored(key, [-key[NEGATED]])

    first = list(islice(best_first(reading(), compose, Batches(3, 64)), 3))
    assert [root for _order, (root, _number) in first] == [1, 2, 3]
    assert len(composed) < 10
    assert len(read) == 8
