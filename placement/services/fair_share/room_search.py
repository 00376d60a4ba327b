"""Search for the host where the least has to be given back for a request to fit; fairness is as in ``giving_back``.

Hosts are visited in the order of a lower bound on their cost, until none can beat the best found. A host's bound is
refined when its turn comes: first by sums, then place by place if rules of the request name one, then with what the
owners have to keep. Only hosts that are still promising then are read in detail; the planner decides whether the
request fits into a tree without some of its tenants. What others share with a tree counts, but only consumers that hold
something in the tree itself give back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from heapq import heapify, heappop, heappush

from placement.allocators.budget import Budget
from placement.allocators.entries import Number
from placement.allocators.fair_share import Giving, Held
from placement.allocators.fair_share.fewest import Cost, FewestSearch
from placement.allocators.fair_share.nodes import ratio
from placement.allocators.fair_share.reclaim import (
    is_fair_to_take,
    is_less_important,
    is_preemptible,
    is_reclaimable,
    lowest,
)
from placement.allocators.fair_share.tenants import (
    ClaimRights,
    Judgement,
    Need,
    Tenant,
    Tenants,
    all_freed,
    dearness,
    never,
    whole_values,
)
from placement.candidates.planner.planner_search import PlannedCandidate, PlannerSearch
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.tree import NamedMember
from placement.services.fair_share.giving_back import (
    Reclaim,
    ReclaimOptions,
    ReclaimSituation,
    reclaim_of,
    reclaim_situation,
)
from placement.services.fair_share.rule_places import RulePlaces
from placement.services.fair_share.shares import Wish
from placement.services.fair_share.tenants import EmptiedTrees, RoomWanted, TenantsByHost, WhatMatters, tenants_by_host
from placement.services.planner.questions import Composers, question_for
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads

MAX_STEPS = 20_000
"""The search budget, in choices looked at; ``QUESTION`` is the price of asking the planner about one."""

STEPS_FOR_BOUNDS = 15_000
"""The budget for lower bounds, in choices looked at without the planner."""

STEPS_FOR_A_BOUND = 500
"""How many choices to look at for the lower bound of a host."""

READING = 100
"""The price of reading a host, in steps."""

SHORTEST_LOOK = 1_000
"""The steps that any host gets; more if few hosts are left."""

FIRST_BATCH, LAST_BATCH = 4, 32
"""How many hosts to read together: few at first, since one of them is often the best."""


class HostRights:
    """The rights of a claimant, by host.

    The classes that matter are those that the whole cloud lacks, the dominant one of the claim, and those missing on
    the host. Nobody can have too much of what is plentiful.

    Args:
        situation: the shares that the claim meets.
        claim: the claim.
    """

    def __init__(self, situation: ReclaimSituation, claim: Reclaim) -> None:
        self._situation = situation
        self._task = claim.task
        self._by_classes: dict[tuple[str, ...], ClaimRights] = {}
        totals = situation.shares.totals()
        dominant = max(claim.task, key=lambda name: (ratio(claim.task[name], totals[name]), name))
        self._always = {*ClaimRights(situation.shares, situation.claimant, claim.task).classes, dominant}
        self.anywhere = self.of({})
        """The rights for the classes that matter on every host."""

    def of(self, missing: Mapping[Need, int]) -> ClaimRights:
        """Return the rights for a host, given what is missing there."""
        there = {name for name in self._task if missing.get(name, 0) > 0}
        classes = tuple(sorted(self._always | there))
        if classes not in self._by_classes:
            shares, claimant = self._situation.shares, self._situation.claimant
            self._by_classes[classes] = ClaimRights(shares, claimant, self._task, classes=classes)
        return self._by_classes[classes]


@dataclass(frozen=True, slots=True)
class CheapestRoom:
    """Who gives back, and the root of their tree; None if nobody can."""

    tenants: Sequence[Tenant] = ()
    root: int | None = None

    @property
    def feasible(self) -> bool:
        """Whether there is room at all."""
        return self.root is not None


@dataclass(frozen=True, slots=True)
class _CandidateHost:
    """A host with the tenants that may be asked, as a whole or for one choice of places for the rules of the request.

    Args:
        root: the id of the tree's root.
        tenants: those who may be asked.
        bound: a lower bound on its cost.
        refined: how often the bound has been refined.
    """

    root: int
    tenants: Tenants
    bound: Cost
    refined: int = 0


Refine = Callable[[_CandidateHost, Cost | None], Iterable[_CandidateHost]]
"""Yields a host with a tighter bound, once or several times; the cost is the least so far."""


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
        self._values = whole_values(tenant.held for of in tenants.by_root.values() for tenant in of)

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
        return self._cheapest(self._hosts(is_reclaimable, is_free=never))

    def least_important(self, priority: Number) -> CheapestRoom:
        """Return the same, but minimise the highest priority that has to give; values are priorities."""
        is_free = partial(is_less_important, priority)
        hosts = [*self._hosts(partial(is_preemptible, priority), is_free=is_free)]
        # By sums, tenants below this value do not hold enough.
        least = {root: value for root, tenants in hosts if (value := tenants.least_value) is not None}

        def up_to(highest: Number) -> CheapestRoom:
            return self._cheapest(
                (root, of.up_to(highest)) for root, of in hosts if least.get(root, highest) <= highest
            )

        first = min([priority, *least.values()])
        return lowest(up_to, sorted({value for value in self._values if first <= value <= priority}) or [priority])

    def _hosts(self, may_be_asked: Judgement, *, is_free: Judgement) -> Iterator[tuple[int, Tenants]]:
        """Yield the roots of hosts with all tenants that may be asked."""
        judged: dict[tuple[ClaimRights, str, Number], bool] = {}
        for root, tenants in self._tenants.by_root.items():
            missing = self._missing.get(root, {})
            rights = self._rights.of(missing)
            asked = []
            for tenant in tenants:
                key = rights, tenant.held.leaf, tenant.held.value  # amounts do not affect the judgement
                if key not in judged:
                    judged[key] = may_be_asked(rights, Held("", tenant.held.leaf, {}, tenant.held.value))
                # A tenant without any relevant class has nothing to give.
                if judged[key] and not tenant.held.amounts.keys().isdisjoint(rights.classes):
                    asked.append(tenant)
            yield root, Tenants(rights, asked, missing=missing, values=self._values, is_free=is_free)

    def _cheapest(self, asked: Iterable[tuple[int, Tenants]]) -> CheapestRoom:
        """Return the cheapest room on some hosts, given with the tenants that may be asked there."""
        queue = _HostQueue([_CandidateHost(root, of, bound) for root, of in asked if (bound := of.bound) is not None])
        best, room, cut_off = None, CheapestRoom(), list[Cost]()
        while (hosts := queue.next(best, self._refined)) and not self._budget.is_used_up:
            self._read([host.root for host in hosts])
            for host in hosts:
                if best is not None and host.bound >= best:
                    continue
                steps = Budget(min(self._budget.left, max(SHORTEST_LOOK, self._budget.left // (1 + len(queue)))))
                best, room = self._better(host, best, steps) or (best, room)
                if steps.was_hit:
                    cut_off.append(host.bound)
        self._was_cut_off |= bool(hosts) or any(best is None or bound < best for bound in cut_off)
        return room

    def _refined(self, host: _CandidateHost, best: Cost | None) -> Iterator[_CandidateHost]:
        """Yield a host with a tighter bound, once for each choice of places, unless it cannot be any good."""
        tenants = host.tenants
        if host.refined:
            bound = tenants.bound_with_what_is_kept(self._for_bounds.child(STEPS_FOR_A_BOUND), best)
            if bound is not None:
                yield replace(host, bound=max(host.bound, bound), refined=2)
            return
        for missing in self._places.missing(host.root, tenants.could_free):
            here = tenants.with_more_missing(missing)
            if here.bound is not None:
                yield replace(host, tenants=here, bound=max(host.bound, here.bound), refined=1)

    def _read(self, roots: Sequence[int]) -> None:
        new = self._trees.unread([*dict.fromkeys(roots)])
        if new and self._budget.take(READING * len(new)):
            tenants = [tenant for root in new for tenant in self._tenants.by_root[root]]
            self._trees.read(new, all_freed(self._tenants.in_detail(tenants)))

    def _better(self, host: _CandidateHost, best: Cost | None, steps: Budget) -> tuple[Cost, CheapestRoom] | None:
        """Return the best choice on a host if it is cheaper than the best so far."""
        fits = self._trees.fits(host.root)
        if fits is None:
            return None
        before, tenants = steps.left, host.tenants.in_detail(self._tenants.in_detail)
        search = FewestSearch(tenants.choices, steps, fits=lambda counts: fits(all_freed(tenants.chosen(counts))))
        found = search.best(best)
        self._budget.take(before - steps.left)
        return found and (found[0], CheapestRoom(tenants.chosen(found[1]), host.root))


class _HostQueue:
    """A priority queue of hosts by lower bound."""

    def __init__(self, hosts: Iterable[_CandidateHost]) -> None:
        self._waiting = [(host.bound, host.root, -number, host) for number, host in enumerate(hosts)]
        heapify(self._waiting)
        self._number = 0
        self._size = FIRST_BATCH

    def __len__(self) -> int:
        return len(self._waiting)

    def next(self, best: Cost | None, refined: Refine) -> list[_CandidateHost]:
        """Return the next hosts that may be cheaper than the best so far, to be read together."""
        hosts: list[_CandidateHost] = []
        while self._waiting and len(hosts) < self._size and (best is None or self._waiting[0][0] < best):
            host = heappop(self._waiting)[-1]
            if host.refined > 1:
                hosts.append(host)
                continue
            for tighter in refined(host, best):
                self._number += 1
                heappush(self._waiting, (tighter.bound, tighter.root, self._number, tighter))
        self._size = min(2 * self._size, LAST_BATCH)
        return hosts


@dataclass(frozen=True, slots=True)
class RoomOnHost:
    """Who gives back, and what that makes room for.

    Args:
        giving: who gives back; ``feasible`` is False if those who may be asked have too little on every host.
        members: the names of leaves by path.
        host: the uuid of the root of the tree whose consumers give; None if nobody has to.
        candidate: the candidate that would then rank first; None if nothing fits.
        providers: the providers that it takes from, and others.
    """

    giving: Giving
    members: Mapping[str, str]
    host: str | None = None
    candidate: PlannedCandidate | None = None
    providers: Mapping[int, NamedMember] = field(default_factory=dict)


def room_for(
    database: Database,
    settings: FairShareSettings,
    wanted: RoomWanted,
    *,
    member: str,
    wishes: Sequence[Wish],
    options: ReclaimOptions,
) -> RoomOnHost:
    """Return the consumers on one host that should give back what they hold. Bypasses the usage cache.

    Args:
        database: the database.
        settings: the rules of sharing.
        wanted: the request.
        member: the claimant.
        wishes: what others wait for.
        options: who may be asked, and how they compare.

    Raises:
        InvalidAt: the request names something that does not exist, or takes nothing that counts.
    """
    wanted = replace(wanted, request=replace(wanted.request, limit=1, per_tree=1, explain=False))
    requested = Composers().prepared(wanted.request, wanted.options).composer.requested
    claim = reclaim_of(database, settings, Wish(member, requested, where=("request",)), wishes)
    return _room(database, settings, claim, wanted=wanted, options=options)


@reads
def _room(
    tx: Transaction,
    settings: FairShareSettings,
    claim: Reclaim,
    *,
    wanted: RoomWanted,
    options: ReclaimOptions,
) -> RoomOnHost:
    situation = reclaim_situation(tx, settings, claim)
    by_host = HostRights(situation, claim)
    rights = by_host.anywhere
    if all(path == rights.root for path, _name in rights.needs):
        as_it_is = _first(tx, wanted, AS_IT_IS)
        if as_it_is is not None:
            return _shown(Giving(feasible=True), situation, as_it_is)
    trees = EmptiedTrees(tx, wanted)
    places = trees.places()
    classes = {*claim.task, *trees.requested}
    tenants = tenants_by_host(tx, settings, WhatMatters(claim.task.keys(), classes, places.anchors, options))
    search = RoomSearch(trees, places, by_host, tenants)
    room = search.fewest() if options.priority is None else search.least_important(options.priority)
    given_back = tuple(sorted([tenant.held for tenant in room.tenants], key=dearness))
    giving = Giving(room.feasible, given_back, rights.lacking, search.complete)
    is_fair = options.priority is not None or is_fair_to_take(situation.shares, rights, given_back)
    if not (room.feasible and is_fair):
        partings = rights.partings(tenants.leaves())
        return RoomOnHost(replace(giving, feasible=False, given_back=(), partings=partings), situation.members)
    planned = _first(tx, wanted, AS_IT_IS.releasing(all_freed(room.tenants)))
    giving = replace(giving, partings=rights.partings([held.leaf for held in given_back]))
    return _shown(giving, situation, planned, room.root)


@dataclass(frozen=True, slots=True)
class _PlannedRoom:
    candidate: PlannedCandidate
    providers: Mapping[int, NamedMember]


def _first(tx: Transaction, wanted: RoomWanted, overlay: Overlay) -> _PlannedRoom | None:
    """Return the candidate that ranks first."""
    question = question_for(tx, wanted.request, wanted.options)
    search = PlannerSearch(question, overlay)
    proposal = next(search.proposals(), None)
    if proposal is None:
        return None
    return _PlannedRoom(PlannedCandidate(proposal, search.score(proposal)), search.members)


def _shown(
    giving: Giving, situation: ReclaimSituation, planned: _PlannedRoom | None, root: int | None = None
) -> RoomOnHost:
    if planned is None:
        return RoomOnHost(giving, situation.members)
    host = None if root is None else planned.providers[root].uuid
    return RoomOnHost(giving, situation.members, host, planned.candidate, planned.providers)
