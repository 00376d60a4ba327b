"""Search for the host where the least has to be given back for a request to fit.

Hosts are visited in the order of their lower bounds by sums, until none can beat the best found. Only visited hosts are
read in detail; the planner decides whether the request fits into a tree without some of its tenants. What others share
with a tree counts, but only consumers that hold something in the tree itself give back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from placement.allocators.budget import Budget
from placement.allocators.entries import Number
from placement.allocators.fair_share import Held
from placement.allocators.fair_share.basket import Cost
from placement.allocators.fair_share.entitlement import ClaimRights
from placement.allocators.fair_share.reclaim import (
    is_less_important,
    is_preemptible,
    is_reclaimable,
    lowest,
    whole_values,
)
from placement.allocators.fair_share.tenants import FittingSearch, Need, Tenant, Tenants, all_freed
from placement.services.fair_share.emptied_trees import EmptiedTrees
from placement.services.fair_share.host_queue import BoundBy, HostQueue, HostWithTenants
from placement.services.fair_share.host_rights import HostRights
from placement.services.fair_share.rule_places import Missing, RulePlaces
from placement.services.fair_share.tenants_by_host import TenantsByHost

MAX_STEPS = 20_000
"""The search budget, in choices looked at; ``QUESTION`` is the price of asking the planner about one."""

STEPS_FOR_BOUNDS = 15_000
"""The budget for lower bounds, in choices looked at without the planner."""

READING = 100
"""The price of reading a host, in steps."""


@dataclass(frozen=True, slots=True)
class CheapestRoom:
    """Who gives back, and the root of their tree; None if nobody can."""

    tenants: Sequence[Tenant] = ()
    root: int | None = None

    @property
    def feasible(self) -> bool:
        """Whether there is room at all."""
        return self.root is not None


InPlaces = Callable[[int, Tenants], Iterable[Missing]]
"""Yields what more has to be free in places of a tree, for each choice of places that could become free."""


Judgement = Callable[[ClaimRights, Held], bool]
"""Decides about a holding whether it may be asked for, or whether it may go freely."""


class _Judged(dict[tuple[str, Number], bool]):
    """Caches a judgement by leaf and value, since amounts do not affect it."""

    def __init__(self, rights: ClaimRights, judgement: Judgement) -> None:
        super().__init__()
        self._rights = rights
        self._judgement = judgement

    def __missing__(self, key: tuple[str, Number]) -> bool:
        leaf, value = key
        self[key] = self._judgement(self._rights, Held("", leaf, {}, value))
        return self[key]


class RoomSearch:
    """Searches for room among the tenants of hosts; each tree is read when it is first examined.

    Args:
        trees: the trees without some of their tenants.
        places: the places of rules.
        rights: who may give what, host by host.
        tenants: those who may be asked to give back.
    """

    def __init__(self, trees: EmptiedTrees, places: RulePlaces, rights: HostRights, tenants: TenantsByHost) -> None:
        self._rights = rights
        self._tenants = tenants
        self._places = places
        self._budget = Budget(MAX_STEPS)
        self._for_bounds = Budget(STEPS_FOR_BOUNDS)
        self._trees = trees
        self._was_cut_off = False
        self._values = whole_values(one.held for of in tenants.by_root.values() for one in of)

    @cached_property
    def _missing(self) -> Mapping[int, Mapping[Need, int]]:
        """By root, how much more of each class has to be free in a tree. Sends one statement."""
        return self._trees.missing()

    @property
    def complete(self) -> bool:
        """Whether the search saw everything that it had to."""
        return not (self._was_cut_off or self._budget.was_hit or self._trees.were_cut_off)

    def fewest(self) -> CheapestRoom:
        """Return the fewest tenants whose leaving lets the request fit on a host, and of those the least valuable."""
        return self._cheapest(
            self._hosts(is_reclaimable, _is_bound),
            lambda root, tenants: self._places.missing(root, tenants.could_free),
        )

    def least_important(self, priority: Number) -> CheapestRoom:
        """Return the same, but minimise the highest priority that has to give; values are priorities."""
        hosts = self._hosts(partial(_is_preemptible, priority), partial(_is_less_important, priority))
        choices = {root: (tenants, self._valued_choices(root, tenants)) for root, tenants in hosts}
        # By sums, tenants below this value do not hold enough.
        least = {root: min([value for value, _missing in of]) for root, (_tenants, of) in choices.items() if of}

        def in_places(highest: Number, root: int, tenants: Tenants) -> Iterator[Missing]:
            return filter(tenants.could_free, [missing for value, missing in choices[root][1] if value <= highest])

        def up_to(highest: Number) -> CheapestRoom:
            asked = ((root, choices[root][0].up_to(highest)) for root, value in least.items() if value <= highest)
            return self._cheapest(asked, partial(in_places, highest))

        first = min([priority, *least.values()])
        return lowest(up_to, sorted({value for value in self._values if first <= value <= priority}) or [priority])

    def _valued_choices(self, root: int, tenants: Tenants) -> list[tuple[Number, Missing]]:
        """Return each choice of places that could become free, with the lowest value up to which it suffices to ask."""
        choices = [(tenants.with_more_missing(one), one) for one in self._places.missing(root, tenants.could_free)]
        return [(value, one) for here, one in choices if (value := here.least_value) is not None]

    def _cheapest(self, asked: Iterable[tuple[int, Tenants]], in_places: InPlaces) -> CheapestRoom:
        """Return the cheapest room on some hosts, given with the tenants that may be asked there."""
        best, found = None, CheapestRoom()
        queue = HostQueue(_bounded(asked), partial(_split, in_places), self._for_bounds)
        while (hosts := queue.next(best)) and not self._budget.is_used_up:
            self._read([host.root for host in hosts])
            for host in hosts:
                if best is not None and host.bound >= best:
                    continue
                steps = Budget(min(host.steps, self._budget.left))
                better = self._better(host, best, steps)
                if better:
                    best, found = better
                if steps.was_hit:
                    queue.look_again(host)
        self._was_cut_off |= bool(hosts) or queue.was_cut_off
        return found

    def _hosts(self, may_be_asked: Judgement, is_free: Judgement) -> Iterator[tuple[int, Tenants]]:
        """Yield the roots of hosts with all tenants that may be asked."""
        judged: dict[ClaimRights, _Judged] = {}
        for root, tenants in self._tenants.by_root.items():
            missing = self._missing.get(root, {})
            rights = self._rights.of(missing)
            if rights not in judged:
                judged[rights] = _Judged(rights, may_be_asked)
            may, classes = judged[rights], {*rights.classes}
            # A tenant without any relevant class has nothing to give.
            asked = [
                one
                for one in tenants
                if may[one.held.leaf, one.held.value] and not classes.isdisjoint(one.held.amounts)
            ]
            yield root, Tenants(rights, asked, missing=missing, values=self._values, is_free=is_free)

    def _read(self, roots: Sequence[int]) -> None:
        new = self._trees.unread([*dict.fromkeys(roots)])
        if new and self._budget.take(READING * len(new)):
            tenants = [one for root in new for one in self._tenants.by_root[root]]
            self._trees.read(new, all_freed(self._tenants.in_detail(tenants)))

    def _better(self, host: HostWithTenants, best: Cost | None, steps: Budget) -> tuple[Cost, CheapestRoom] | None:
        """Return the best choice on a host if it is cheaper than the best so far."""
        fits = self._trees.fits(host.root)
        if fits is None:
            return None
        before, tenants = steps.left, host.tenants.in_detail(self._tenants.in_detail)
        search = FittingSearch(tenants.nothing(), lambda counts: fits(all_freed(tenants.chosen(counts))), steps)
        found = search.best(best)
        self._budget.take(before - steps.left)
        return found and (found[0], CheapestRoom(tenants.chosen(found[1]), host.root))


def _split(in_places: InPlaces, host: HostWithTenants) -> Iterator[HostWithTenants]:
    """Yield a host with each choice of places that all its tenants together could free."""
    for missing in in_places(host.root, host.tenants):
        here = host.tenants.with_more_missing(missing)
        bound = here.bound
        if bound is not None:
            yield replace(host, tenants=here, bound=max(host.bound, bound), bound_by=BoundBy.PLACES)


def _bounded(hosts: Iterable[tuple[int, Tenants]]) -> Iterator[HostWithTenants]:
    """Yield the hosts on which all tenants together hold enough, by sums."""
    for root, here in hosts:
        bound = here.bound
        if bound is not None:
            yield HostWithTenants(root, here, bound)


def _is_bound(_rights: ClaimRights, _one: Held) -> bool:
    return False


def _is_less_important(priority: Number, rights: ClaimRights, one: Held) -> bool:
    return is_less_important(rights, priority, one)


def _is_preemptible(priority: Number, rights: ClaimRights, one: Held) -> bool:
    return is_preemptible(rights, priority, one)
