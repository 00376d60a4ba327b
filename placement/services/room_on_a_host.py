"""Use case: which consumers of one host should give back what they hold so that a request fits there.

The fairness is that of ``giving_back``; whether a request fits is what the planner says of a tree without them. The
trees are gone through in the order of what they cost at least, as far as sums tell, until none can be better than the
best one found. What others share with a tree counts, but only consumers that hold something in the tree itself give.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from placement.allocators.budget import Budget
from placement.allocators.entries import Number
from placement.allocators.fair_share import Giving, Held
from placement.allocators.fair_share.basket import Cost
from placement.allocators.fair_share.court import Court, queue_of
from placement.allocators.fair_share.fitting import FittingChoice, FittingSearch
from placement.allocators.fair_share.numbers import ratio
from placement.allocators.fair_share.offers import dearness, whole_values
from placement.allocators.fair_share.preempt import is_less_important, lowest, preemptible
from placement.allocators.fair_share.reclaim import reclaimable
from placement.allocators.fair_share.tenants import Tenant, Tenants, all_freed
from placement.candidates.overlaid import with_stocks
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree, Stock
from placement.domain.tree import Tree
from placement.services.fair_share import Wish
from placement.services.giving_back import Reclaim, ReclaimOptions, ReclaimSituation, reclaim_of
from placement.services.planner.candidates import PlannedCandidate
from placement.services.planner.composers import Composers, PlannerOptions
from placement.services.planner.details import Details
from placement.services.planner.ground import Ground
from placement.services.planner.planning import Planning
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.fair_share import held_places
from placement.store.search.names import ids_for
from placement.store.search.narrowing import Narrowing
from placement.store.search.summaries import Summaries
from placement.store.search.trees import TreeReader

MOST_STEPS = 60_000
"""How many choices are looked at, in all; ``QUESTION`` says what it counts to ask the planner about one."""

STEPS_ON_A_HOST = 15_000
"""How many of these on one host."""

BATCH = 32
"""How many trees are read together."""


@dataclass(frozen=True, slots=True)
class RoomWanted:
    """A request that a claim is about: what is asked for, and what the operator says about that."""

    request: PlannerRequest
    options: PlannerOptions


@dataclass(frozen=True, slots=True)
class RoomOnHost:
    """Who gives back, and what that makes room for.

    Args:
        giving: who gives back; ``feasible`` is False if no host has enough who may be asked.
        members: the names of leaves by path.
        host: the uuid of the root of the tree whose consumers give; None if nobody has to.
        candidate: what would then come first; None if nothing fits.
        providers: the providers that it takes from, and others.
    """

    giving: Giving
    members: Mapping[str, str]
    host: str | None = None
    candidate: PlannedCandidate | None = None
    providers: Summaries = field(default_factory=Summaries)


def room_for(
    database: Database,
    settings: FairShareSettings,
    wanted: RoomWanted,
    *,
    member: str,
    wishes: Sequence[Wish],
    options: ReclaimOptions,
) -> RoomOnHost:
    """Return who should give back what they hold on one host so that a request fits there; always read anew.

    Args:
        database: the database.
        settings: how resources are shared.
        wanted: the request.
        member: who claims it.
        wishes: what others wait for.
        options: who may be chosen, and by what.

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
    situation = ReclaimSituation(tx, settings, claim)
    judge = _FairnessJudge(situation, claim)
    if all(path == judge.court.root for path, _name in judge.court.needs):
        as_it_is = _first(tx, wanted, AS_IT_IS)
        if as_it_is is not None:
            return _shown(Giving(feasible=True), situation, as_it_is)
    held = situation.held(tx, claim.task.keys(), options)
    cloud = _TenantSearch(tx, wanted, held)
    found = _cheapest(cloud, judge, held, options.priority)
    court = judge.court
    if found.root is None:
        others = [one.leaf for one in held if queue_of(one.leaf) != queue_of(situation.claimant)]
        giving = Giving(feasible=False, lacking=court.lacking, complete=cloud.complete, partings=court.partings(others))
        return RoomOnHost(giving, situation.members)
    given_back = tuple(sorted([one.held for one in found.tenants], key=dearness))
    giving = Giving(
        feasible=True,
        given_back=given_back,
        lacking=court.lacking,
        complete=cloud.complete,
        partings=court.partings([one.leaf for one in given_back]),
    )
    planned = _first(tx, wanted, AS_IT_IS.releasing(all_freed(found.tenants)))
    return _shown(giving, situation, planned, found.root)


@dataclass(frozen=True, slots=True)
class _PlannedRoom:
    candidate: PlannedCandidate
    providers: Summaries


def _first(tx: Transaction, wanted: RoomWanted, overlay: Overlay) -> _PlannedRoom | None:
    """Return the candidate that comes first."""
    ground = Ground(tx, wanted.request, wanted.options, overlay=overlay)
    planning = Planning(ground, overlay)
    proposal = next(planning.proposals(), None)
    if proposal is None:
        return None
    return _PlannedRoom(PlannedCandidate(proposal, planning.score(proposal)), planning.summaries)


def _shown(
    giving: Giving, situation: ReclaimSituation, planned: _PlannedRoom | None, root: int | None = None
) -> RoomOnHost:
    if planned is None:
        return RoomOnHost(giving, situation.members)
    host = None if root is None else planned.providers.members[root].uuid
    return RoomOnHost(giving, situation.members, host, planned.candidate, planned.providers)


@dataclass(frozen=True, slots=True)
class _CheapestRoom:
    """Who gives back, and the root of their tree; None if nobody can."""

    tenants: Sequence[Tenant] = ()
    root: int | None = None

    @property
    def feasible(self) -> bool:
        return self.root is not None


Ask = Callable[[Court, Iterable[Held]], list[Held]]
"""Returns who may be asked to give."""


class _FairnessJudge:
    """Who is entitled to what, in the classes that matter on a host.

    These are what is lacking in the whole cloud, the class of which the claim is the largest part, and what is missing
    on the host. Of what is plenty nobody has too much.
    """

    def __init__(self, situation: ReclaimSituation, claim: Reclaim) -> None:
        self._situation = situation
        self._claim = claim
        self._courts: dict[tuple[str, ...], Court] = {}
        lacking = Court(situation.shares, situation.claimant, claim.task, waiting=claim.waiting).classes
        totals = situation.shares.totals()
        dominant = max(claim.task, key=lambda name: (ratio(claim.task[name], totals[name]), name))
        self._always = {*lacking, dominant}
        self.court = self.for_host({})

    def for_host(self, missing: Mapping[str, int]) -> Court:
        """Return the court for a host on which so much is missing."""
        there = {name for name, amount in missing.items() if amount > 0 and name in self._claim.task}
        classes = tuple(sorted(self._always | there))
        if classes not in self._courts:
            situation, claim = self._situation, self._claim
            self._courts[classes] = Court(
                situation.shares, situation.claimant, claim.task, waiting=claim.waiting, classes=classes
            )
        return self._courts[classes]


def _cheapest(
    cloud: "_TenantSearch", judge: _FairnessJudge, held: Sequence[Held], priority: Number | None
) -> _CheapestRoom:
    """Return the best choice: the lowest priority that gives, if priorities matter, then the fewest."""
    if priority is None:
        return cloud.cheapest(judge, reclaimable, _is_bound)
    is_free = partial(is_less_important, queue_of(judge.court.claimant), priority)

    def up_to(highest: Number) -> _CheapestRoom:
        return cloud.cheapest(judge, partial(_preemptible_up_to, highest, priority), is_free)

    return lowest(up_to, sorted({one.value for one in held if one.value <= priority}) or [priority])


def _preemptible_up_to(highest: Number, priority: Number, court: Court, held: Iterable[Held]) -> list[Held]:
    return [one for one in preemptible(court, held, priority) if one.value <= highest]


def _is_bound(_one: Held) -> bool:
    return False


class _TenantSearch:
    """The trees of the cloud, with those who hold something in them; each is read when it is looked into.

    Args:
        tx: the transaction.
        wanted: the request.
        held: what may be given back.
    """

    def __init__(self, tx: Transaction, wanted: RoomWanted, held: Sequence[Held]) -> None:
        self._tx = tx
        self._composers = Composers()
        self._prepared = self._composers.prepared(wanted.request, wanted.options)
        self._budget = Budget(MOST_STEPS)
        self._values = whole_values(held)
        self._by_root = _by_root(tx, {one.name: one for one in held}, self._prepared.composer.requested)
        self._missing = self._sums()
        self._known: dict[int, tuple[Tree, PlannerTree] | None] = {}

    @property
    def complete(self) -> bool:
        """Whether everything was looked at that had to be."""
        return not (self._budget.was_hit or self._composers.budget.was_hit)

    def _narrowing(self, freed: Iterable[int]) -> Narrowing:
        plan = self._prepared.plan
        return Narrowing(self._tx, plan, ids_for(self._tx, plan), spared={*freed})

    def _sums(self) -> dict[int, dict[str, int]]:
        """Return for each tree how much more of each class has to be free in it; of what others share, nothing."""
        narrowing = self._narrowing([])
        reader = TreeReader(self._tx, narrowing)
        if not reader.is_possible:
            self._by_root.clear()
        requested = {} if reader.shares else self._prepared.composer.requested
        number = len(requested)
        return {
            row[0]: {
                name: requested[name] - (has - used)
                for name, has, used in zip(requested, row[1 : 1 + number], row[1 + number :], strict=True)
            }
            for row in (reader.sums(list(requested), ()) if requested else ())
        }

    def cheapest(self, judge: _FairnessJudge, ask: Ask, is_free: Callable[[Held], bool]) -> _CheapestRoom:
        """Return the fewest in one tree without whom the request fits there, of these the least valuable."""
        hosts = sorted(self._hosts(judge, ask, is_free), key=lambda host: (host.bound, host.root))
        best, found = None, _CheapestRoom()
        for start in range(0, len(hosts), BATCH):
            batch = [host for host in hosts[start : start + BATCH] if best is None or host.bound < best]
            if not batch or self._budget.is_used_up:
                break
            self._read([host.root for host in batch])
            for host in batch:
                better = self._better(host, best)
                if better:
                    best, found = better[0], _CheapestRoom(host.tenants.chosen(better[1]), host.root)
        return found

    def _better(self, host: "_Tenancy", best: Cost | None) -> FittingChoice | None:
        """Return the best choice on a host if it costs less."""
        tree = self._known[host.root]
        if tree is None:
            return None
        steps = self._budget.child(STEPS_ON_A_HOST)
        return FittingSearch(host.tenants.nothing(), partial(self._fits, *tree, host), steps).best(best)

    def _hosts(self, judge: _FairnessJudge, ask: Ask, is_free: Callable[[Held], bool]) -> Iterator["_Tenancy"]:
        for root, all_of in self._by_root.items():
            missing = self._missing.get(root, {})
            court = judge.for_host(missing)
            # Who has nothing of what matters has nothing to give.
            concerned = [one.held for one in all_of if any(one.held.amounts.get(name) for name in court.classes)]
            names = {one.name for one in ask(court, concerned)}
            here = [one for one in all_of if one.held.name in names]
            if here:
                tenants = Tenants(court, here, missing=missing, values=self._values, is_free=is_free)
                bound = FittingSearch(tenants.nothing(), _never, self._budget).bound
                if bound is not None:
                    yield _Tenancy(root, tenants, bound)

    def _read(self, roots: Sequence[int]) -> None:
        """Read trees as they are, with the options that would have room if all their tenants went."""
        new = [root for root in roots if root not in self._known]
        if not new:
            return
        narrowing = self._narrowing([place for root in new for place in all_freed(self._by_root[root])])
        trees = TreeReader(self._tx, narrowing).trees_of(new).trees
        details = Details(self._tx, self._prepared.levels, with_units=True).of(trees)
        self._known.update(dict.fromkeys(new))
        self._known.update({tree.root: (tree, detail) for tree, detail in zip(trees, details, strict=True)})

    def _fits(self, tree: Tree, details: PlannerTree, host: "_Tenancy", counts: Sequence[int]) -> bool:
        """Tell whether the request fits in a tree without so many of each kind of its tenants."""
        stocks = _without(details, all_freed(host.tenants.chosen(counts)))
        # Options that have no room now are there only because their tenants might go: all are looked at again.
        now = {provider: of for provider, of in details.stocks.items() if provider not in stocks}
        there = with_stocks(tree, self._prepared.plan, {**now, **stocks})
        if not all(there.options):
            return False
        changed = replace(details, stocks={**details.stocks, **stocks})
        return bool(self._prepared.composer.proposals(there, changed, self._composers.share).found)


@dataclass(frozen=True, slots=True)
class _Tenancy:
    root: int
    tenants: Tenants
    bound: Cost


def _never(_counts: Sequence[int]) -> bool:
    return False


def _without(details: PlannerTree, freed: Mapping[int, Counter[str]]) -> dict[int, dict[str, Stock]]:
    """Return the stocks of providers of which something becomes free."""
    return {
        provider: {
            name: replace(stock, used=stock.used - freed[provider][name])
            for name, stock in details.stocks[provider].items()
        }
        for provider in freed
        if provider in details.stocks
    }


def _by_root(tx: Transaction, held: Mapping[str, Held], requested: Mapping[str, int]) -> dict[int, list[Tenant]]:
    """Return the tenants of each tree."""
    ids = tx.names.classes.ids(tx.connection, requested)
    rows = [row for row in held_places(tx, ids.values()) if row[0] in held]
    names = tx.names.classes.names(tx.connection, {class_id for *_place, class_id, _amount in rows})
    freed: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
    inside: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for uuid, provider, root, class_id, amount in rows:
        name, there = names[class_id], inside[uuid, root]
        freed[uuid].append((provider, name, amount))
        there[name] = there.get(name, 0) + amount
    found: dict[int, list[Tenant]] = defaultdict(list)
    for (uuid, root), amounts in inside.items():
        found[root].append(Tenant(held[uuid], tuple(sorted(freed[uuid])), amounts))
    return found
