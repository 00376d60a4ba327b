"""Find the consumers that should give back what they hold so that a claim fits. Nothing is carried out.

Here is what a claim meets, who should give back wherever that becomes free, and what the tenants of each host could
give. Rules of a request may name a place: what has to become free must do so in *one* of these. Sums of a whole host
say little where four GPUs have to be behind one switch.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from placement.allocators import Number
from placement.allocators.fair_share import reclaim as library
from placement.allocators.fair_share.reclaim import ClaimRights, Freed, Giving, Held, Need
from placement.allocators.fair_share.tree import Amounts, ratio
from placement.candidates.planner.planner_trees import with_stocks
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.tree_reader import Layout
from placement.domain.planner_request import PlannerRequest
from placement.domain.quantities import ResourceAmounts
from placement.domain.tree import AS_IT_IS, Levels, NamedMember, PlannerTree, ProviderAmounts, Tree
from placement.services.fair_share.shares import UNKNOWN, Wish, counted, current_reading, pending_tasks
from placement.services.planner.candidates import PlannedCandidate
from placement.settings.planner.values import FairShareSettings
from placement.store.allocations import held_by
from placement.store.connection.database import Database, Transaction, reads
from placement.store.fair_share import UsageScope, held_places, holdings, members_of, owner_names


@dataclass(frozen=True, slots=True)
class ReclaimOptions:
    """Which consumers may be asked to give back, by their values (0 by default); ``keep`` are left alone.

    With a ``priority``, that of the claim, values are priorities, too.
    """

    values: Mapping[str, Number]
    keep: frozenset[str] = frozenset()
    priority: Number | None = None


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The consumers that should give back what they hold, and what that makes room for.

    ``members`` are the names of leaves by path, ``host`` the uuid of the tree whose consumers give, if only they may,
    and ``candidate`` the one that would then rank first, if amounts alone do not count.
    """

    giving: Giving
    members: Mapping[str, str]
    host: str | None = None
    candidate: PlannedCandidate | None = None
    providers: Mapping[int, NamedMember] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReclaimClaim:
    """Who claims what of the classes that count, the first task that each other leaf waits for, and the rules."""

    settings: FairShareSettings
    options: ReclaimOptions
    member: str
    task: Amounts
    waiting: Mapping[str, Amounts]
    waiting_members: tuple[str, ...]


class ClaimedShares:
    """The shares that a claim meets, and the name of each leaf's project (or consumer type), by path."""

    def __init__(self, tx: Transaction, claim: ReclaimClaim) -> None:
        settings = claim.settings
        reading, named = current_reading(tx, settings), (claim.member, *claim.waiting_members)
        self.claim = claim
        self.shares = reading.shares(settings, waiting=claim.waiting, members=named)
        self.members = reading.leaves(settings, *named)
        self._rights: dict[tuple[str, ...] | None, ClaimRights] = {}

    def rights(self, classes: tuple[str, ...] | None = None) -> ClaimRights:
        """Return the rights of the claimant, by default for the classes that are lacking."""
        if classes not in self._rights:
            claim = self.claim
            path, priority = claim.settings.queues.path_of(claim.member), claim.options.priority
            self._rights[classes] = ClaimRights(self.shares, path, claim.task, classes=classes, priority=priority)
        return self._rights[classes]

    def rights_on_host(self, missing: Mapping[Need, int]) -> ClaimRights:
        """Return the rights for the classes that matter on a host: nobody can have too much of what is plentiful."""
        task = self.claim.task
        lacking = {name for name in task if missing.get(name, 0) > 0}
        return self.rights(tuple(sorted({*self.rights().classes, self._dominant, *lacking})))

    @cached_property
    def _dominant(self) -> str:
        """The class of which the claim is the largest part."""
        task, totals = self.claim.task, self.shares.totals()
        return max(task, key=lambda name: (ratio(task[name], totals[name]), name))


def claim_of(
    database: Database, settings: FairShareSettings, claimant: Wish, *, wishes: Sequence[Wish], options: ReclaimOptions
) -> ReclaimClaim:
    """Return the claim on the classes that count, and what others wait for; InvalidAt as ``counted``."""
    pending = pending_tasks(database, settings, wishes)
    task = counted(database, settings, [claimant])[0]
    waiting = {leaf: tasks[0].amounts for leaf, tasks in pending.items()}
    return ReclaimClaim(settings, options, claimant.member, task, waiting, tuple([wish.member for wish in wishes]))


@reads
def reclaim(tx: Transaction, claim: ReclaimClaim) -> GivenBack:
    """Return the consumers that should give back what they hold so that a claim fits. Bypasses the usage cache."""
    met = ClaimedShares(tx, claim)
    rights = met.rights()
    held = _held(tx, claim, {name for _path, name in rights.needs})
    giving = library.reclaim(met.shares, rights.claimant, claim.task, held=held, priority=rights.priority)
    return GivenBack(giving, met.members)


def _held(tx: Transaction, claim: ReclaimClaim, classes: Collection[str]) -> list[Held]:
    settings, options = claim.settings, claim.options
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    names = {id_: name for name, id_ in ids.items()}
    needed = [ids[name] for name in classes if name in ids]
    held: dict[str, tuple[str, dict[str, int]]] = {}
    scope = UsageScope(settings.leaves, names, settings.partition)
    for uuid, owner, class_id, amount in holdings(tx, scope, class_ids=needed) if needed else ():
        if uuid not in options.keep:
            held.setdefault(uuid, (owner or UNKNOWN, {}))[1][names[class_id]] = int(amount)
    path_of = settings.queues.path_of
    return [Held(uuid, path_of(owner), amounts, options.values.get(uuid, 0)) for uuid, (owner, amounts) in held.items()]


Missing = Mapping[Need, int]
"""How much more has to be free."""

MAX_CHOICES = 64
"""The most ways to choose places for the rules on one host; beyond that no places are chosen."""


@dataclass(frozen=True, slots=True)
class PlaceRule:
    """Groups that lie in one place of a level: the index of the level, and what each group asks for."""

    level: int
    groups: Mapping[str, ResourceAmounts]

    @property
    def classes(self) -> set[str]:
        """The classes that the groups ask for."""
        return {name for amounts in self.groups.values() for name in amounts}


def place_rules(request: PlannerRequest, levels: Levels) -> list[PlaceRule]:
    """Return the required rules of a request that name one place, including affinity to a single primary provider."""
    amounts, single = dict[str, dict[str, int]](), set[str]()
    for group in request.groups:
        amounts[group.suffix] = {name: amount * group.count for name, amount in group.group.resources.items()}
        if group.count == 1 and not group.everything and not group.per_subtree:
            single.add(group.suffix)
    together = [(rule.groups, rule.level) for rule in request.within if rule.required]
    together += [
        ((rule.primary, *rule.secondaries), rule.level)
        for rule in request.affinity
        if rule.required and rule.primary in single
    ]
    return [
        PlaceRule(levels.names.index(levels.named(level)), {suffix: amounts[suffix] for suffix in suffixes})
        for suffixes, level in together
        if any(amounts[suffix] for suffix in suffixes)
    ]


class RulePlaces:
    """The places of all hosts that rules of a question name, and what is free in them."""

    def __init__(self, question: PlannerQuestion) -> None:
        reader, levels = question.cloud.reader, question.composer.levels
        # What providers share with other trees lies in no place.
        self._rules = [] if reader.shares else place_rules(question.request, levels)
        self.anchors: dict[int, tuple[int, ...]] = {}
        """By provider that has any of the classes in rules, the anchors of its places."""
        self._by_root: dict[tuple[int, int], list[int]] = defaultdict(list)
        """By level and root, the anchors of its places."""
        self._free: dict[Need, int] = defaultdict(int)
        if self._rules:
            self._read(question)

    def _read(self, question: PlannerQuestion) -> None:
        serving, ids = question.cloud.reader.serving, {name: id_ for id_, name in question.cloud.class_names.items()}
        providers, places = serving.columns.providers, serving.places_of(question.cloud.levels)
        for level in {rule.level for rule in self._rules}:
            if (is_place := places[level]) is None:
                continue
            at = np.flatnonzero(is_place)
            roots = providers.roots[providers.trees[at]].tolist()
            for anchor, root in zip(providers.ids[at].tolist(), roots, strict=True):
                self._by_root[level, root].append(anchor)
        classes = set[str]().union(*[rule.classes for rule in self._rules]) & ids.keys()
        stocks = {name: serving.columns.stock(ids[name]) for name in classes}
        at = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *[stock.at for stock in stocks.values()]]))
        for provider, position in Layout(providers, at, places).positions.items():
            self.anchors[provider] = tuple(dict.fromkeys([anchor for anchor in position if anchor is not None]))
        for name, stock in stocks.items():
            amounts = np.trunc(stock.capacity).astype(np.int64) - stock.used
            for provider, amount in zip(providers.ids[stock.at].tolist(), amounts.tolist(), strict=True):
                for anchor in self.anchors[provider]:
                    self._free[anchor, name] += amount

    def missing(self, root: int, could_free: Callable[[Missing], bool]) -> Iterator[Missing]:
        """Yield what more has to be free in a tree, for each choice of one place per rule that could free that much."""
        anchors = [
            [
                anchor
                for anchor in self._by_root.get((rule.level, root), ())
                if could_free(self._missing([(anchor, rule)]))
            ]
            for rule in self._rules
        ]
        if prod(map(len, anchors)) > MAX_CHOICES:
            yield {}
            return
        choices = [self._missing(zip(chosen, self._rules, strict=True)) for chosen in product(*anchors)]
        yield from {frozenset(missing.items()): missing for missing in choices if could_free(missing)}.values()

    def _missing(self, chosen: Iterable[tuple[int, PlaceRule]]) -> Missing:
        # A group that two rules put into the same place counts once.
        groups = {(anchor, suffix): amounts for anchor, rule in chosen for suffix, amounts in rule.groups.items()}
        needed: Counter[Need] = Counter()
        for (anchor, _suffix), amounts in groups.items():
            for name, amount in amounts.items():
                needed[anchor, name] += amount
        return {need: amount - self._free.get(need, 0) for need, amount in needed.items()}


class EmptiedTrees:
    """The trees of the cloud without some of their tenants, each read when it is first examined."""

    def __init__(self, question: PlannerQuestion) -> None:
        self.avoided = question.avoided
        """The roots of the trees that the request avoids."""
        self._question = question
        self._composer = question.composer
        self._trees: dict[int, tuple[Tree, PlannerTree] | None] = {}

    @property
    def were_cut_off(self) -> bool:
        """Whether the planner ran out of budget before it had seen everything."""
        return self._question.budget().was_hit

    def missing(self) -> dict[int, dict[Need, int]]:
        """Return for each tree how much more of each class has to be free in it; nothing if any providers share."""
        reader, requested = self._question.cloud.reader, self._composer.requested
        if reader.shares or not requested:
            return {}
        number = len(requested)
        return {
            row[0]: {
                name: requested[name] - (has - used)
                for name, has, used in zip(requested, row[1 : 1 + number], row[1 + number :], strict=True)
            }
            for row in reader.sums(list(requested))
        }

    def unread(self, roots: Iterable[int]) -> list[int]:
        """Return those of the trees that have not been read yet."""
        return [root for root in dict.fromkeys(roots) if root not in self._trees]

    def read(self, roots: Sequence[int], freed: ProviderAmounts) -> None:
        """Read trees as they are, but with the options that would have room once these amounts are free."""
        trees = self._question.cloud.reader.under(AS_IT_IS.releasing(freed)).trees_of(roots)
        self._trees.update(dict.fromkeys(roots))
        in_detail = zip(trees, self._question.details.built(trees), strict=True)
        self._trees.update({tree.root: (tree, details) for tree, details in in_detail})

    def fits(self, root: int, freed: ProviderAmounts) -> bool:
        """Tell whether the request fits into a tree that has been read once something is free."""
        if (in_detail := self._trees.get(root)) is None:
            return False
        tree, details = in_detail
        changed = details.under(AS_IT_IS.releasing(freed))
        # Options without room are only listed because their tenants might leave, so check them all again.
        emptied = with_stocks(tree, self._composer.plan, changed.stocks)
        if not all(emptied.options):
            return False
        return bool(self._composer.proposals(emptied, changed, self._question.budget()).proposals)


class TenantsByHost:
    """The consumers that may be asked to give, in each tree, by the id of its root."""

    def __init__(self, tx: Transaction, claim: ReclaimClaim) -> None:
        self._tx = tx
        self._claim = claim
        partition = claim.settings.partition
        self._partition = None if partition is None else members_of(tx, partition)
        self.by_root: dict[int, list[Held]] = defaultdict(list)
        """Their holdings of the relevant classes; what their leaving frees is not known yet."""
        self._in_detail: dict[str, tuple[Counter[str], Freed]] = {}

    def _counts(self, provider: int, name: str) -> bool:
        return name in self._claim.settings.classes and (self._partition is None or provider in self._partition)

    def read(self, classes: Collection[str], anchors: Mapping[int, Collection[int]]) -> None:
        """Read what consumers that hold any class of the claim hold of these classes, in each tree and place."""
        settings, options = self._claim.settings, self._claim.options
        names = {id_: name for name, id_ in self._tx.names.classes.ids(self._tx.connection, classes).items()}
        owners: dict[str, int | None] = {}
        counted = defaultdict[str, Counter[str]](Counter)
        inside = defaultdict[tuple[str, int], Counter[Need]](Counter)
        for uuid, owner, provider, root, class_id, used in held_places(self._tx, names, settings.leaves):
            name, in_tree = names[class_id], inside[uuid, root]
            owners[uuid] = owner
            in_tree[name] += used
            for anchor in anchors.get(provider, ()):
                in_tree[anchor, name] += used
            if self._counts(provider, name):
                counted[uuid][name] += used
        path_of, unowned = settings.queues.path_of, settings.queues.path_of(UNKNOWN)
        ids = {owner for owner in owners.values() if owner is not None}
        paths = {owner: path_of(name) for owner, name in owner_names(self._tx, settings.leaves, ids).items()}
        for (uuid, root), in_tree in inside.items():
            if uuid not in options.keep and not counted[uuid].keys().isdisjoint(self._claim.task):
                owner, value = owners[uuid], options.values.get(uuid, 0)
                path = unowned if owner is None else paths.get(owner, unowned)
                self.by_root[root].append(Held(uuid, path, counted[uuid], value, inside=in_tree))

    def leaves(self) -> set[str]:
        """Return the paths of all leaves with holdings."""
        return {tenant.leaf for tenants in self.by_root.values() for tenant in tenants}

    def in_detail(self, tenants: Sequence[Held]) -> list[Held]:
        """Return tenants with everything they hold and everything their leaving frees."""
        unread = {tenant.name for tenant in tenants} - self._in_detail.keys()
        rows = held_by(self._tx, sorted(unread)) if unread else []
        names = self._tx.names.classes.names(self._tx.connection, {row.class_id for row in rows})
        freed = defaultdict[str, list[tuple[int, str, int]]](list)
        for uuid, provider, class_id, used, _id in rows:
            freed[uuid].append((provider, names[class_id], used))
        for uuid, places in freed.items():
            amounts = Counter[str]()
            for provider, name, used in places:
                if self._counts(provider, name):
                    amounts[name] += used
            self._in_detail[uuid] = amounts, tuple(sorted(places))
        details = [self._in_detail[tenant.name] for tenant in tenants]
        return [
            replace(tenant, amounts=amounts, freed=freed)
            for tenant, (amounts, freed) in zip(tenants, details, strict=True)
        ]
