"""Search for the host where the least has to be given back for a request to fit; fairness is as in ``giving_back``.

Hosts are visited in the order of a lower bound on their cost, until none can beat the best found. A host's bound is
refined when its turn comes: first by sums, then place by place if rules of the request name one, then with what the
owners have to keep. Only hosts that are still promising then are read in detail; the planner decides whether the
request fits into a tree without some of its tenants. What others share with a tree counts, but only consumers that hold
something in the tree itself give back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from itertools import count

from placement.allocators import Budget, Number
from placement.allocators.fair_share.fewest import Cost, FewestSearch
from placement.allocators.fair_share.reclaim import Givers, Giving, Held, all_freed, givers_of, is_fair_to_take, lowest
from placement.candidates.planner.planner_search import PlannerSearch
from placement.domain.planner_request import PlannerRequest
from placement.domain.tree import AS_IT_IS
from placement.services.fair_share.giving_back import (
    ClaimedShares,
    EmptiedTrees,
    GivenBack,
    ReclaimClaim,
    ReclaimOptions,
    RulePlaces,
    TenantsByHost,
    claim_of,
)
from placement.services.fair_share.shares import Wish
from placement.services.planner.candidates import PlannedCandidate
from placement.services.planner.questions import Composers, PlannerOptions, question_for
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database, Transaction, reads

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

BATCH = 16
"""How many hosts to read together."""


@dataclass(frozen=True, slots=True)
class CheapestRoom:
    """Who gives back, and the root of their tree; None if nobody can."""

    tenants: Sequence[Held] = ()
    root: int | None = None

    @property
    def feasible(self) -> bool:
        """Whether there is room at all."""
        return self.root is not None


@dataclass(frozen=True, slots=True)
class _CandidateHost:
    """A host with those who may be asked, as a whole or for one choice of places, and a lower bound on its cost."""

    root: int
    givers: Givers
    bound: Cost
    refined: int = 0


_HostQueue = list[tuple[Cost, int, int, _CandidateHost]]
"""A heap of hosts by lower bound; of equals, the lower root and the earlier host come first."""


@dataclass
class RoomSearch:
    """Searches for room among the tenants of hosts; each tree is read when it is first examined."""

    met: ClaimedShares
    trees: EmptiedTrees
    places: RulePlaces
    tenants: TenantsByHost
    _budget: Budget = field(default_factory=lambda: Budget(MAX_STEPS))
    _for_bounds: Budget = field(default_factory=lambda: Budget(STEPS_FOR_BOUNDS))
    _was_cut_off: bool = False
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def complete(self) -> bool:
        """Whether the search saw everything that it had to."""
        return not (self._was_cut_off or self._budget.was_hit or self.trees.were_cut_off)

    def cheapest(self) -> CheapestRoom:
        """Return the fewest tenants whose leaving lets the request fit on a host, and of those the least valuable.

        A claim with a priority minimises the highest priority that has to give first.
        """
        hosts, priority = self._hosts, self.met.claim.options.priority
        if priority is None:
            return self._cheapest(hosts.items())
        # By sums, tenants below this value do not hold enough.
        least = {root: value for root, givers in hosts.items() if (value := givers.least_value) is not None}

        def up_to(highest: Number) -> CheapestRoom:
            enough = [root for root in hosts if least.get(root, highest) <= highest]
            return self._cheapest((root, hosts[root].up_to(highest)) for root in enough)

        first = min([priority, *least.values()])
        values = {tenant.value for tenants in self.tenants.by_root.values() for tenant in tenants}
        return lowest(up_to, sorted([value for value in values if first <= value <= priority]) or [priority])

    @cached_property
    def _hosts(self) -> Mapping[int, Givers]:
        """By root, those who may be asked; who holds nothing of a relevant class has nothing to give."""
        hosts, missing_in = {}, self.trees.missing()
        for root, tenants in self.tenants.by_root.items():
            if root in self.trees.avoided:
                continue
            missing = missing_in.get(root, {})
            rights = self.met.rights_on_host(missing)
            askable = [
                tenant
                for tenant in tenants
                if not tenant.amounts.keys().isdisjoint(rights.classes) and rights.may_ask(tenant.leaf, tenant.value)
            ]
            hosts[root] = givers_of(rights, askable, missing=missing)
        return hosts

    def _cheapest(self, givers_by_root: Iterable[tuple[int, Givers]]) -> CheapestRoom:
        bounds = [(root, givers, givers.bound) for root, givers in givers_by_root]
        hosts = [_CandidateHost(root, givers, bound) for root, givers, bound in bounds if bound is not None]
        queue = [(host.bound, host.root, -1, host) for host in hosts]
        heapify(queue)
        best, room, cut_off = None, CheapestRoom(), list[Cost]()
        while (hosts := self._next(queue, best)) and not self._budget.is_used_up:
            self._read([host.root for host in hosts])
            for host in hosts:
                if best is not None and host.bound >= best:
                    continue
                steps = Budget(
                    min(self._budget.remaining, max(SHORTEST_LOOK, self._budget.remaining // (1 + len(queue))))
                )
                best, room = self._better(host, best, steps) or (best, room)
                if steps.was_hit:
                    cut_off.append(host.bound)
        self._was_cut_off |= bool(hosts) or any(best is None or bound < best for bound in cut_off)
        return room

    def _next(self, queue: _HostQueue, best: Cost | None) -> list[_CandidateHost]:
        """Return the next hosts that may be cheaper than the best so far, to be read together."""
        hosts: list[_CandidateHost] = []
        while queue and len(hosts) < BATCH and (best is None or queue[0][0] < best):
            host = heappop(queue)[-1]
            if host.refined > 1:
                hosts.append(host)
                continue
            for tighter in self._refined(host, best):
                heappush(queue, (tighter.bound, tighter.root, next(self._numbers), tighter))
        return hosts

    def _refined(self, host: _CandidateHost, best: Cost | None) -> Iterator[_CandidateHost]:
        """Yield a host with a tighter bound, once for each choice of places, unless it cannot be any good."""
        givers = host.givers
        if host.refined:
            bound = givers.bound_with_what_is_kept(self._for_bounds.child(STEPS_FOR_A_BOUND), best)
            if bound is not None:
                yield replace(host, bound=max(host.bound, bound), refined=2)
            return
        for missing in self.places.missing(host.root, givers.could_free):
            everything = {**givers.missing, **missing}
            in_places = givers_of(givers.rights, givers.held, missing=everything) if missing else givers
            if in_places.bound is not None:
                yield replace(host, givers=in_places, bound=max(host.bound, in_places.bound), refined=1)

    def _read(self, roots: Sequence[int]) -> None:
        new = self.trees.unread(roots)
        if new and self._budget.take(READING * len(new)):
            tenants = [tenant for root in new for tenant in self.tenants.by_root[root]]
            self.trees.read(new, all_freed(self.tenants.in_detail(tenants)))

    def _better(self, host: _CandidateHost, best: Cost | None, steps: Budget) -> tuple[Cost, CheapestRoom] | None:
        """Return the best choice on a host if it is cheaper than the best so far."""
        before, tenants = steps.remaining, self.tenants.in_detail(host.givers.held)
        givers = givers_of(host.givers.rights, tenants, missing=host.givers.missing)
        fits = partial(self.trees.fits, host.root)
        search = FewestSearch(givers.choices, steps, fits=lambda counts: fits(all_freed(givers.chosen(counts))))
        choice = search.best(best)
        self._budget.take(before - steps.remaining)
        return choice and (choice[0], CheapestRoom(givers.chosen(choice[1]), host.root))


def room_for(
    database: Database,
    settings: FairShareSettings,
    request: PlannerRequest,
    *,
    terms: PlannerOptions,
    member: str,
    wishes: Sequence[Wish],
    options: ReclaimOptions,
) -> GivenBack:
    """Return the consumers on one host that should give back what they hold so that a member's request fits.

    ``terms`` are the operator's for the request. InvalidAt if that names something that does not exist, or takes
    nothing that counts.
    """
    composer = Composers().composer(replace(request, limit=1, per_tree=1, explain=False), terms)
    wish = Wish(member, composer.requested, where=("request",))
    claim = claim_of(database, settings, wish, wishes=wishes, options=options)
    return _room(database, claim, composer.request, terms)


@reads
def _room(tx: Transaction, claim: ReclaimClaim, request: PlannerRequest, options: PlannerOptions) -> GivenBack:
    met = ClaimedShares(tx, claim)
    rights, as_it_is = met.rights_on_host({}), GivenBack(Giving(feasible=True), met.members)
    if all(path == rights.root for path, _name in rights.needs):
        search = PlannerSearch(question_for(tx, request, options))
        if (fitting := _with_first_candidate(search, as_it_is)).candidate is not None:
            return fitting
    question = question_for(tx, request, options)
    trees, places, tenants = EmptiedTrees(question), RulePlaces(question), TenantsByHost(tx, claim)
    tenants.read({*claim.task, *question.composer.requested}, places.anchors)
    room_search = RoomSearch(met, trees, places, tenants)
    room = room_search.cheapest()
    given_back = tuple(sorted(room.tenants, key=lambda tenant: tenant.dearness))
    partings = rights.partings([tenant.leaf for tenant in given_back])
    giving = Giving(room.feasible, given_back, rights.lacking, room_search.complete, partings)
    is_fair = rights.priority is not None or is_fair_to_take(met.shares, rights, given_back)
    if room.root is None or not is_fair:
        partings = rights.partings(tenants.leaves())
        return GivenBack(replace(giving, feasible=False, given_back=(), partings=partings), met.members)
    overlay = AS_IT_IS.releasing(all_freed(room.tenants))
    search = PlannerSearch(question_for(tx, request, options), overlay)
    return _with_first_candidate(search, GivenBack(giving, met.members), root=room.root)


def _with_first_candidate(search: PlannerSearch, answer: GivenBack, *, root: int | None = None) -> GivenBack:
    """Return the same with the candidate that ranks first in a search, if there is any, and the giving host."""
    proposal = next(search.proposals(), None)
    if proposal is None:
        return answer
    members = search.members
    host = None if root is None else members[root].uuid
    return replace(answer, host=host, candidate=PlannedCandidate(proposal, search.score(proposal)), providers=members)
