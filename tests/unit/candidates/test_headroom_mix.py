"""How many copies of a mix of requests fit: the result of filling small clouds, or bounds around it."""

import math
from fractions import Fraction
from functools import cache
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.allocators.bundle_packing import Copies
from placement.candidates.headroom.counting import CopyCounter
from placement.candidates.headroom.mix import of_mix
from placement.candidates.headroom.totals import headroom
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from tests.small_clouds import random_cloud, random_request
from tests.unit.candidates.filling import cloud_in_forms, takings

seeds = st.integers(0, 2**32).map(Random)
MAX_STATES = 30_000


def plain(chance: Random) -> CandidateRequest:
    classes = chance.sample(("VCPU", "MEMORY_MB"), chance.randint(1, 2))
    return CandidateRequest(groups=(RequestGroup(resources={name: chance.randint(1, 3) for name in classes}),))


def fits_together(ways, numbers, left) -> bool:
    """Return whether these numbers of copies fit together, trying every way."""
    states = 0

    @cache
    def fits(numbers: tuple[int, ...], left: tuple[tuple[object, int], ...]) -> bool:
        nonlocal states
        states += 1
        assume(states < MAX_STATES)
        which = next((index for index, number in enumerate(numbers) if number), None)
        if which is None:
            return True
        fewer = tuple(number - (index == which) for index, number in enumerate(numbers))
        for way in ways[which]:
            rest = {cell: free - way.get(cell, 0) for cell, free in left}
            if min(rest.values()) >= 0 and fits(fewer, tuple(rest.items())):
                return True
        return False

    return fits(tuple(numbers), tuple(left.items()))


def drawn_mix(chance: Random, request) -> tuple[dict[str, CandidateRequest], dict[str, Fraction]]:
    """Return two or three requests, and the share of each in all copies."""
    names = "abc"[: chance.choice((2, 2, 3))]
    weights = {name: chance.choice((1, 2, 3, 7)) for name in names}
    requests = {name: request(chance) for name in names}
    return requests, {name: Fraction(weight, sum(weights.values())) for name, weight in weights.items()}


def bounds_of_mix(requests, shares, in_forms) -> Copies:
    counters = {name: CopyCounter(plan_for(request), in_forms) for name, request in requests.items()}
    return of_mix(shares, counters, {name: headroom(counter) for name, counter in counters.items()})


def compare(requests, shares, cloud) -> Copies:
    """Check the bounds of a mix in a cloud, and return them."""
    in_forms = cloud_in_forms(cloud)
    bounds = bounds_of_mix(requests, shares, in_forms)
    ways = [takings(request, cloud) for request in requests.values()]
    left = {
        (node.id, name): max(0, int((stock.total - stock.reserved) * stock.allocation_ratio) - stock.used)
        for node in cloud.values()
        for name, stock in node.inventories.items()
    }
    assume(left)

    def fits(copies: int) -> bool:
        return fits_together(ways, [math.floor(copies * part) for part in shares.values()], left)

    assert fits(bounds.least)
    assert not fits(bounds.max_count + 1)
    return bounds


@given(seeds)
def test_the_bounds_of_any_mix_hold(chance: Random) -> None:
    compare(*drawn_mix(chance, random_request), random_cloud(chance))


def test_nearly_every_mix_in_a_small_cloud_is_known_exactly() -> None:
    """Includes pools that several requests use."""
    found = []
    for seed in range(100):
        chance = Random(seed)
        requests, shares = drawn_mix(chance, random_request if seed % 2 else plain)
        in_forms = cloud_in_forms(random_cloud(chance))
        found.append(bounds_of_mix(requests, shares, in_forms).is_exact)
    assert sum(found) >= 90
