"""Local search: improves a choice by exchanging one or two things for another one, within a bounded effort."""

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from placement.allocators.fair_share.basket import Basket

MAX_LOOKS = 20_000
"""How many kinds to look at in one run."""


def exchange(basket: Basket) -> None:
    """Improve a choice: put back one or two things for a single other one, as long as that helps."""
    tries = MAX_LOOKS // len(basket.kinds)
    is_better = True
    while is_better and tries > 0:
        is_better = False
        for away in _to_put_back(basket):
            tries -= 1
            is_better = _exchanged(basket, away)
            if is_better or tries <= 0:
                break


def _to_put_back(basket: Basket) -> Iterator[tuple[int, ...]]:
    held = [number for number, count in enumerate(basket.counts) if count]
    yield from [(number,) for number in held]
    for number, other in combinations_with_replacement(held, 2):
        if other != number or basket.counts[number] > 1:
            yield number, other


def _exchanged(basket: Basket, away: Sequence[int]) -> bool:
    """Replace these by the best single thing that is enough; undo and return False if that is no better."""
    before = basket.cost
    for number in away:
        basket.take(number, -1)
    best = min(_single(basket), default=None)
    if best is not None:
        basket.take(best[1], 1)
        if basket.cost < before:
            basket.drop_unneeded()
            return True
        basket.take(best[1], -1)
    for number in away:
        basket.take(number, 1)
    return False


def _single(basket: Basket) -> Iterator[tuple[int, int]]:
    """Yield the kinds of which one thing would be enough, each with that thing's value."""
    needs = [(place, need) for place, need in enumerate(basket.needed) if need > 0]
    for number, kind in enumerate(basket.kinds):
        is_left = basket.counts[number] < len(kind.values)
        if is_left and all([need <= kind.gives[place] for place, need in needs]) and basket.useful(number):
            yield kind.values[basket.counts[number]], number
