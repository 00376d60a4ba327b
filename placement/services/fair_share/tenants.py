"""What consumers hold in each tree, and whether a request fits into a tree without some of them.

Rules of a request may name a place: what has to become free must do so in *one* of these. Sums of a whole host say
little where four GPUs have to be behind one switch.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import prod

import numpy as np

from placement.allocators.fair_share.reclaim import Freed, Held, Need
from placement.candidates.planner.planner_trees import TreesInDetail, with_stocks
from placement.candidates.serving import Serving
from placement.candidates.tree_reader import Layout, TreeReader
from placement.domain.planner_request import PlannerRequest
from placement.domain.tree import AS_IT_IS, Levels, PlannerTree, Tree
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.fair_share.giving_back import ReclaimClaim
from placement.services.fair_share.shares import UNKNOWN
from placement.services.planner.questions import Composers, PlannerOptions, seen_cloud
from placement.store.allocations import held_by
from placement.store.connection.database import Transaction
from placement.store.fair_share import held_places, members_of, owner_names

Missing = Mapping[Need, int]
"""How much more has to be free."""

MAX_CHOICES = 64
"""The most ways to choose places for the rules on one host; beyond that no places are chosen."""


@dataclass(frozen=True, slots=True)
class PlaceRule:
    """Groups that lie in one place of a level: the index of the level, and what each group asks for."""

    level: int
    groups: Mapping[str, Mapping[str, int]]


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


def places_of_rules(
    serving: Serving, rules: Sequence[PlaceRule], levels: Sequence[int | None], *, classes: Mapping[str, int]
) -> "RulePlaces":
    """Return the places of all hosts that some rules name, and what is free in them.

    ``levels`` has the id of the trait of each level that rules name, ``classes`` the ids of the classes they ask for.
    """
    if not rules:
        return RulePlaces((), {}, {}, {})
    providers, places = serving.columns.providers, serving.places_of(levels)
    of_root: dict[tuple[int, int], list[int]] = defaultdict(list)
    for level in {rule.level for rule in rules}:
        if (is_place := places[level]) is None:
            continue
        at = np.flatnonzero(is_place)
        for anchor, root in zip(providers.ids[at].tolist(), providers.roots[providers.trees[at]].tolist(), strict=True):
            of_root[level, root].append(anchor)
    stocks = {name: serving.columns.stock(class_id) for name, class_id in classes.items()}
    at = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *[stock.at for stock in stocks.values()]]))
    anchors = {
        provider: tuple(dict.fromkeys([anchor for anchor in position if anchor is not None]))
        for provider, position in Layout(providers, at, places).positions.items()
    }
    free: dict[Need, int] = defaultdict(int)
    for name, stock in stocks.items():
        amounts = np.trunc(stock.capacity).astype(np.int64) - stock.used
        for provider, amount in zip(providers.ids[stock.at].tolist(), amounts.tolist(), strict=True):
            for anchor in anchors[provider]:
                free[anchor, name] += amount
    return RulePlaces(rules, anchors, of_root, free)


@dataclass(frozen=True, slots=True)
class RulePlaces:
    """The places of all hosts: by provider and by (level, root) their anchors, and what is free in each."""

    rules: Sequence[PlaceRule]
    anchors: Mapping[int, tuple[int, ...]]
    by_root: Mapping[tuple[int, int], Sequence[int]]
    free: Mapping[Need, int]

    def missing(self, root: int, could_free: Callable[[Missing], bool]) -> Iterator[Missing]:
        """Yield what more has to be free in a tree, for each choice of one place per rule that could free that much."""
        alone = [
            [
                anchor
                for anchor in self.by_root.get((rule.level, root), ())
                if could_free(self._missing({anchor: rule.groups}))
            ]
            for rule in self.rules
        ]
        if prod(map(len, alone)) > MAX_CHOICES:
            yield {}
        else:
            yield from filter(could_free, self._together(product(*alone)))

    def _together(self, choices: Iterable[Sequence[int]]) -> Iterator[Missing]:
        """Yield what more has to be free for each choice of one place per rule, without duplicates."""
        yielded = set()
        for chosen in choices:
            by_anchor: dict[int, dict[str, Mapping[str, int]]] = defaultdict(dict)
            for rule, anchor in zip(self.rules, chosen, strict=True):
                # A group that two rules put into the same place counts once.
                by_anchor[anchor].update(rule.groups)
            missing = self._missing(by_anchor)
            if (same := frozenset(missing.items())) not in yielded:
                yielded.add(same)
                yield missing

    def _missing(self, groups_by_anchor: Mapping[int, Mapping[str, Mapping[str, int]]]) -> Missing:
        needed: dict[Need, int] = defaultdict(int)
        for anchor, groups in groups_by_anchor.items():
            for amounts in groups.values():
                for name, amount in amounts.items():
                    needed[anchor, name] += amount
        return {need: amount - self.free.get(need, 0) for need, amount in needed.items()}


FreedByProvider = Mapping[int, Counter[str]]
"""Amounts that become free: provider -> class -> amount."""


@dataclass(frozen=True, slots=True)
class RoomRequest:
    """The request behind a claim, with the operator's options for it."""

    request: PlannerRequest
    options: PlannerOptions


class EmptiedTrees:
    """The trees of the cloud without some of their tenants, each read when it is first examined."""

    def __init__(self, tx: Transaction, room_request: RoomRequest) -> None:
        self._tx = tx
        self._request = room_request.request
        self._composers = Composers()
        self._composer = self._composers.composer(room_request.request, room_request.options)
        self._read: dict[int, tuple[Tree, PlannerTree] | None] = {}

    @property
    def were_cut_off(self) -> bool:
        """Whether the planner ran out of budget before it had seen everything."""
        return self._composers.budget.was_hit

    @property
    def requested(self) -> Mapping[str, int]:
        """The requested amount of each class."""
        return self._composer.requested

    def places(self) -> RulePlaces:
        """Return the places that rules name on all hosts; none if any providers share: those lie in no place."""
        levels, serving = self._composer.levels, self._reader.serving
        rules = [] if self._reader.shares else place_rules(self._request, levels)
        names = {name for rule in rules for amounts in rule.groups.values() for name in amounts}
        classes = self._tx.names.classes.ids(self._tx.connection, names)
        traits = self._tx.names.traits.ids(self._tx.connection, {levels.traits[rule.level] for rule in rules})
        serving.sets.read_traits(traits.values())
        return places_of_rules(serving, rules, [traits.get(trait) for trait in levels.traits], classes=classes)

    @cached_property
    def _reader(self) -> TreeReader:
        plan = self._composer.plan
        return cloud_in(self._tx).reader(plan, ids_in(self._tx, plan))

    def missing(self) -> dict[int, dict[Need, int]]:
        """Return for each tree how much more of each class has to be free in it; nothing if any providers share."""
        reader = self._reader
        requested = {} if reader.shares else self._composer.requested
        number = len(requested)
        return {
            row[0]: {
                name: requested[name] - (has - used)
                for name, has, used in zip(requested, row[1 : 1 + number], row[1 + number :], strict=True)
            }
            for row in (reader.sums(list(requested)) if requested else ())
        }

    def unread(self, roots: Iterable[int]) -> list[int]:
        """Return those of the trees that have not been read yet."""
        return [root for root in roots if root not in self._read]

    def read(self, roots: Sequence[int], freed: FreedByProvider) -> None:
        """Read trees as they are, but with the options that would have room once these amounts are free."""
        cloud = seen_cloud(self._tx, self._request, self._composer.levels, self._reader)
        trees = self._reader.under(AS_IT_IS.releasing(freed)).trees_of(roots)
        details = TreesInDetail(cloud).built(trees)
        self._read.update(dict.fromkeys(roots))
        self._read.update({tree.root: (tree, detail) for tree, detail in zip(trees, details, strict=True)})

    def fits(self, root: int) -> Callable[[FreedByProvider], bool] | None:
        """Return a check whether the request fits into a tree once something is free; None if it never can."""
        tree = self._read.get(root)
        return None if tree is None else partial(self._fits, *tree)

    def _fits(self, tree: Tree, details: PlannerTree, freed: FreedByProvider) -> bool:
        changed = details.under(AS_IT_IS.releasing(freed))
        # Options without room are only listed because their tenants might leave, so check them all again.
        emptied = with_stocks(tree, self._composer.plan, changed.stocks)
        if not all(emptied.options):
            return False
        return bool(self._composer.proposals(emptied, changed, self._composers.budget_now).proposals)


Anchors = Mapping[int, Collection[int]]
"""Provider -> the anchors of the relevant places that it lies in."""


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

    def read(self, classes: Collection[str], anchors: Anchors) -> None:
        """Read what consumers that hold any class of the claim hold of these classes, in each tree and place."""
        settings, options = self._claim.settings, self._claim.options
        names = {id_: name for name, id_ in self._tx.names.classes.ids(self._tx.connection, classes).items()}
        owners: dict[str, int | None] = {}
        counted: dict[str, dict[str, int]] = defaultdict(dict)
        inside: dict[tuple[str, int], dict[Need, int]] = defaultdict(dict)
        for uuid, owner, provider, root, class_id, used in held_places(self._tx, names, settings.leaves):
            name, in_tree = names[class_id], inside[uuid, root]
            owners[uuid] = owner
            in_tree[name] = in_tree.get(name, 0) + used
            for anchor in anchors.get(provider, ()):
                in_tree[anchor, name] = in_tree.get((anchor, name), 0) + used
            if self._counts(provider, name):
                amounts = counted[uuid]
                amounts[name] = amounts.get(name, 0) + used
        # The path of each owner's leaf.
        names_of_owners = owner_names(
            self._tx, settings.leaves, {owner for owner in owners.values() if owner is not None}
        )
        paths: dict[int | None, str] = {None: settings.queues.path_of(UNKNOWN)}
        paths |= {owner: settings.queues.path_of(name) for owner, name in names_of_owners.items()}
        for (uuid, root), in_tree in inside.items():
            if uuid not in options.keep and not counted[uuid].keys().isdisjoint(self._claim.task):
                path = paths.get(owners[uuid], paths[None])
                value = options.values.get(uuid, 0)
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
