"""Both servers give the same answers, round by round, this one on SQLite and on PostgreSQL in turn.

A mismatch is shrunk and printed as a shell script. The seed is derived from the commit and shown in the header of
pytest's report; ``--seed`` sets it. To repeat round 17 of seed 1::

    python -m tests.differential --seed 1 --first 17 --rounds 1
"""

import pytest

from tests.differential.generate.plan import plan
from tests.differential.rounds import Tally, mismatch_script, play
from tests.differential.shrink import shrunk
from tests.differential.sides import Pair

SHRINK_S = 60


def test_both_servers_answer_a_round_alike(pairs: list[Pair], number: int, request: pytest.FixtureRequest) -> None:
    pair = pairs[number % len(pairs)]
    seed = request.config.getoption("--seed")
    requests = plan(seed, number)
    mismatch = play(pair, requests, Tally())
    if mismatch:
        small = shrunk(pair, requests, mismatch, seconds=SHRINK_S)
        pytest.fail(mismatch_script(small, f"round {number} of seed {seed} on {pair.subject.name}"), pytrace=False)
