"""Whatever the order of their statements, requests have the effect of one after the other.

A fault names the command that repeats it. ``--long`` tries all pairs, otherwise ``--seed`` chooses some.
"""

import itertools
import random
from collections.abc import Iterator

import pytest

from tests.interleavings.operations import OPERATIONS
from tests.interleavings.races import Arena, Fault, opened_arena, races_of, random_races_of

PAIRS, MAX_ORDERS = 3, 12
TRIPLES, ROUNDS = 2, 4
LONG_TRIPLES, LONG_ROUNDS = 200, 20
"""How many are tried, in the short and the long form. The long one tries every order of every pair."""


@pytest.fixture
def arena(database_url: str) -> Iterator[Arena]:
    """Three servers on a database."""
    with opened_arena(database_url) as arena:
        yield arena


@pytest.fixture
def choice(request: pytest.FixtureRequest) -> random.Random:
    """What the seed chooses."""
    return random.Random(request.config.getoption("--seed"))


def test_two_requests_have_the_effect_of_one_after_the_other(
    arena: Arena, choice: random.Random, *, is_long: bool
) -> None:
    pairs = list(itertools.combinations_with_replacement(OPERATIONS, 2))
    faults: list[Fault | None] = []
    for pair in pairs if is_long else choice.sample(pairs, PAIRS):
        faults += itertools.islice(races_of(arena, pair), None if is_long else MAX_ORDERS)
    assert not list(map(str, filter(None, faults)))


def test_three_requests_have_the_effect_of_one_after_the_other(
    arena: Arena, choice: random.Random, *, is_long: bool
) -> None:
    faults: list[Fault | None] = []
    for _ in range(LONG_TRIPLES if is_long else TRIPLES):
        triple = choice.choices(list(OPERATIONS), k=3)
        rounds = LONG_ROUNDS if is_long else ROUNDS
        faults += random_races_of(arena, triple, seed=choice.getrandbits(32), rounds=rounds)
    assert not list(map(str, filter(None, faults)))
