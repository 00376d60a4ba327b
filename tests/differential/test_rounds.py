"""Both servers give the same answers: this one on SQLite and on PostgreSQL, beside openstack-placement.

A mismatch is printed as commands for a shell, with the one that repeats it. The seed is derived from the commit and
shown in the header of pytest's report; ``--seed`` sets it.
"""

import pytest

from tests.differential.rounds import Stretch, Tally
from tests.differential.sides import DATABASES

ROUNDS = 10


@pytest.mark.parametrize("kind", DATABASES)
def test_both_servers_answer_alike(kind: str, request: pytest.FixtureRequest) -> None:
    tally, first = Tally(), DATABASES.index(kind) * ROUNDS  # Each kind of database has rounds of its own.
    stretch = Stretch(range(first, first + ROUNDS), request.config.getoption("--seed"), kind)
    if texts := stretch.play(tally, more=0):
        pytest.fail(texts[0], pytrace=False)
    assert tally.requests.total() > ROUNDS
