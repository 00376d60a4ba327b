"""How many copies fit, compared with brute force on thousands of small problems."""

from functools import cache
from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators import Budget
from placement.allocators.bundle_packing import BundlePacking, Copies, drawn

seeds = st.integers(0, 2**32).map(Random)


def most_bundles(bundles, free) -> int:
    """Try every bundle next, then everything after it."""

    @cache
    def most(left: tuple[int, ...]) -> int:
        found = 0
        for bundle in bundles:
            rest = tuple(amount - bundle.get(cell, 0) for cell, amount in enumerate(left))
            if min(rest) >= 0:
                found = max(found, 1 + most(rest))
        return found

    return most(tuple(free))


def random_bundles(chance: Random):
    cells = chance.randint(1, 4)
    bundles = [
        {cell: chance.randint(1, 4) for cell in chance.sample(range(cells), chance.randint(1, cells))}
        for _ in range(chance.randint(1, 6))
    ]
    kinds = [chance.sample(range(cells), chance.randint(1, cells)) for _ in range(chance.randint(0, 3))]
    return bundles, [chance.randint(0, 9) for _ in range(cells)], kinds


@given(seeds)
def test_as_many_bundles_fit_as_trying_everything_finds(chance: Random) -> None:
    bundles, free, kinds = random_bundles(chance)
    found = BundlePacking(bundles, kinds).copies(free, budget=Budget(10**6))
    expected = most_bundles(bundles, free)
    assert found == Copies(expected, expected)


@given(seeds, st.integers(0, 3))
def test_what_few_steps_find_are_bounds(chance: Random, steps: int) -> None:
    bundles, free, kinds = random_bundles(chance)
    found = BundlePacking(bundles, kinds).copies(free, budget=Budget(steps))
    assert found.least <= most_bundles(bundles, free) <= found.max_count


@given(seeds)
def test_pools_give_as_much_as_any_assignment(chance: Random) -> None:
    pools = range(chance.randint(1, 3))
    room = {pool: chance.randint(0, 3) for pool in pools}
    sets = [frozenset(chance.sample(pools, chance.randint(1, len(pools)))) for _ in range(chance.randint(1, 3))]
    wanted = {one: chance.randint(0, 2) for one in sets}
    who = [one for one, number in wanted.items() for _ in range(number)]
    most = 0
    for choice in product(*[[None, *sorted(one)] for one in who]):
        if all(choice.count(pool) <= room[pool] for pool in pools):
            most = max(most, sum(pool is not None for pool in choice))
    assert drawn(wanted, room) == most


def test_the_largest_cells_cost_no_more_than_the_budget() -> None:
    """Where a bundle fits 2^45 times, there are as many branches to prune."""
    bundles = [{0: 1, 1: 4}, {0: 3, 2: 5}, {1: 2, 2: 3}, {0: 1, 3: 4}]
    budget = Budget(1000)
    copies = BundlePacking(bundles, [{0}, {1, 2, 3}]).copies([2**45] * 4, budget=budget)
    assert 0 < copies.least <= copies.max_count
