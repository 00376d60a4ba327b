"""The order in which hosts are looked into for room: what costs least first, as far as sums tell."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from placement.allocators.budget import Budget
from placement.allocators.fair_share.basket import Cost
from placement.allocators.fair_share.fitting import FittingSearch
from placement.allocators.fair_share.tenants import Tenants

FIRST_LOOK, SECOND_LOOK = 1_000, 7_500
"""How many steps are taken on a host, and again where these were not enough, once all hosts had a first look."""

STEPS_FOR_A_BOUND = 500
"""How many choices are looked at to tell what a host costs at least."""

FIRST_BATCH, LAST_BATCH = 4, 32
"""How many hosts are looked into together: few at first, since often one of them is the best."""


@dataclass(frozen=True, slots=True)
class HostWithTenants:
    """A host with those who may be asked to give.

    Args:
        root: the id of the tree's root.
        tenants: who may be asked.
        bound: what it costs at least.
        steps: how many steps may be taken on it.
    """

    root: int
    tenants: Tenants
    bound: Cost
    steps: int = FIRST_LOOK


class HostQueue:
    """Hosts in the order of what they cost at least; that is told more exactly when it is a host's turn.

    Args:
        hosts: the hosts.
        budget: how many choices may be looked at for that.
    """

    def __init__(self, hosts: Iterable[HostWithTenants], budget: Budget) -> None:
        self._waiting = [(host.bound, host.root, False, host) for host in hosts]
        heapify(self._waiting)
        self._again: list[HostWithTenants] = []
        self._size = FIRST_BATCH
        self._budget = budget
        self.was_cut_off = False
        """Whether a host was not looked into to the end."""

    def next(self, best: Cost | None) -> list[HostWithTenants]:
        """Return the next hosts that may cost less than the best that is known, to be read together."""
        found: list[HostWithTenants] = []
        while self._waiting and len(found) < self._size and _is_less(self._waiting[0][0], best):
            _bound, root, is_exact, host = heappop(self._waiting)
            if is_exact:
                found.append(host)
            elif (exact := self._by_sums(host, best)) is not None:
                heappush(self._waiting, (exact, root, True, replace(host, bound=exact)))
        self._size = min(2 * self._size, LAST_BATCH)
        return found or self._second_looks(best)

    def _second_looks(self, best: Cost | None) -> list[HostWithTenants]:
        again = [host for host in self._again if _is_less(host.bound, best)]
        self._again = again[1:]
        return again[:1]

    def look_again(self, host: HostWithTenants) -> None:
        """Let a host on which the steps ended come again, once."""
        if host.steps == SECOND_LOOK:
            self.was_cut_off = True
        else:
            self._again.append(replace(host, steps=SECOND_LOOK))

    def _by_sums(self, host: HostWithTenants, best: Cost | None) -> Cost | None:
        """Return what a host costs at least where the queues keep what is theirs; None if that is too much."""
        steps = self._budget.child(STEPS_FOR_A_BOUND)
        found = FittingSearch(host.tenants.nothing(), _always, steps, question=1).best(best)
        if steps.was_hit:
            return host.bound
        return None if found is None else max(host.bound, found[0])


def _is_less(bound: Cost, best: Cost | None) -> bool:
    return best is None or bound < best


def _always(_counts: Sequence[int]) -> bool:
    return True
