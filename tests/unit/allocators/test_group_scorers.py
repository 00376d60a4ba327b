"""The scores of quantities and enumerations."""

from fractions import Fraction

import pytest

from placement.allocators.group.tree import (
    ENUMERATION,
    QUANTITY,
    Phase,
    Used,
    Verdict,
    judge_enumeration,
    judge_quantity,
    scorer_by_name,
)

RUNNING = Phase.RUNNING


def test_running_containers_add_up():
    """The paper's equations 19 to 21."""
    verdict = judge_quantity(10, Used(3, own=1), [2, 4], RUNNING)
    assert verdict == Verdict(True, Fraction(9, 10), Used(9, own=7))


@pytest.mark.parametrize(
    ("mask", "fits", "score"),
    [(0b0001, False, 0), (0b0010, True, Fraction(1, 2)), (0b0111, True, 1), (0, True, 0)],
    ids=["GA-15 no bit", "GA-15 one bit", "GA-15 more bits", "GA-15 nothing"],
)
def test_an_attribute_fits_if_one_of_the_values_would_do(mask, fits, score):
    verdict = judge_enumeration(0b0110, Used(), [mask], RUNNING)
    assert (verdict.fits, verdict.score) == (fits, score)
    assert verdict.used.total == 0


def test_values_asked_for_before_count_for_the_score_of_an_attribute():
    assert judge_enumeration(0b0110, Used(0, own=0b0100), [0b0010], RUNNING).score == 1


def test_each_request_for_an_attribute_must_fit_by_itself():
    """If joined into one mask, an unsatisfiable request would pass or not depending on the order of the others."""
    assert not judge_enumeration(0b0110, Used(), [0b0010, 0b1000], RUNNING).fits


def test_what_is_over_capacity_still_gives_nothing_to_those_who_want_nothing():
    """Inventories may be reduced below their usage."""
    assert judge_quantity(4, Used(6), [0], RUNNING) == Verdict(True, Fraction(1), Used(6))
    assert not judge_quantity(4, Used(6), [1], RUNNING).fits


def test_names_that_start_with_enum_are_attributes():
    """The last part of the name decides, regardless of case."""
    assert scorer_by_name("EnumType") is ENUMERATION
    assert scorer_by_name("vendor/enumModel") is ENUMERATION
    assert scorer_by_name("enumerated/cards") is QUANTITY
