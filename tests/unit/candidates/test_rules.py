"""Which requests ask for no more than others: those with a subset of the same rules."""

from itertools import product
from random import Random

import pytest

from placement.candidates.explain.rules import asks_no_more, rules_of, with_count, with_rules
from tests.planner_clouds import random_request


@pytest.mark.parametrize("seed", range(60))
def test_less_rules_ask_no_more_and_others_do(seed: int) -> None:
    chance = Random(seed)
    request = random_request(chance)
    rules = rules_of(request)
    some = [[rule for rule in rules if chance.random() < share] for share in (0.3, 0.6, 0.9, 1)]
    for one, other in product(some, some):
        in_both = with_rules(request, [rule for rule in one if rule in other])
        is_less = in_both == with_rules(request, one)
        assert asks_no_more(with_rules(request, one), with_rules(request, other)) == is_less


def test_less_devices_ask_no_more() -> None:
    request = with_rules(random_request(Random(1)), ())
    suffix = request.groups[0].suffix
    asked = [with_count(request, suffix, count) for count in (1, 2)]
    assert [asks_no_more(one, other) for one, other in product(asked, asked)] == [True, True, False, True]
