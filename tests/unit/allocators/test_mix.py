"""How many copies of a mix fit into places, compared with adding up every choice for every place."""

from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.headroom import Budget, Copies, JointPacking, MixedRoom, copies_of_mix, largest, most_in_all
from placement.allocators.headroom.joint import parts_of

seeds = st.integers(0, 2**32).map(Random)
MORE_THAN_FIT = 10**6


def added_up(shares, rooms) -> int:
    """Return how many copies fit with the best choice of counts for every place."""
    sums = {(0,) * len(shares)}
    for room in rooms:
        for _ in range(room.places):
            sums = set(largest([tuple(map(int.__add__, one, counts)) for one in sums for counts in room.sure]))
    return max(min(map(most_in_all, one, shares)) for one in sums)


@given(seeds)
def test_a_mix_is_what_the_best_choice_for_every_place_adds_up_to(chance: Random) -> None:
    weights = [chance.randint(1, 9) for _ in range(chance.choice((1, 2, 2, 3)))]
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    rooms = []
    for _ in range(chance.randint(0, 6)):
        counts = largest([tuple(chance.randint(0, 6) for _ in weights) for _ in range(chance.randint(1, 5))])
        rooms.append(MixedRoom(counts, counts, chance.choice((1, 1, 2, 3))))
    expected = added_up(shares, rooms)
    assert copies_of_mix(shares, rooms, MORE_THAN_FIT) == Copies(expected, expected)


def test_a_request_may_have_next_to_no_share_of_a_mix() -> None:
    """The inverse of such a share is no float."""
    rooms = [MixedRoom([(4, 0), (2, 1)], [(4, 0), (2, 1)], places=3)]
    share = Fraction(1, 10**400)
    found = copies_of_mix([1 - share, share], rooms, MORE_THAN_FIT)
    assert found == Copies(*[added_up([1 - share, share], rooms)] * 2)


def test_many_places_have_close_bounds() -> None:
    """A thousand places of different sizes have no exact answer, but two bounds close together."""
    chance = Random(1)
    rooms = []
    for _ in range(1000):
        size = chance.randint(4, 40)
        counts = largest([(one, (size - 2 * one) // 5) for one in range(size // 2 + 1)])
        rooms.append(MixedRoom(counts, counts))
    least, most = copies_of_mix([Fraction(7, 10), Fraction(3, 10)], rooms, MORE_THAN_FIT)
    assert 0.99 * most < least <= most


def random_bundles(chance: Random, cells: int):
    ways = [{cell: chance.randint(1, 3) for cell in chance.sample(range(cells), chance.randint(1, 2))} for _ in "abc"]
    return ways[: chance.randint(1, 3)]


def all_that_fit(bundles, free: dict[int, int]) -> set[tuple[int, ...]]:
    """Return all combinations of copies that fit, by trying every sequence."""
    found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    waiting = [((0,) * len(bundles), tuple(free.values()))]
    while waiting:
        counts, left = waiting.pop()
        if left in found.setdefault(counts, set()):
            continue
        found[counts].add(left)
        for number, ways in enumerate(bundles):
            for way in ways:
                rest = tuple(much - way.get(cell, 0) for cell, much in enumerate(left))
                if min(rest) >= 0:
                    waiting.append((tuple(n + (i == number) for i, n in enumerate(counts)), rest))
    return {*found}


@given(seeds)
def test_bundles_of_several_requests_are_packed_together(chance: Random) -> None:
    """The frontier is exact, what is found without a search fits, and the bound from sums is not too low."""
    free = {cell: chance.randint(0, 5) for cell in range(3)}
    bundles = [random_bundles(chance, len(free)) for _ in range(chance.choice((2, 2, 3)))]
    packing = JointPacking(bundles, [[0, 1], [2]])
    fitting = all_that_fit(bundles, free)
    caps = tuple(max(counts[number] for counts in fitting) for number in range(len(bundles)))
    found = packing.frontier(free, caps=caps, budget=Budget(100_000))
    assert found == largest(fitting)
    shares = [Fraction(1, len(bundles))] * len(bundles)
    assert fitting.issuperset(packing.some(free, caps=caps, shares=shares))
    bounding = packing.bounding(free, caps=caps, budget=Budget(chance.choice((5, 100_000))))
    assert all(any(all(map(int.__ge__, most, counts)) for most in bounding) for counts in fitting)
    assert packing.frontier(free, caps=caps, budget=Budget(0)) is None
    assert parts_of(5, shares) == (5 // len(bundles),) * len(bundles)
