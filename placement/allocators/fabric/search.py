"""Depth-first search for the first way to place a crew within given numbers of places and sites."""

from collections.abc import Sequence

from placement.allocators.budget import Budget
from placement.allocators.fabric.sites import Crew, Mix, Posting, Site, largest_mixes
from placement.allocators.fabric.sums import FabricSums

Chain = tuple[Posting, "Chain"] | None
"""The postings so far as a linked list, the last one first."""

BETWEEN = -1
"""Stands for a site's number when the next place is yet to be chosen."""

FabricState = tuple[int, int, int, int, Mix, Chain]
"""The number of a place, of the next site in it, how many more places and sites may be used, who is left, and the
postings so far."""


def fewest_sites(
    places: Sequence[Sequence[Site]], crew: Crew, *, most_places: int, budget: Budget
) -> list[Posting] | None:
    """Return where a crew may go: the fewest places, then the fewest sites, ties by order.

    Args:
        places: the sites of each place, in order.
        crew: the members.
        most_places: the number of places allowed.
        budget: one step for each state looked at; if it is hit, there may be a better answer, or any.
    """
    for number in range(1, min(most_places, len(places)) + 1):
        sums = FabricSums(places, crew, most_places=number)
        if not sums.from_place(0, number, sums.most_sites, crew.members):
            continue
        for sites in range(1, min(sum(crew.members), sum(map(len, places))) + 1):
            if not sums.from_place(0, number, sites, crew.members):
                continue
            found = _Dive(places, crew, sums, budget).found(number, sites)
            if found is not None or budget.was_hit:
                return found
    return None


class _Dive:
    """One search for given numbers of places and sites."""

    def __init__(self, places: Sequence[Sequence[Site]], crew: Crew, sums: FabricSums, budget: Budget) -> None:
        self._places = places
        self._crew = crew
        self._sums = sums
        self._budget = budget
        self._in_vain = set[tuple[int, int, int, int, Mix]]()
        """States already visited; unused with parts, where past choices matter."""
        self._has_parts = any(site.part is not None for sites in places for site in sites)

    def found(self, most_places: int, most_sites: int) -> list[Posting] | None:
        """Return where the crew may go; None if nowhere, or the budget runs out."""
        waiting: list[FabricState] = [(0, BETWEEN, most_places, most_sites, self._crew.members, None)]
        while waiting:
            state = waiting.pop()
            left, chosen = state[-2:]
            if not any(left):
                return _listed(chosen)
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
        place, site, places, sites, left, chosen = state
        if not sites:
            return []
        if site == BETWEEN:
            if place == len(self._places) or not self._sums.from_place(place, places, sites, left):
                return []
            return [
                (place + 1, BETWEEN, places, sites, left, chosen),
                (place, 0, places - 1, sites, left, chosen),
            ]
        if not self._sums.from_site(place, site, places=places, sites=sites, left=left):
            return []
        if site == len(self._places[place]):
            return [(place + 1, BETWEEN, places, sites, left, chosen)]
        here = self._places[place][site]
        mixes = [] if _is_taken(here, chosen) else [*largest_mixes(here, self._crew, left)]
        skipped: list[FabricState] = [(place, site + 1, places, sites, left, chosen)]
        return skipped + [
            (place, site + 1, places, sites - 1, _without(left, mix), ((here, mix), chosen)) for mix in reversed(mixes)
        ]


def _is_taken(site: Site, chosen: Chain) -> bool:
    """Tell whether a chosen site is in the same part."""
    if site.part is None:
        return False
    while chosen is not None:
        (other, _mix), chosen = chosen
        if other.part == site.part:
            return True
    return False


def _without(left: Mix, mix: Mix) -> Mix:
    return tuple(map(int.__sub__, left, mix))


def _listed(chosen: Chain) -> list[Posting]:
    found = []
    while chosen is not None:
        posting, chosen = chosen
        found.append(posting)
    return found[::-1]
