"""Both servers give the same answers: this one on SQLite and on PostgreSQL, beside the reference and the release.

A mismatch is printed as commands for a shell, with the one that repeats it. The seed is derived from the commit and
shown in the header of pytest's report; ``--seed`` sets it. ``--deep`` plays more rounds.
"""

import pytest

from tests.differential.known_differences import REFERENCE
from tests.differential.release.comparison import RELEASE
from tests.differential.rounds import Opponent, Stretch, Tally
from tests.differential.sides import DATABASES, release

ROUNDS = {REFERENCE: 15, RELEASE: 6}
REQUESTS = 12


@pytest.mark.parametrize("kind", DATABASES)
@pytest.mark.parametrize("opponent", ROUNDS, ids=["reference", "release"])
def test_both_servers_answer_alike(opponent: Opponent, kind: str, request: pytest.FixtureRequest) -> None:
    if opponent is RELEASE and release() is None:
        pytest.skip("this clone has too little history")
    seed, tally = request.config.getoption("--seed"), Tally()
    variant = opponent.variants[(seed + DATABASES.index(kind)) % len(opponent.variants)]
    # Each kind of database has rounds of its own.
    first = DATABASES.index(kind) * ROUNDS[opponent]
    stretch = Stretch(opponent, range(first, first + ROUNDS[opponent]), seed, kind, variant, REQUESTS)
    if texts := stretch.play(tally, more=0):
        pytest.fail(texts[0], pytrace=False)
    assert tally.requests.total() > ROUNDS[opponent] * REQUESTS / 2
