"""Depth-first search for the first way to place a gang within given numbers of places and sites, pruned by sums.

Each sum is an upper bound on one kind of member or one resource: the largest values of any sites, counting each part of
the fabric once. For a single kind of member the bound is tight with respect to what is known, so that its search goes
straight on.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from placement.allocators import Budget

Mix = tuple[int, ...]
"""The number of members of each kind."""


@dataclass(frozen=True, slots=True)
class MembersByKind:
    """A gang's members by kind; ``amounts`` has how much of each resource one member of each kind takes."""

    members: Mix
    amounts: Sequence[Sequence[int]]


@dataclass(slots=True, eq=False)
class Site:
    """A site in a place, the sites of which are tried in order.

    Args:
        free: an upper bound on what is free of each resource; None if unknown.
        part: at most one member may be in each part; None if there is no such rule.
        refused: mixes that it is known not to hold, which rules out all larger ones.
    """

    name: int
    place: Hashable
    free: Sequence[float] | None = None
    part: Hashable = field(default=None, kw_only=True)
    refused: list[Mix] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.free = None if self.free is None else tuple(self.free)

    @property
    def summed_as(self) -> Hashable:
        """The part of the fabric that it counts for in sums: of the sites of a part only one."""
        return self.name if self.part is None else ("part", self.part)

    def may_hold(self, mix: Mix, gang: MembersByKind) -> bool:
        """Tell whether nothing known rules out a mix."""
        if self.part is not None and sum(mix) > 1:
            return False
        if any(all(map(int.__ge__, mix, refused)) for refused in self.refused):
            return False
        if self.free is None:
            return True
        taken = [sum(map(int.__mul__, mix, column)) for column in zip(*gang.amounts, strict=True)]
        return all(amount <= free for amount, free in zip(taken, self.free, strict=True))

    def bound(self, kind: int, gang: MembersByKind) -> int:
        """Return an upper bound on how many members of a kind it holds when alone."""
        bound = gang.members[kind] if self.part is None else min(1, gang.members[kind])
        if self.free is not None:
            room = zip(gang.amounts[kind], self.free, strict=True)
            bound = min([bound, *[int(free // amount) for amount, free in room if amount]])
        for refused in self.refused:
            if not any([*refused[:kind], *refused[kind + 1 :]]):
                bound = min(bound, refused[kind] - 1)
        return max(0, bound)


Posting = tuple[Site, Mix]
"""A site and who goes there."""

Holds = Callable[[Sequence[Posting]], Sequence[Posting]]
"""The oracle: returns for each site that does not hold its posting a mix no larger that it does not hold either.

It may add further sites.
"""


def _largest_mixes(site: Site, gang: MembersByKind, remaining: Mix) -> Iterator[Mix]:
    """Yield the maximal mixes of the remaining members that a site may hold."""
    for mix in _mixes(site, gang, remaining, ()):
        larger = [
            (*mix[:kind], number + 1, *mix[kind + 1 :]) for kind, number in enumerate(mix) if number < remaining[kind]
        ]
        if any(mix) and not any(site.may_hold(larger_mix, gang) for larger_mix in larger):
            yield mix


def _mixes(site: Site, gang: MembersByKind, remaining: Mix, chosen: Mix) -> Iterator[Mix]:
    kind = len(chosen)
    none = (0,) * (len(remaining) - kind - 1)
    for number in range(min(remaining[kind], site.bound(kind, gang)), -1, -1):
        if site.may_hold((*chosen, number, *none), gang):
            if not none:
                yield (*chosen, number)
                return
            yield from _mixes(site, gang, remaining, (*chosen, number))


MAX_CELLS = 500_000
"""The largest table to build; beyond that, places are summed regardless of their order."""


class FabricSums:
    """Upper bounds for the sites of some places."""

    def __init__(self, places: Sequence[Sequence[Site]], gang: MembersByKind, *, most_places: int) -> None:
        self._gang = gang
        self._worths = _worths(places, gang)
        self._needs = self.need(gang.members)
        sums = range(len(self._worths))
        self._suffixes = cache(lambda place: [self._suffix_sums(places[place], index) for index in sums])
        """The most that the sites of a place from each one on have: sum by sum, site by site."""
        self._whole = [[self._prefix(sites, index) for sites in places] for index in sums]
        self.most_sites = sum(sorted([max(map(len, rows)) for rows in zip(*self._whole, strict=True)])[-most_places:])
        self._tables = [self._table(index, most_places) for index in sums]

    def need(self, remaining: Mix) -> list[int]:
        """Return what the remaining members need, sum by sum."""
        if len(self._worths) == len(remaining):
            return [*remaining]
        taken = [sum(map(int.__mul__, remaining, column)) for column in zip(*self._gang.amounts, strict=True)]
        return [*remaining, *taken]

    def from_place(self, first: int, places: int, sites: int, remaining: Mix) -> bool:
        """Tell whether this many sites in this many places, from a place on, may hold the remaining members."""
        sites = min(sites, self.most_sites)
        return all(
            self._tables[index][first][places][sites] >= need for index, need in enumerate(self.need(remaining)) if need
        )

    def from_site(self, place: int, first: int, *, places: int, sites: int, remaining: Mix) -> bool:
        """Tell the same of a place's sites, from one of them on, together with places after it."""
        sites = min(sites, self.most_sites)
        suffixes = self._suffixes(place)
        for index, need in enumerate(self.need(remaining)):
            own, after = suffixes[index][first], self._tables[index][place + 1][places]
            if need and not any(
                own[number] + after[sites - number] >= need for number in range(min(sites, len(own) - 1), -1, -1)
            ):
                return False
        return True

    def _prefix(self, sites: Sequence[Site], index: int) -> list[float]:
        """Return the most that 0, 1, 2, ... sites have, up to what is needed."""
        best: dict[Hashable, float] = {}
        worth = self._worths[index]
        for site in sites:
            part = site.summed_as
            best[part] = max(best.get(part, 0), worth[site])
        return self._summed(sorted(best.values(), reverse=True), index)

    def _summed(self, values: Sequence[float], index: int) -> list[float]:
        sums: list[float] = [0]
        for value in values:
            if not value or sums[-1] >= self._needs[index]:
                break
            sums.append(sums[-1] + value)
        return sums

    def _suffix_sums(self, sites: Sequence[Site], index: int) -> list[list[float]]:
        worth, best, negated = self._worths[index], dict[Hashable, float](), list[float]()
        sums = [self._summed((), index)]
        for site in reversed(sites):
            part, value = site.summed_as, worth[site]
            if value > (so_far := best.get(part, 0)):
                if so_far:
                    del negated[bisect_left(negated, -so_far)]
                insort(negated, -value)
                best[part] = value
            sums.append(self._summed([-value for value in negated[: self.most_sites]], index))
        return sums[::-1]

    def _table(self, index: int, most_places: int) -> list[list[list[float]]]:
        """Tabulate the most that sites have, by first place, number of places and number of sites."""
        whole = self._whole[index]
        width = max(map(len, whole))
        if len(whole) * most_places * self.most_sites * width > MAX_CELLS and most_places > 1:
            totals = sorted([sums[-1] for sums in whole], reverse=True)
            rough = [[sum(totals[:places])] * (self.most_sites + 1) for places in range(most_places + 1)]
            return [*[rough] * len(whole), [[0.0] * (self.most_sites + 1)] * (most_places + 1)]
        nothing = [0.0] * (self.most_sites + 1)
        rows = [[nothing] * (most_places + 1)]
        for sums in reversed(whole):
            before = rows[-1]
            row = [nothing]
            for places in range(1, most_places + 1):
                row.append([_best(sums, before[places - 1], before[places], n) for n in range(self.most_sites + 1)])
            rows.append(row)
        return rows[::-1]


def _best(own: Sequence[float], with_place: Sequence[float], without: Sequence[float], sites: int) -> float:
    most_sites = min(sites, len(own) - 1)
    return max([without[sites], *[own[number] + with_place[sites - number] for number in range(1, most_sites + 1)]])


def _worths(places: Sequence[Sequence[Site]], gang: MembersByKind) -> list[dict[Site, float]]:
    """Return what to sum: the members of each kind, and each resource if several kinds compete for it."""
    alike: dict[Hashable, list[float]] = {}  # Many hosts of a cloud are in the same state.
    rows: dict[Site, list[float]] = {}
    all_sites, kinds = [site for sites in places for site in sites], range(len(gang.members))
    has_resources = len(kinds) > 1 and not any([site.free is None for site in all_sites])
    for site in all_sites:
        look = (site.free, *site.refused, site.part is None)
        if look not in alike:
            resources = [max(0, free) for free in site.free or ()] if has_resources else []
            alike[look] = [*[site.bound(kind, gang) for kind in kinds], *resources]
        rows[site] = alike[look]
    return [{site: row[index] for site, row in rows.items()} for index in range(len(next(iter(rows.values()), kinds)))]


BETWEEN = -1
"""Stands for a site's number when the next place is yet to be chosen."""

FabricState = tuple[int, int, int, int, Mix, tuple[Posting, ...]]
"""The number of a place, of the next site in it, how many more places and sites may be used, who is left, and the
postings so far."""


def fewest_sites(
    places: Sequence[Sequence[Site]], gang: MembersByKind, *, most_places: int, budget: Budget
) -> list[Posting] | None:
    """Return where a gang may go: the fewest places, then the fewest sites, ties by order.

    Takes one step for each state looked at; if the budget is hit, there may be a better answer, or any.
    """
    for number in range(1, min(most_places, len(places)) + 1):
        sums = FabricSums(places, gang, most_places=number)
        if not sums.from_place(0, number, sums.most_sites, gang.members):
            continue
        for sites in range(1, min(sum(gang.members), sum(map(len, places))) + 1):
            if not sums.from_place(0, number, sites, gang.members):
                continue
            postings = _Dive(places, gang, sums, budget).search(number, sites)
            if postings is not None or budget.was_hit:
                return postings
    return None


class _Dive:
    """One search for given numbers of places and sites."""

    def __init__(self, places: Sequence[Sequence[Site]], gang: MembersByKind, sums: FabricSums, budget: Budget) -> None:
        self._places = places
        self._gang = gang
        self._sums = sums
        self._budget = budget
        self._in_vain = set[tuple[int, int, int, int, Mix]]()
        """States already visited; unused with parts, where past choices matter."""
        self._has_parts = any(site.part is not None for sites in places for site in sites)

    def search(self, most_places: int, most_sites: int) -> list[Posting] | None:
        """Return where the gang may go; None if nowhere, or the budget runs out."""
        waiting: list[FabricState] = [(0, BETWEEN, most_places, most_sites, self._gang.members, ())]
        while waiting:
            state = waiting.pop()
            remaining, chosen = state[-2:]
            if not any(remaining):
                return [*chosen]
            if not self._has_parts:
                if state[:-1] in self._in_vain:
                    continue
                self._in_vain.add(state[:-1])
            if not self._budget.take():
                return None
            waiting += self._further(state)
        return None

    def _further(self, state: FabricState) -> list[FabricState]:
        """Return the successor states, the best last."""
        place, site, places, sites, remaining, chosen = state
        if not sites:
            return []
        if site == BETWEEN:
            if place == len(self._places) or not self._sums.from_place(place, places, sites, remaining):
                return []
            return [
                (place + 1, BETWEEN, places, sites, remaining, chosen),
                (place, 0, places - 1, sites, remaining, chosen),
            ]
        if not self._sums.from_site(place, site, places=places, sites=sites, remaining=remaining):
            return []
        if site == len(self._places[place]):
            return [(place + 1, BETWEEN, places, sites, remaining, chosen)]
        site_here = self._places[place][site]
        is_taken = site_here.part is not None and site_here.part in [chosen_site.part for chosen_site, _mix in chosen]
        mixes = [] if is_taken else [*_largest_mixes(site_here, self._gang, remaining)]
        further: list[FabricState] = [(place, site + 1, places, sites, remaining, chosen)]
        for mix in reversed(mixes):
            remaining_after = tuple(map(int.__sub__, remaining, mix))
            further.append((place, site + 1, places, sites - 1, remaining_after, (*chosen, (site_here, mix))))
        return further
