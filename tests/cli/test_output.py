"""Tables fit the given width."""

from hypothesis import given
from hypothesis import strategies as st

from placement.cli.output import NARROWEST, table

TEXT = st.text(alphabet="abc -", max_size=40)


def test_columns_are_as_wide_as_their_widest_cell():
    assert list(table(("provider", "used"), [("compute1-numa0", 4), ("nic", 16)])) == [
        "provider        used",
        "--------------  ----",
        "compute1-numa0  4",
        "nic             16",
    ]


def test_the_widest_cells_are_cut_first():
    lines = list(table(("provider", "used"), [("compute1-numa0-gpu0", 4)], width=20))
    assert lines[-1] == "compute1-nu...  4"


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=5), st.integers(3 * NARROWEST + 4, 100))
def test_no_line_is_wider_than_the_terminal(rows, width):
    assert all(len(line) <= width for line in table(("one", "two", "three"), rows, width=width))
