"""The assignment problem, compared with trying all assignments."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.assignment import best_assignment, first_assignment
from tests.examples import examples


@st.composite
def weights(draw, *, most: int = 6) -> list[list[int | None]]:
    """Return a matrix with few distinct weights, so that there are ties; None forbids an assignment."""
    width = draw(st.integers(0, most))
    row = st.lists(st.sampled_from([None, -2, 0, 1, 1, 2, 3, 10**30]), min_size=width, max_size=width)
    return draw(st.lists(row, max_size=5))


def all_assignments(matrix):
    """Yield (total, columns) of every assignment that is not forbidden, in the order of columns."""
    width = len(matrix[0]) if matrix else 0
    for columns in permutations(range(width), len(matrix)):
        chosen = [matrix[row][column] for row, column in enumerate(columns)]
        if None not in chosen:
            yield sum(chosen), columns


@examples(105)
@given(weights())
def test_no_assignment_is_better_and_of_equals_the_first_is_found(matrix):
    found = list(all_assignments(matrix))
    best = best_assignment(matrix)
    if not found:
        assert best is None
        assert first_assignment(matrix) is None
        return
    total = max(total for total, _columns in found)
    assert best is not None
    assert best.total == total
    assert (total, best.columns) in found
    # permutations() yields them in order.
    assert first_assignment(matrix) == next(columns for worth, columns in found if worth == total)


@pytest.mark.parametrize("size", [60])
def test_many_rows_that_are_alike_take_the_first_columns(size):
    assert first_assignment([[1] * (size + 5) for _row in range(size)]) == tuple(range(size))
