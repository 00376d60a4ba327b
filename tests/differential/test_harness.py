"""The comparison is effective: it finds deliberate alterations, and nothing without them.

Runs if tests/differential has changed (tests.commits determines since when), and with ``--deep``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.altered.altered_reference import ALTERATIONS
from tests.differential.generate.plan import plan
from tests.differential.rounds import Mismatch, Tally, play
from tests.differential.shrink import shrunk
from tests.differential.sides import Pair, ReferenceSide, compared_with_reference, started_reference

pytestmark = pytest.mark.of_the_comparison

SEED = 4
ROUNDS_THAT_HAVE_TO_DO = 15
FEW = 20
"""What remains is a cloud of a few providers and the one request that shows the difference."""
THOROUGHLY = "ignore_a_limit"


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReferenceSide]:
    with started_reference(tmp_path_factory.mktemp("oracle")) as side:
        yield side


def test_the_reference_answers_like_itself(oracle: ReferenceSide, tmp_path: Path) -> None:
    tally = Tally()
    with compared_with_reference(oracle, tmp_path) as pair:
        found = [play(pair, plan(SEED, number), tally) for number in range(4)]
    assert found == [None] * 4
    assert tally.requests["candidates some"] > 20


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_an_altered_reference_is_found_and_made_small(oracle: ReferenceSide, tmp_path: Path, alteration: str) -> None:
    # Reducing the remaining requests takes minutes; one alteration suffices to show that it works.
    few = None if alteration == THOROUGHLY else FEW
    with compared_with_reference(oracle, tmp_path, alteration=alteration) as pair:
        small = _first_mismatch(pair, few)
    assert small is not None
    assert len(small.sent) <= FEW


def _first_mismatch(pair: Pair, few: int | None) -> Mismatch | None:
    for number in range(ROUNDS_THAT_HAVE_TO_DO):
        requests = plan(SEED, number)
        mismatch = play(pair, requests, Tally())
        if mismatch:
            return shrunk(pair, requests, mismatch, seconds=60, few=few)
    return None
