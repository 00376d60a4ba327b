"""The fewest things that make something fit, compared with every possible choice."""

import random
from itertools import product

import pytest

from placement.allocators.budget import Budget
from placement.allocators.fair_share.fewest import Basket, FewestSearch, Kind

PLENTY = 10**6


class Problem:
    """Random kinds in two purses; a choice fits if one place gives enough, which sums do not show."""

    def __init__(self, rng: random.Random) -> None:
        self.kinds = [
            Kind(
                gives=(rng.randint(0, 3),),
                takes=(rng.randint(0, 2),),
                values=tuple(sorted(rng.randint(0, 4) for _one in range(rng.randint(1, 3)))),
                purses=tuple(rng.sample([0, 1], rng.randint(0, 2))),
                is_bound=rng.random() < 0.8,
            )
            for _kind in range(rng.randint(1, 5))
        ]
        self.places = [rng.randint(0, 1) for _kind in self.kinds]
        self.needed = (rng.randint(0, 6),)
        self.purses = [(rng.randint(0, 6),), (rng.randint(0, 6),)]
        self.in_one_place = rng.randint(0, 4)

    def nothing(self) -> Basket:
        return Basket(self.kinds, self.needed, self.purses)

    def fits(self, counts) -> bool:
        held = [sum(n for n, place in zip(counts, self.places, strict=True) if place == where) for where in (0, 1)]
        return max(held) >= self.in_one_place

    def keeps(self, counts) -> bool:
        for purse, (room,) in enumerate(self.purses):
            of = [(n, kind) for n, kind in zip(counts, self.kinds, strict=True) if n and purse in kind.purses]
            is_bound = any(kind.is_bound and kind.takes[0] for _n, kind in of)
            if is_bound and sum(n * kind.takes[0] for n, kind in of) > room:
                return False
        return True

    def best(self):
        costs = [
            (sum(counts), sum(sum(kind.values[:n]) for n, kind in zip(counts, self.kinds, strict=True)))
            for counts in product(*[range(len(kind.values) + 1) for kind in self.kinds])
            if sum(n * kind.gives[0] for n, kind in zip(counts, self.kinds, strict=True)) >= self.needed[0]
            and self.keeps(counts)
            and self.fits(counts)
        ]
        return min(costs, default=None)


@pytest.mark.parametrize("seed", range(300))
def test_nothing_that_costs_less_fits(seed: int) -> None:
    problem = Problem(random.Random(seed))
    found = FewestSearch(problem.nothing(), Budget(PLENTY), fits=problem.fits).best(None)
    expected = problem.best()
    assert (found and found[0]) == expected
    if found is not None:
        assert FewestSearch(problem.nothing(), Budget(PLENTY), fits=problem.fits).best(found[0]) is None


def test_where_steps_end_the_order_of_values_decides() -> None:
    """Twenty that differ only in what they give: the best choice is not among the few that can be examined."""
    rng = random.Random(1)
    kinds = [Kind((rng.randint(1, 9),), (0,), (rng.randint(0, 99),)) for _kind in range(20)]
    budget = Budget(3_000)
    found = FewestSearch(Basket(kinds, (60,), []), budget, fits=lambda counts: sum(counts) >= 12).best(None)
    assert found is not None
    assert sum(n * kind.gives[0] for n, kind in zip(found[1], kinds, strict=True)) >= 60
    assert found[0][0] >= 12
    assert budget.was_hit
