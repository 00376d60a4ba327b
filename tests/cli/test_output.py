"""Lists keep names and numbers whole at every width, and every format can be read back."""

import csv
import io
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placement.cli.output import Bar, PrintedCell, PrintedTable, Report, whole
from tests.cli.commands import Command
from tests.rows_of_a_cloud import fill

NAMES = st.text(alphabet="abc-19", min_size=1, max_size=40)
ROWS = st.lists(
    st.tuples(
        NAMES.map(whole), st.integers(-(10**12), 10**12), st.floats(0, 2).map(Bar), st.lists(NAMES, max_size=4), NAMES
    ),
    min_size=1,
    max_size=5,
)
HEADER = ("host name", "free", "", "lacks", "state of it")


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert list(PrintedTable(("provider", "used"), [("compute1-numa0", 4), ("nic", 1600)]).lines()) == [
        "provider         used",
        "--------------  -----",
        "compute1-numa0      4",
        "nic             1,600",
    ]


@given(ROWS, st.integers(1, 140))
def test_no_name_and_no_number_is_ever_cut(rows: list[tuple[object, ...]], width: int) -> None:
    lines = list(PrintedTable(HEADER, rows).lines(width))
    words = " ".join(lines).replace(",", " ").split()
    for name, free, *_ in rows:
        assert name.text in words
        assert f"{free:,}".replace(",", " ") in " ".join(words)
    left_out = lines[-1].partition("room: ")[2]
    if "lacks" not in left_out:
        assert all(part in words for *_, lacks, _ in rows for part in lacks)
    if "state" not in left_out:
        assert all(state in words for *_, state in rows)


@given(ROWS, st.integers(60, 140))
def test_lines_fit_where_the_first_two_columns_do(rows: list[tuple[object, ...]], width: int) -> None:
    assert all(len(line) <= width for line in PrintedTable(HEADER, rows).lines(width) if not line.startswith("("))


def test_bars_go_first_then_texts_are_wrapped_then_the_last_columns_go() -> None:
    table = PrintedTable(
        ("flavor", "fits", "", "lacking"), [("large", 3, Bar(0.01), ["VCPU and MEMORY_MB (12)", "PGPU (5)"])]
    )
    assert list(table.lines(80))[2] == "large      3  #...................  VCPU and MEMORY_MB (12), PGPU (5)"
    assert list(table.lines(60))[2] == "large      3  VCPU and MEMORY_MB (12), PGPU (5)"
    assert list(table.lines(40))[2:] == ["large      3  VCPU and MEMORY_MB (12),", "              PGPU (5)"]
    assert list(table.lines(30))[2:] == ["large      3", "(not shown for want of room: lacking; --columns chooses)"]
    assert list(table.chosen(["lacking", "flavor"]).lines(30, all_columns=True))[2] == "VCPU and MEMORY_MB (12),  large"


@pytest.fixture
def cloud(placement: Command) -> None:
    """The default database, with a cloud in it."""
    placement.with_database(fill)


LISTS = {
    "fair-share": "queue",
    "headroom resources=VCPU:1": "most room",
    "explain resources=VCPU:1": "condition",
    "journal": "time",
    "db current": "what",
    "db check": "found",
}


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize("command", LISTS)
def test_every_list_can_be_read_by_programs(placement: Command, command: str) -> None:
    def printed(name: str) -> str:
        done = placement.run(*command.split(), "--format", name)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    lines = printed("json").splitlines() if command == "journal" else [printed("json")]
    documents = [json.loads(line) for line in lines]
    as_yaml = yaml.safe_load(printed("yaml"))
    assert _without_age(as_yaml) == _without_age(documents if command == "journal" else documents[0])
    rows = csv.DictReader(io.StringIO(printed("csv")))
    assert (rows.fieldnames or [""])[0] == LISTS[command]
    assert all(None not in row and None not in row.values() for row in rows)


@pytest.mark.usefixtures("cloud")
def test_a_server_answers_as_its_database(placement: Command) -> None:
    further = ["audit --older-than 0", "journal --provider host", "host list", "host show host"]
    questions = [question for question in [*LISTS, *further] if not question.startswith("db ")]
    told = [placement.run(*question.split()) for question in questions]
    assert {done.stderr for done in told} == {""}
    with placement.running("serve", "--port", "0", "--workers", "1") as server:
        url = server.url()
        answered = [placement.run(*question.split(), "--url", url) for question in questions]
    assert [(done.returncode, done.stdout) for done in answered] == [(done.returncode, done.stdout) for done in told]


def _without_age(document: object) -> object:
    return {**document, "age_s": None} if isinstance(document, dict) else document


@pytest.mark.usefixtures("cloud")
def test_columns_are_chosen_by_name(placement: Command) -> None:
    done = placement.run("fair-share", "--format", "csv", "--columns", "amount, queue")
    assert done.stdout.splitlines()[0] == "amount,queue"
    wrong = placement.run("fair-share", "--columns", "amout")
    assert wrong.returncode == 2
    assert "There is no column 'amout'; the columns are: queue, holds" in wrong.stderr


def test_programs_get_exact_values() -> None:
    report = Report(
        [],
        [PrintedTable(("queue", "", "memory"), [(PrintedCell("  p1", "root/p1"), Bar(1), PrintedCell("1 GiB", 1024))])],
    )
    assert report.csv() == "queue,memory\nroot/p1,1024\n"
