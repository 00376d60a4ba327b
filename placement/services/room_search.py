"""The search for the host on which the least has to be given back so that a request fits there.

Hosts are gone through in the order of what they cost at least, as far as sums tell, until none can be better than the
best one found. Only those are read in detail; whether the request fits is what the planner says of the tree without
some of its tenants. What others share with a tree counts, but only consumers that hold something in the tree itself
give.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from placement.allocators.budget import Budget
from placement.allocators.entries import Number
from placement.allocators.fair_share import Held
from placement.allocators.fair_share.basket import Cost
from placement.allocators.fair_share.court import Court
from placement.allocators.fair_share.fitting import FittingChoice, FittingSearch
from placement.allocators.fair_share.offers import whole_values
from placement.allocators.fair_share.preempt import is_less_important, is_preemptible, lowest
from placement.allocators.fair_share.reclaim import is_reclaimable
from placement.allocators.fair_share.tenants import Tenant, Tenants, all_freed
from placement.services.emptied_trees import EmptiedTrees, RoomWanted
from placement.services.host_courts import HostCourts
from placement.services.host_queue import HostQueue, HostWithTenants
from placement.services.tenants_by_host import TenantsByHost
from placement.store.connection.unit_of_work import Transaction

MOST_STEPS = 20_000
"""How many choices are looked at, in all; ``QUESTION`` says what it counts to ask the planner about one."""

STEPS_FOR_BOUNDS = 15_000
"""How many choices are looked at to tell what hosts cost at least, without the planner."""

READING = 100
"""How many steps it costs to read a host."""


@dataclass(frozen=True, slots=True)
class CheapestRoom:
    """Who gives back, and the root of their tree; None if nobody can."""

    tenants: Sequence[Tenant] = ()
    root: int | None = None

    @property
    def feasible(self) -> bool:
        """Whether somebody can."""
        return self.root is not None


Judgement = Callable[[Court, Held], bool]
"""Says of something that is held whether it may be asked for, or whether it is free to go."""


class RoomSearch:
    """Looks for room among the tenants of hosts; each tree is read when it is looked into.

    Args:
        tx: the transaction.
        wanted: the request.
        courts: who is entitled to what.
        tenants: who may be asked to give back.
    """

    def __init__(self, tx: Transaction, wanted: RoomWanted, courts: HostCourts, tenants: TenantsByHost) -> None:
        self._courts = courts
        self._tenants = tenants
        self._budget = Budget(MOST_STEPS)
        self._for_bounds = Budget(STEPS_FOR_BOUNDS)
        self._trees = EmptiedTrees(tx, wanted)
        self._was_cut_off = False
        self._missing = self._trees.missing()
        self._values = whole_values(one.held for of in tenants.values() for one in of)

    @property
    def complete(self) -> bool:
        """Whether everything was looked at that had to be."""
        return not (self._was_cut_off or self._budget.was_hit or self._trees.were_cut_off)

    def fewest(self) -> CheapestRoom:
        """Return the fewest without whom the request fits on a host, of these the least valuable."""
        return self._cheapest(is_reclaimable, _is_bound)

    def least_important(self, priority: Number) -> CheapestRoom:
        """Return the same, but the lowest priority that gives first; values are priorities."""
        is_free = partial(_is_less_important, priority)

        def up_to(highest: Number) -> CheapestRoom:
            return self._cheapest(partial(_is_preemptible_up_to, highest, priority), is_free)

        return lowest(up_to, sorted({value for value in self._values if value <= priority}) or [priority])

    def _cheapest(self, may_be_asked: Judgement, is_free: Judgement) -> CheapestRoom:
        best, found = None, CheapestRoom()
        queue = HostQueue(self._bounded(may_be_asked, is_free), self._for_bounds)
        while (hosts := queue.next(best)) and not self._budget.is_used_up:
            self._read([host.root for host in hosts])
            for host in hosts:
                steps = Budget(min(host.steps, self._budget.left))
                better = self._better(host, best, steps)
                if better:
                    best, found = better[0], CheapestRoom(host.tenants.chosen(better[1]), host.root)
                if steps.was_hit:
                    queue.look_again(host)
        self._was_cut_off |= bool(hosts) or queue.was_cut_off
        return found

    def _bounded(self, may_be_asked: Judgement, is_free: Judgement) -> Iterator[HostWithTenants]:
        """Yield the hosts on which all who may be asked would be enough, by the sums."""
        for root, tenants in self._tenants.items():
            missing = self._missing.get(root, {})
            court = self._courts.of(missing)
            # Who has nothing of what matters has nothing to give.
            asked = [
                one
                for one in tenants
                if not one.held.amounts.keys().isdisjoint(court.classes) and may_be_asked(court, one.held)
            ]
            here = Tenants(court, asked, missing=missing, values=self._values, is_free=is_free)
            bound = here.bound
            if bound is not None:
                yield HostWithTenants(root, here, bound)

    def _read(self, roots: Sequence[int]) -> None:
        new = self._trees.unread(roots)
        if new and self._budget.take(READING * len(new)):
            self._trees.read(new, all_freed([one for root in new for one in self._tenants[root]]))

    def _better(self, host: HostWithTenants, best: Cost | None, steps: Budget) -> FittingChoice | None:
        """Return the best choice on a host if it costs less."""
        fits = self._trees.fits(host.root)
        if fits is None:
            return None
        before, tenants = steps.left, host.tenants
        search = FittingSearch(tenants.nothing(), lambda counts: fits(all_freed(tenants.chosen(counts))), steps)
        found = search.best(best)
        self._budget.take(before - steps.left)
        return found


def _is_bound(_court: Court, _one: Held) -> bool:
    return False


def _is_less_important(priority: Number, court: Court, one: Held) -> bool:
    return is_less_important(court, priority, one)


def _is_preemptible_up_to(highest: Number, priority: Number, court: Court, one: Held) -> bool:
    return one.value <= highest and is_preemptible(court, priority, one)
