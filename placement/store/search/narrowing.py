"""Find the trees that can serve a plan, and their providers: the first phase of a search, done by the database.

The result is ids; whatever else the search needs to know is read afterwards (``trees``), and only for these.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from placement.domain.search_plan import Demand, Plan
from placement.store.connection.chunks import MAX_PARAMETERS
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.empty import conditions_that_left_nobody
from placement.store.search.names import NamedIds
from placement.store.search.ranges import EVERYWHERE, Extent, Scope
from placement.store.search.roots import RootShape, root_conditions
from placement.store.search.serving import DEMANDS, PROVIDER, ROOT, Columns, Serving, serving_providers
from placement.store.search.shapes import NarrowingShape, narrowing_shape, parameters
from placement.store.search.tree_room import RoomNeeded, RoomyTrees, RoomyTreesAsRead, room_needed
from placement.store.tables import resource_provider_aggregates, resource_providers

Options = dict[int, list[list[int]]]
"""Maps each tree, by the id of its root, to the providers that can serve each demand of the plan."""


class Sharing(NamedTuple):
    """Sharing providers that can serve something of a plan.

    Args:
        options: those that can serve each demand.
        root_of: the root of the tree that each is in.
        serving: the rows that the database found.
    """

    options: list[set[int]]
    root_of: dict[int, int]
    serving: Serving | None = None


class Narrowed(NamedTuple):
    """What narrowing leaves of an extent.

    Args:
        options: the trees in which every demand has a provider, by root id; providers ascend.
        serving: the rows found for the trees' own providers, including those of trees that dropped out.
    """

    options: Options
    serving: Serving


MANY_DEMANDS = 5
"""Reading this many demands in the whole cloud takes longer than ruling out the trees that have too little left."""

LOOKED_UP = 40
"""Looking up a tree takes as long as scanning this many providers."""

FEW_TREES = 8
"""Up to this many are always looked up."""

MAX_ASKED_ABOUT = 8
"""The most demands for which it is worth finding out why nobody serves them, if that is not why a search failed."""

NOTHING_LEFT = Narrowed({}, Serving([], Columns(()), ()))


class Narrowing:
    """Finds the trees in which every demand of a plan has a provider.

    Args:
        tx: the transaction.
        plan: what is asked for.
        ids: the ids of the names in the plan.
        with_fit_counts: whether to compute fit counts.
        spared: providers whose usage is ignored; the caller has to judge them itself.
        at_once: whether all slots take from a tree at the same time, so that it must have room for their sum.
        roomy: finds the trees that have room; by default they are read.
    """

    def __init__(
        self,
        tx: Transaction,
        plan: Plan,
        ids: NamedIds,
        *,
        with_fit_counts: bool = False,
        spared: Collection[int] = (),
        at_once: bool = False,
        roomy: RoomyTrees | None = None,
    ) -> None:
        self.plan = plan
        self.ids = ids
        self.with_fit_counts = with_fit_counts
        self.spared = spared
        self._tx = tx
        self._adds_up = at_once and not spared
        self._roomy = roomy or RoomyTreesAsRead(tx)
        self.ruled_out_by_room = False
        """Whether any tree was ruled out because too little is left in it for all that is asked for."""
        self._was_in_vain = False
        self._served: set[int] = set()
        """Demands known to have a provider, although no tree was left."""
        self._values = {**parameters(plan, ids), "spared": sorted(spared)}
        self._shape = narrowing_shape(
            plan, ids, keeps_usage=tx.database.keeps_usage, with_fit_counts=with_fit_counts, spares=bool(spared)
        )

    @property
    def signature(self) -> Hashable | None:
        """A key that two narrowings share only if they find the same; None if providers are spared."""
        return None if self._shape.spares else (self._shape, repr(sorted(self._values.items())))

    @property
    def is_possible(self) -> bool:
        """Whether the request's names leave any hope: an unknown aggregate or tree has no members."""
        for group in self.plan.request.groups:
            if group.in_tree is not None and group.in_tree not in self.ids.roots:
                return False
            if any(any_of.isdisjoint(self.ids.aggregates) for any_of in group.member_of):
                return False
            if not (group.resources or group.required or group.member_of):
                # The reference finds no provider for a group that only forbids.
                return False
        return True

    @property
    def only_root(self) -> int | None:
        """The root of the single tree that in_tree leaves, if it does. May send the statement of ``sharing``."""
        for index, demand in enumerate(self.plan.demands):
            if self._shape.demands[index].in_tree and demand.group.in_tree and not self.sharing.options[index]:
                return self.ids.roots[demand.group.in_tree]
        return None

    @property
    def most_listed(self) -> int:
        """The most trees that a statement can list by their roots, which it does for each demand."""
        return MAX_PARAMETERS // (len(self.plan.demands) + 4)

    @cached_property
    def _rooms(self) -> Mapping[int, RoomNeeded]:
        """What a tree must have left for all that only it can give; nothing if that rules no tree out."""
        if not self._adds_up:
            return {}
        own = {demand for demand, servants in enumerate(self.sharing.options) if not servants}
        return {self.ids.classes[name]: room for name, room in room_needed(self.plan, own).items()}

    @cached_property
    def _roots_with_room(self) -> AbstractSet[int]:
        """The trees that have so much left. Sends at most one statement."""
        return self._roomy.roots(self._rooms)

    @cached_property
    def nobody(self) -> Mapping[int, str]:
        """The indices of demands that no provider can serve, each with the condition after which none is left.

        Demands already known to have a provider are not checked. Sends one statement, if any are left to check; none if
        there are many, and the search failed for another reason anyway.
        """
        asked = [number for number, of in enumerate(self.plan.demands) if self._is_open(number, of)]
        if self.ruled_out_by_room and len(asked) > MAX_ASKED_ABOUT:
            return {}
        return conditions_that_left_nobody(self._tx, self.plan, self.ids, asked)

    @property
    def _is_hopeless(self) -> bool:
        """Whether some demand has no provider at all; not checked if that costs about as much as a full read."""
        are_open = [self._is_open(number, of) for number, of in enumerate(self.plan.demands)]
        is_cheap = 0 < 2 * sum(are_open) <= len(are_open)
        return self._was_in_vain and is_cheap and not self._shape.spares and bool(self.nobody)

    def _is_open(self, number: int, demand: Demand) -> bool:
        return number not in self._served and not demand.ignores_usage

    def narrowed(self, extent: Extent, *, with_parents: bool = False) -> Narrowed:
        """Return what is left of the trees of an extent, by one statement, plus one if providers share.

        If an earlier read was in vain, or much is to be read, statements may go first that rule most trees out.

        Args:
            extent: the trees to look at.
            with_parents: whether to read the parents of providers.
        """
        if self._pays_to_check_room(extent):
            extent = self._with_room(extent)
        if extent.is_empty or (extent.scope is Scope.ALL and self._is_hopeless):
            return NOTHING_LEFT
        serving = self._serving(extent, with_parents=with_parents)
        options = self._options(serving)
        if self.sharing.root_of:
            self._add_sharing(options, extent)
        complete = {root: options[root] for root in sorted(options) if all(options[root])}
        if not complete:
            self._was_in_vain = True
            self._served.update([number for of in options.values() for number, providers in enumerate(of) if providers])
        for of_root in complete.values():
            for providers in of_root:
                if len(providers) > 1:
                    providers.sort()
        return Narrowed(complete, serving)

    def _pays_to_check_room(self, extent: Extent) -> bool:
        """Tell whether it costs little, compared with reading an extent, to look first which trees have enough left."""
        # Those that name a trait or an aggregate may be read faster.
        demands = sum([not demand.is_selective for demand in self._shape.demands])
        if extent.scope is Scope.ALL:
            return demands >= (1 if self._was_in_vain else MANY_DEMANDS)
        return self._was_in_vain and demands * extent.most_trees * LOOKED_UP >= self.ids.highest_root

    @property
    def _known_with_room(self) -> AbstractSet[int] | None:
        """The trees that have enough left, if a read was in vain and it costs little to know; None otherwise."""
        if not self._was_in_vain or not self._rooms:
            return None
        is_known = "_roots_with_room" in self.__dict__ or self._roomy.known(self._rooms)
        return self._roots_with_room if is_known else None

    def with_room(self, roots: Iterable[int]) -> Sequence[int] | None:
        """Return those of some trees that have enough left; None if that would have to be found out first."""
        known = self._known_with_room
        if known is None:
            return None
        asked = [*roots]
        left = [root for root in asked if root in known]
        self.ruled_out_by_room |= len(left) < len(asked)
        return left

    def with_room_from(self, first: int) -> Sequence[int] | None:
        """Return, in ascending order, the trees that have enough left, from a root id on; None in the same case."""
        known = self._known_with_room
        if known is None:
            return None
        self.ruled_out_by_room |= len(known) <= self._few
        return sorted([root for root in known if root >= first])

    def _with_room(self, extent: Extent) -> Extent:
        """Leave out the trees of an extent that have too little left, unless so many are left that a scan is faster."""
        if not self._rooms:
            return extent
        left = extent.among(self._roots_with_room, at_most=min(self.most_listed, self._few))
        self.ruled_out_by_room |= left != extent
        return left

    @property
    def _few(self) -> int:
        """Up to this many trees are looked up rather than found by a scan."""
        return max(FEW_TREES, self.ids.highest_root // LOOKED_UP)

    def _options(self, serving: Serving) -> Options:
        """Return by tree and demand the providers in some rows, in no particular order."""
        demands = range(len(self.plan.demands))
        options: Options = defaultdict(lambda: [[] for _ in demands])
        number, root, provider = serving.columns.at(DEMANDS, ROOT, PROVIDER)
        served = serving.demands
        for row in serving.rows:
            of_root, one = options[row[root]], row[provider]
            for demand in served[row[number]]:
                of_root[demand].append(one)
        return options

    def are_shared(self, demands: Iterable[int]) -> bool:
        """Tell whether providers of other trees can serve any of some demands."""
        return any(self.sharing.options[demand] for demand in demands)

    def own_providers(self, demands: Sequence[int], roots: Collection[int] | None = None) -> Serving:
        """Return the trees' own providers that can serve some demands, with their parents.

        ``roots`` selects trees, no more than fit into a statement; None means all.
        """
        extent = EVERYWHERE if roots is None else Extent.listed(sorted(roots))
        return self._serving(extent, with_parents=True, only=tuple(demands))

    @cached_property
    def sharing(self) -> Sharing:
        """The sharing providers of all trees that can serve anything of the plan. One statement, if any exist."""
        options: list[set[int]] = [set() for _ in self.plan.demands]
        if not self.ids.shares:
            return Sharing(options, {})
        root_of: dict[int, int] = {}
        serving = self._found(replace(self._shape, sharing=True), {})
        number, root, provider = serving.columns.at(DEMANDS, ROOT, PROVIDER)
        served, rows = serving.demands, []
        for row in serving.rows:
            if shared := [demand for demand in served[row[number]] if not self._stays_inside(demand)]:
                for demand in shared:
                    options[demand].add(row[provider])
                root_of[row[provider]] = row[root]
                rows.append(row)
        return Sharing(options, root_of, replace(serving, rows=rows))

    def _stays_inside(self, demand: int) -> bool:
        """Tell whether in_tree keeps a demand, one of the unsuffixed group, inside the tree."""
        return self._shape.demands[demand].in_tree and not self.plan.demands[demand].group.is_granular

    def _serving(self, extent: Extent, *, with_parents: bool, only: tuple[int, ...] | None = None) -> Serving:
        shape = replace(self._shape, scope=extent.scope, with_parents=with_parents)
        return self._found(shape, extent.values, only)

    def _found(self, shape: NarrowingShape, values: Mapping[str, Any], only: tuple[int, ...] | None = None) -> Serving:
        statement, columns, together = serving_providers(shape, only)
        return Serving(self._tx.tuples(statement, {**self._values, **values}), columns, together)

    def _add_sharing(self, options: Options, extent: Extent) -> None:
        """Add each sharing provider to the trees it shares with, even those without a fitting provider of their own."""
        root_of = self.sharing.root_of
        served = {
            provider: [demand for demand, servants in enumerate(self.sharing.options) if provider in servants]
            for provider in root_of
        }
        values = {**self._values, **extent.values, "providers": sorted(root_of)}
        for root, provider in self._tx.tuples(_shared_with(self._shape.root, scope=extent.scope), values):
            for demand in served[provider]:
                providers = options[root][demand]
                # Within its own tree it may have been found already.
                if root != root_of[provider] or provider not in providers:
                    providers.append(provider)


_PROVIDER = resource_providers.c


@lru_cache(maxsize=64)
def _shared_with(root: RootShape, *, scope: Scope) -> PreparedStatement:
    """Return the statement for rows of (root id, id of a sharing provider that shares an aggregate with that tree)."""
    shares = resource_provider_aggregates.alias("shares")
    member = resource_provider_aggregates.alias("member")
    return PreparedStatement(
        select(_PROVIDER.root_provider_id, shares.c.resource_provider_id)
        .join(member, member.c.resource_provider_id == _PROVIDER.id)
        .join(shares, shares.c.aggregate_id == member.c.aggregate_id)
        .where(
            shares.c.resource_provider_id.in_(bindparam("providers", expanding=True)),
            *root_conditions(root, _PROVIDER.root_provider_id, scope=scope),
        )
        .distinct()
    )
