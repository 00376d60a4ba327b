"""The incremental matching, compared with trying everything at each step."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.compose.matching import Matching
from tests.examples import examples

COLUMNS = (1, 2, 3, 4)


def possible(rows: dict[int, list[int]], places: dict[int, int]) -> bool:
    return any(all(choice.count(column) <= places[column] for column in choice) for choice in product(*rows.values()))


@examples(105)
@given(
    st.lists(st.lists(st.sampled_from(COLUMNS), unique=True), max_size=5),
    st.fixed_dictionaries({column: st.integers(0, 2) for column in COLUMNS}),
    st.data(),
)
def test_a_row_is_fixed_exactly_if_the_others_can_still_be_matched(rows, places, data):
    open_rows = dict(enumerate(rows))
    matching = Matching(open_rows, places)
    assert matching.is_complete == possible(open_rows, places)
    fixed: list[int] = []
    where: dict[int, int] = {}
    for _ in range(data.draw(st.integers(0, 12))):
        waiting = [row for row in open_rows if row not in fixed and open_rows[row]]
        if fixed and (not waiting or data.draw(st.booleans())):
            matching.free(fixed.pop())
        elif waiting:
            row = data.draw(st.sampled_from(waiting))
            column = data.draw(st.sampled_from(rows[row]))
            chosen = {**open_rows, **{other: [where[other]] for other in fixed}, row: [column]}
            if expected := possible(chosen, places):
                fixed.append(row)
                where[row] = column
            assert matching.fix(row, column) == expected
