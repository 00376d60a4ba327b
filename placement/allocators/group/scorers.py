"""Scorers: whether a request fits on one allocatable resource, how good that is, and what is in use afterwards.

The seed of the Group Allocator lets every allocatable resource bring a function of its own (its part II-C and III,
equations 17 to 25). Here are the two it needs, quantities and enumerations, and what the search must know about others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple


class Phase(Enum):
    """When a container runs: all running ones at once, those of initialisation before them and one after the other."""

    RUNNING = "running"
    INITIALISATION = "initialisation"


class Used(NamedTuple):
    """What is in use of one allocatable resource, in its own unit.

    Args:
        total: by everybody, the request that is being placed included.
        own: by the request that is being placed alone; the seed's usage "by the pod".
    """

    total: int = 0
    own: int = 0


class Verdict(NamedTuple):
    """What a scorer says.

    Args:
        fits: whether the requests fit.
        score: how well the resource is used after them, 0 to 1; without requests the score of the resource as it is.
        used: what is in use after them.
    """

    fits: bool
    score: Fraction | float
    used: Used


ScoreFunction = Callable[[int, Used, Sequence[int], Phase], Verdict]
"""(allocatable, used before, the amounts one container asks of this resource, phase) -> verdict."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A score function and what the search may assume of it; a wrong promise costs exactness, none only speed.

    Args:
        judge: the function. It must be pure and its scores in 0..1; the order of the amounts it is given must not
            matter, and of amounts that fit together any fewer must fit.
        adds_up: several amounts count as their sum, running ones fit only while all in use, they included, is at most
            what is allocatable, and may be judged one after the other.
        diminishing: what does not fit fits no better when more is in use, and raises the score no more than before.
    """

    judge: ScoreFunction
    adds_up: bool = False
    diminishing: bool = False


def judge_quantity(allocatable: int, used: Used, requested: Sequence[int], phase: Phase) -> Verdict:
    """Judge an amount that is consumed: the score is the share in use afterwards.

    Running containers add up. One of initialisation takes only what it needs beyond all running ones, because it has
    finished before they start (vector GA-25):

    >>> judge_quantity(400, Used(200, own=100), [60], Phase.INITIALISATION).used
    Used(total=200, own=100)
    >>> judge_quantity(400, Used(200, own=100), [150], Phase.INITIALISATION).used
    Used(total=250, own=150)

    Asking for nothing fits always, also where the resource is over its capacity.
    """
    amount = sum(requested)
    own = used.own + amount if phase is Phase.RUNNING else max(used.own, amount)
    total = used.total + own - used.own
    share = Fraction(min(total, allocatable), allocatable) if allocatable > 0 else Fraction(0)
    return Verdict(amount == 0 or total <= allocatable, share, Used(total, own))


def judge_enumeration(allocatable: int, used: Used, requested: Sequence[int], phase: Phase) -> Verdict:  # noqa: ARG001
    """Judge an attribute: bit masks of what it is and of what would do; nothing is consumed.

    Each request fits if it asks for nothing or for at least one of the bits; the score is the share of the bits that
    the requests name together (vector GA-15).

    >>> judge_enumeration(0b0110, Used(), [0b0111], Phase.RUNNING)
    Verdict(fits=True, score=Fraction(1, 1), used=Used(total=0, own=7))
    """
    named = used.own
    for mask in requested:
        named |= mask
    bits = allocatable.bit_count()
    score = Fraction((allocatable & named).bit_count(), bits) if bits else Fraction(0)
    return Verdict(all(not mask or mask & allocatable for mask in requested), score, Used(used.total, named))


QUANTITY = Scorer(judge_quantity, adds_up=True, diminishing=True)
ENUMERATION = Scorer(judge_enumeration, diminishing=True)


class Units(NamedTuple):
    """Which amounts can be had of a resource: each at least ``least`` and in steps, not more than ``most`` together."""

    least: int = 0
    most: int | None = None
    step: int = 1

    def allow(self, amounts: Sequence[int], together: int) -> bool:
        """Tell whether amounts can be had that make up so much together with those before them.

        >>> Units(least=2, most=6, step=2).allow([4, 2], 6), Units(most=6).allow([4], 8), Units(step=2).allow([1], 2)
        (True, False, False)
        """
        fits = all([amount == 0 or (amount >= self.least and amount % self.step == 0) for amount in amounts])
        return fits and (self.most is None or together <= self.most)


ANY_AMOUNT = Units()


@lru_cache(maxsize=1024)
def in_units(scorer: Scorer, units: Units) -> Scorer:
    """Return a scorer that refuses in addition what cannot be had in these units."""
    if units == ANY_AMOUNT:
        return scorer

    def judge(allocatable: int, used: Used, requested: Sequence[int], phase: Phase) -> Verdict:
        verdict = scorer.judge(allocatable, used, requested, phase)
        is_allowed = not any(requested) or units.allow(requested, verdict.used.own)
        return verdict._replace(fits=verdict.fits and is_allowed)

    return replace(scorer, judge=judge)


ScorerChoice = Callable[[str], Scorer]
"""The scorer of an allocatable resource, by its base name."""


def scorer_by_name(base: str) -> Scorer:
    """Return the scorer the seed gives a resource: names whose last part starts with ``enum`` are enumerations.

    >>> scorer_by_name("enumType") is ENUMERATION, scorer_by_name("cards") is QUANTITY
    (True, True)
    """
    return ENUMERATION if base.rsplit("/", 1)[-1].lower().startswith("enum") else QUANTITY
