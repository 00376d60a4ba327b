"""How many of a mix of requests fit: bounds around what filling small clouds up finds."""

import math
from fractions import Fraction
from functools import cache
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.candidates.headroom.fleets import fleets_of
from placement.candidates.headroom.headroom import headroom
from placement.candidates.headroom.mix import of_mix
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from tests.small_clouds import random_cloud
from tests.unit.candidates.filling import takings, whole_cloud_of

seeds = st.integers(0, 2**32).map(Random)
MOST_STATES = 30_000


def plain(chance: Random) -> CandidateRequest:
    classes = chance.sample(("VCPU", "MEMORY_MB"), chance.randint(1, 2))
    return CandidateRequest(groups=(RequestGroup(resources={name: chance.randint(1, 3) for name in classes}),))


def fits_together(ways, numbers, left) -> bool:
    """Tell whether so many of each can be taken, trying every way."""
    states = 0

    @cache
    def fits(numbers: tuple[int, ...], left: tuple[tuple[object, int], ...]) -> bool:
        nonlocal states
        states += 1
        assume(states < MOST_STATES)
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


@given(seeds)
def test_the_bounds_of_a_mix_hold(chance: Random) -> None:
    cloud = {id_: node for id_, node in random_cloud(chance).items() if id_ <= 4 and node.root <= 4}
    requests = {"a": plain(chance), "b": plain(chance)}
    share = Fraction(chance.choice((2, 5, 7)), 10)
    shares = {"a": share, "b": 1 - share}
    fleets = fleets_of(whole_cloud_of(cloud))
    plans = {name: plan_for(request) for name, request in requests.items()}
    found = {name: headroom(plan, fleets) for name, plan in plans.items()}
    bounds = of_mix(shares, plans, found, fleets)
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
    assert not fits(bounds.most + 1)
