"""Answers are those of the release, on SQLite and on PostgreSQL, with a configuration that depends on the seed.

Many more rounds: ``python -m tests.differential.release --rounds 3000``.
"""

import pytest

from tests.differential.release.__main__ import mismatch_text
from tests.differential.release.rounds import Tally, chance_of, play, shortened
from tests.differential.release.sides import VARIANTS, release, running_pair

ROUNDS, REQUESTS = 6, 12


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_answers_are_those_of_the_release(kind: str, request: pytest.FixtureRequest) -> None:
    if release() is None:
        pytest.skip("this clone has too little history")
    seed = request.config.getoption("--seed")
    variant = [*VARIANTS][(seed + (kind == "sqlite")) % len(VARIANTS)]
    tally = Tally()
    with running_pair(kind, variant) as pair:
        for number in range(ROUNDS):
            mismatch = play(pair, chance_of(seed, number), requests=REQUESTS, tally=tally)
            if mismatch is not None:
                again = f"--seed {seed} --requests {REQUESTS} --database {kind} --variant {variant}"
                pytest.fail(mismatch_text(shortened(pair, mismatch), again, (0, number)), pytrace=False)
    assert tally.requests.total() > ROUNDS * REQUESTS / 2
