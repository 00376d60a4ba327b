"""The trees of the cloud without some tenants: who holds what where, and whether a request fits without them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from placement.allocators.fair_share.reclaim import Freed, Held, Need
from placement.candidates.planner.planner_trees import TreesInDetail, with_stocks
from placement.candidates.tree_reader import TreeReader
from placement.domain.overlay import AS_IT_IS
from placement.domain.planner_request import PlannerRequest
from placement.domain.tree import PlannerTree, ProviderStocks, Tree
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.fair_share.giving_back import ReclaimClaim
from placement.services.fair_share.rule_places import RulePlaces, place_rules, places_of_rules
from placement.services.fair_share.shares import UNKNOWN
from placement.services.planner.questions import Composers, PlannerOptions, seen_cloud
from placement.store.allocations import held_by
from placement.store.connection.database import Transaction
from placement.store.fair_share import held_places, members_of, owner_names

FreedByProvider = Mapping[int, Counter[str]]
"""Amounts that become free: provider -> class -> amount."""


@dataclass(frozen=True, slots=True)
class RoomRequest:
    """The request behind a claim, with the operator's options for it."""

    request: PlannerRequest
    options: PlannerOptions


class EmptiedTrees:
    """The trees of the cloud without some of their tenants, each read when it is first examined.

    Args:
        tx: the transaction.
        room_request: the request.
    """

    def __init__(self, tx: Transaction, room_request: RoomRequest) -> None:
        self._tx = tx
        self._request = room_request.request
        self._composers = Composers()
        self._prepared = self._composers.prepared(room_request.request, room_request.options)
        self._read: dict[int, tuple[Tree, PlannerTree] | None] = {}

    @property
    def were_cut_off(self) -> bool:
        """Whether the planner ran out of budget before it had seen everything."""
        return self._composers.budget.was_hit

    @property
    def requested(self) -> Mapping[str, int]:
        """The requested amount of each class."""
        return self._prepared.composer.requested

    def places(self) -> RulePlaces:
        """Return the places that rules name on all hosts; none if any providers share: those lie in no place."""
        levels, serving = self._prepared.levels, self._reader.serving
        rules = [] if self._reader.shares else place_rules(self._request, levels)
        names = {name for rule in rules for amounts in rule.groups.values() for name in amounts}
        classes = self._tx.names.classes.ids(self._tx.connection, names)
        traits = self._tx.names.traits.ids(self._tx.connection, {levels.traits[rule.level] for rule in rules})
        serving.sets.read_traits(traits.values())
        return places_of_rules(serving, rules, [traits.get(trait) for trait in levels.traits], classes=classes)

    @cached_property
    def _reader(self) -> TreeReader:
        plan = self._prepared.plan
        return cloud_in(self._tx).reader(plan, ids_in(self._tx, plan))

    def missing(self) -> dict[int, dict[Need, int]]:
        """Return for each tree how much more of each class has to be free in it; nothing if any providers share."""
        reader = self._reader
        requested = {} if reader.shares else self._prepared.composer.requested
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
        cloud = seen_cloud(self._tx, self._request, self._prepared.levels, self._reader)
        trees = self._reader.under(AS_IT_IS.releasing(freed)).trees_of(roots)
        details = TreesInDetail(self._reader.serving, cloud.deciding(), cloud.names).built(trees)
        self._read.update(dict.fromkeys(roots))
        self._read.update({tree.root: (tree, detail) for tree, detail in zip(trees, details, strict=True)})

    def fits(self, root: int) -> Callable[[FreedByProvider], bool] | None:
        """Return a check whether the request fits into a tree once something is free; None if it never can."""
        tree = self._read.get(root)
        return None if tree is None else partial(self._fits, *tree)

    def _fits(self, tree: Tree, details: PlannerTree, freed: FreedByProvider) -> bool:
        changed = replace(details, stocks={**details.stocks, **_without(details, freed)})
        # Options without room are only listed because their tenants might leave, so check them all again.
        emptied = with_stocks(tree, self._prepared.plan, changed.stocks)
        if not all(emptied.options):
            return False
        return bool(self._prepared.composer.proposals(emptied, changed, self._composers.budget_now).proposals)


def _without(details: PlannerTree, freed: FreedByProvider) -> dict[int, ProviderStocks]:
    """Return the stocks of the providers where something becomes free."""
    return {
        provider: ProviderStocks(
            (name, replace(stock, used=stock.used - freed[provider][name]))
            for name, stock in details.stocks[provider].items()
        )
        for provider in freed
        if provider in details.stocks
    }


Anchors = Mapping[int, Collection[int]]
"""Provider -> the anchors of the relevant places that it lies in."""


class TenantsByHost:
    """The consumers that may be asked to give, in each tree, by the id of its root.

    Args:
        tx: the transaction.
        claim: the classes and providers that count towards fair shares, who may be asked, and their values.
    """

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
        paths = self._paths({*owners.values()})
        for (uuid, root), in_tree in inside.items():
            if uuid not in options.keep and not counted[uuid].keys().isdisjoint(self._claim.task):
                path = paths.get(owners[uuid], paths[None])
                value = options.values.get(uuid, 0)
                self.by_root[root].append(Held(uuid, path, counted[uuid], value, inside=in_tree))

    def _paths(self, owners: Iterable[int | None]) -> dict[int | None, str]:
        """Return the path of each owner's leaf."""
        settings = self._claim.settings
        names = owner_names(self._tx, settings.leaves, {owner for owner in owners if owner is not None})
        path_of = settings.queues.path_of
        return {None: path_of(UNKNOWN)} | {owner: path_of(name) for owner, name in names.items()}

    def leaves(self) -> set[str]:
        """Return the paths of all leaves with holdings."""
        return {tenant.leaf for tenants in self.by_root.values() for tenant in tenants}

    def in_detail(self, tenants: Sequence[Held]) -> list[Held]:
        """Return tenants with everything they hold and everything their leaving frees."""
        self._read_in_detail({tenant.name for tenant in tenants} - self._in_detail.keys())
        details = [self._in_detail[tenant.name] for tenant in tenants]
        return [
            replace(tenant, amounts=amounts, freed=freed)
            for tenant, (amounts, freed) in zip(tenants, details, strict=True)
        ]

    def _read_in_detail(self, uuids: Collection[str]) -> None:
        rows = held_by(self._tx, sorted(uuids)) if uuids else []
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
