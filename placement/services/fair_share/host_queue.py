"""The order in which hosts are searched for room: those with the lowest bound on their cost first.

A host's bound is refined step by step as its turn comes: first by sums, then place by place if rules of the request
name one, then with what the queues have to keep.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from heapq import heapify, heappop, heappush

from placement.allocators.budget import Budget
from placement.allocators.fair_share.basket import Cost
from placement.allocators.fair_share.tenants import FittingSearch, Tenants

FIRST_LOOK, SECOND_LOOK = 1_000, 7_500
"""The step budget for a host, and for a second look if that was not enough, once all hosts have had their first."""

STEPS_FOR_A_BOUND = 500
"""How many choices to look at for the lower bound of a host."""

FIRST_BATCH, LAST_BATCH = 4, 32
"""How many hosts to examine together: few at first, since one of them is often the best."""


class BoundBy(IntEnum):
    """How tight the lower bound of a host is."""

    SUMS = 0
    PLACES = 1
    WHAT_IS_KEPT = 2


@dataclass(frozen=True, slots=True)
class HostWithTenants:
    """A host with the tenants that may be asked, as a whole or with one choice of places for the rules of the request.

    Args:
        root: the id of the tree's root.
        tenants: those who may be asked.
        bound: a lower bound on its cost.
        bound_by: how tight the bound is.
        steps: the step budget.
    """

    root: int
    tenants: Tenants
    bound: Cost
    bound_by: BoundBy = BoundBy.SUMS
    steps: int = FIRST_LOOK


class HostQueue:
    """A priority queue of hosts by lower bound; the bound is tightened when a host's turn comes.

    Args:
        hosts: the hosts.
        split: returns a host once for each choice of places.
        budget: how many choices may be looked at for bounds.
    """

    def __init__(
        self,
        hosts: Iterable[HostWithTenants],
        split: Callable[[HostWithTenants], Iterable[HostWithTenants]],
        budget: Budget,
    ) -> None:
        self._waiting = [(host.bound, host.root, -number, host) for number, host in enumerate(hosts)]
        heapify(self._waiting)
        self._number = 0
        self._split = split
        self._again: list[HostWithTenants] = []
        self._size = FIRST_BATCH
        self._budget = budget
        self.was_cut_off = False
        """Whether the search of any host was cut off."""

    def next(self, best: Cost | None) -> list[HostWithTenants]:
        """Return the next hosts that may be cheaper than the best so far, to be read together."""
        found: list[HostWithTenants] = []
        while self._waiting and len(found) < self._size and _is_less(self._waiting[0][0], best):
            host = heappop(self._waiting)[-1]
            if host.bound_by is BoundBy.WHAT_IS_KEPT:
                found.append(host)
            else:
                self._wait(self._split(host) if host.bound_by is BoundBy.SUMS else self._with_what_is_kept(host, best))
        self._size = min(2 * self._size, LAST_BATCH)
        return found or self._second_looks(best)

    def _wait(self, hosts: Iterable[HostWithTenants]) -> None:
        for host in hosts:
            self._number += 1
            heappush(self._waiting, (host.bound, host.root, self._number, host))

    def _second_looks(self, best: Cost | None) -> list[HostWithTenants]:
        again = [host for host in self._again if _is_less(host.bound, best)]
        self._again = again[1:]
        return again[:1]

    def look_again(self, host: HostWithTenants) -> None:
        """Give a host that ran out of steps a second look, at most once."""
        if host.steps == SECOND_LOOK:
            self.was_cut_off = True
        else:
            self._again.append(replace(host, steps=SECOND_LOOK))

    def _with_what_is_kept(self, host: HostWithTenants, best: Cost | None) -> Iterable[HostWithTenants]:
        """Yield a host with its lower bound given what queues have to keep, unless that is too high."""
        steps = self._budget.child(STEPS_FOR_A_BOUND)
        found = FittingSearch(host.tenants.useful.nothing(), _always, steps, question=1).least(best)
        if steps.was_hit:
            yield replace(host, bound_by=BoundBy.WHAT_IS_KEPT)
        elif found is not None:
            yield replace(host, bound=max(host.bound, found[0]), bound_by=BoundBy.WHAT_IS_KEPT)


def _is_less(bound: Cost, best: Cost | None) -> bool:
    return best is None or bound < best


def _always(_counts: object) -> bool:
    return True
