"""Roots derived from parents."""

import random

from hypothesis import given
from hypothesis import strategies as st

from placement.domain.tree import true_roots
from tests.examples import examples


def walked(parents: dict[int, int | None], start: int) -> int | None:
    """Walk up step by step; more steps than providers indicate a cycle."""
    here = start
    for _ in range(len(parents)):
        above = parents[here]
        if above is None:
            return here
        if above not in parents:
            return None
        here = above
    return None


@examples(200)
@given(st.integers(0, 10**9))
def test_roots_are_what_walking_up_from_each_provider_finds(seed: int) -> None:
    choice = random.Random(seed)
    ids = range(1, choice.randint(1, 12))
    # Parents may be missing (99) or form cycles, as in a damaged database.
    parents = {id_: choice.choice([None, *ids, 99]) for id_ in ids}
    assert true_roots(parents) == {id_: walked(parents, id_) for id_ in ids}


def test_a_very_deep_tree_is_no_problem() -> None:
    parents: dict[int, int | None] = {id_: id_ - 1 for id_ in range(1, 20_000)}
    parents[0] = None
    assert set(true_roots(parents).values()) == {0}
