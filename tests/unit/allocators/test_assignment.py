"""The assignment problem, compared with trying all assignments."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.assignment import best_assignment
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
def test_no_assignment_is_better(matrix):
    found = {columns: total for total, columns in all_assignments(matrix)}
    best = best_assignment(matrix)
    assert (best is None) == (not found)
    if best is not None:
        assert found[best] == max(found.values())
