"""Gangs on a fabric, compared with brute force."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators import Budget
from placement.allocators.fabric import Fabric, best_assignment
from placement.allocators.fabric.search import MembersByKind, Mix, Posting, Site
from tests.examples import examples

INSTANCES = 60
Seeds = Callable[..., range]


class Instance:
    """A small fabric and a gang: what sites can really hold is a subset of what the sums allow."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        kinds = chance.choice((1, 1, 2, 2, 3))
        resources = chance.choice((1, 2))
        self.gang = MembersByKind(
            tuple(chance.randint(1, 4 if kinds == 1 else 2) for _ in range(kinds)),
            [[chance.choice((0, 1, 1, 2)) for _ in range(resources)] for _ in range(kinds)],
        )
        has_parts = chance.random() < 0.3
        self.sites = []
        for number in range(chance.randint(1, 5)):
            free = [chance.randint(0, 5) for _ in range(resources)] if chance.random() < 0.9 else None
            part = chance.randint(1, 3) if has_parts else None
            self.sites.append(Site(number, chance.choice("abc"), free, part=part))
        self.lacking = {site.name: self._lacking() for site in self.sites}

    def _lacking(self) -> list[Mix]:
        chance = self.chance
        mixes = [
            tuple(chance.randint(0, most) for most in self.gang.members) for _ in range(chance.choice((0, 0, 1, 2)))
        ]
        return [mix for mix in mixes if any(mix)]

    def holds(self, postings: Sequence[Posting]) -> list[Posting]:
        return [
            (site, one) for site, mix in postings for one in self.lacking[site.name] if all(map(int.__ge__, mix, one))
        ]

    def is_way(self, postings: list[Posting]) -> bool:
        parts = [site.part for site, mix in postings if site.part is not None for _ in range(sum(mix))]
        fits = all(site.may_hold(mix, self.gang) for site, mix in postings) and not self.holds(postings)
        return fits and len(parts) == len({*parts})

    def ways(self, members: Mix) -> Iterator[list[Posting]]:
        """Yield all ways to distribute members over sites; members of one kind are interchangeable."""
        wanted = [kind for kind, number in enumerate(members) for _ in range(number)]
        seen = set()
        for chosen in product(range(len(self.sites)), repeat=len(wanted)):
            mixes = [[0] * len(members) for _ in self.sites]
            for kind, at in zip(wanted, chosen, strict=True):
                mixes[at][kind] += 1
            way = tuple(map(tuple, mixes))
            if way not in seen:
                seen.add(way)
                postings = [(site, mix) for site, mix in zip(self.sites, way, strict=True) if any(mix)]
                if self.is_way(postings):
                    yield postings

    def order(self, postings: list[Posting]) -> list[tuple[int, int]]:
        """Return the position of each site in the order: by place, with places ordered by their first site."""
        places = list(dict.fromkeys(site.place for site in self.sites))
        return sorted((places.index(site.place), site.name) for site, _mix in postings)


def worth(postings: list[Posting]) -> tuple[int, int]:
    return len({site.place for site, _mix in postings}), len({site.name for site, _mix in postings})


def summed(postings: list[Posting]) -> Mix:
    return tuple(map(sum, zip(*[mix for _site, mix in postings], strict=True)))


@pytest.mark.parametrize("most_places", [1, 2, 3])
def test_a_gang_is_in_the_fewest_places_and_on_the_fewest_sites(most_places: int, seeds: Seeds) -> None:
    for seed in seeds(INSTANCES, times=100):
        instance = Instance(Random(seed))
        ways = [way for way in instance.ways(instance.gang.members) if worth(way)[0] <= most_places]
        budget = Budget(10_000)
        postings = Fabric(instance.sites, instance.gang, instance.holds).together(
            most_places=most_places, budget=budget
        )
        assert not budget.was_hit
        if postings is None:
            assert ways == [], seed
            continue
        best = min(map(worth, ways))
        assert instance.is_way(postings), seed
        assert summed(postings) == instance.gang.members, seed
        assert worth(postings) == best, seed
        if len(instance.gang.members) == 1:
            assert instance.order(postings) == min(instance.order(way) for way in ways if worth(way) == best), seed


def test_each_group_has_a_place_of_its_own(seeds: Seeds) -> None:
    for seed in seeds(INSTANCES, times=100):
        instance = Instance(Random(seed))
        for site in instance.sites:
            site.part = None
        groups = [
            instance.gang.members,
            instance.chance.choice([instance.gang.members, (1,) * len(instance.gang.members)]),
        ]
        instance.gang = MembersByKind(tuple(map(max, *groups)), instance.gang.amounts)
        ways = [[way for way in instance.ways(group) if worth(way)[0] == 1] for group in groups]
        pairs = [pair for pair in product(*ways) if pair[0][0][0].place != pair[1][0][0].place]
        postings = Fabric(instance.sites, instance.gang, instance.holds).together_each(groups, budget=Budget(10_000))
        if postings is None:
            assert pairs == [], seed
            continue
        assert instance.is_way(postings), seed
        assert summed(postings) == tuple(map(sum, zip(*groups, strict=True))), seed
        assert worth(postings) == min(worth([*left, *right]) for left, right in pairs), seed


def test_members_who_want_the_same_are_placed_without_going_back() -> None:
    """1,000 sites in 25 places; a backtracking search would take many times as many steps."""
    sites = [Site(number, number % 25, [number % 9]) for number in range(1000)]
    budget = Budget(1_000)
    found = Fabric(sites, MembersByKind((64,), [[1]]), lambda postings: []).together(most_places=1, budget=budget)
    assert found is not None
    assert worth(found) == (1, 9)
    assert not budget.was_hit


def test_who_is_in_the_way_of_a_search_is_told() -> None:
    sites = [Site(1, "a", [3]), Site(2, "a", [1]), Site(3, "b", [2])]
    fabric = Fabric(
        sites,
        MembersByKind((6,), [[1]]),
        lambda postings: [(site, (2,)) for site, (number,) in postings if site.name == 1 and number > 1],
    )
    assert fabric.together(most_places=1, budget=Budget(100)) is None
    assert fabric.upper_bounds(0) == {"a": 4, "b": 2}
    assert fabric.together(most_places=2, budget=Budget(100)) is None
    assert fabric.upper_bounds(0) == {"a": 2, "b": 2}


@st.composite
def weights(draw, *, most: int = 6) -> list[list[int | None]]:
    """Return a matrix with few distinct weights, so that there are ties; None forbids an assignment."""
    width = draw(st.integers(0, most))
    row = st.lists(st.sampled_from([None, -2, 0, 1, 1, 2, 3, 10**30]), min_size=width, max_size=width)
    return draw(st.lists(row, max_size=5))


def all_assignments(matrix):
    """Yield (total, columns) of every assignment that is not forbidden, in the order of columns."""
    width = len(matrix[0]) if matrix else 0
    for columns in permutations(range(width), len(matrix)):
        chosen = [matrix[row][column] for row, column in enumerate(columns)]
        if None not in chosen:
            yield sum(chosen), columns


@examples(105)
@given(weights())
def test_no_assignment_is_better(matrix):
    found = {columns: total for total, columns in all_assignments(matrix)}
    best = best_assignment(matrix)
    assert (best is None) == (not found)
    if best is not None:
        assert found[best] == max(found.values())
