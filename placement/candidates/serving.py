"""Which providers of a cloud can serve each demand of a plan, and in which trees every demand has one.

Conditions on single providers are sets; what is left of amounts is compared in columns. What depends on several
providers at once is left to composing, except for one sum: a tree needs room for all that only it can give.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum, auto
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from placement.cloud.columns import CloudColumns, CloudView, StockColumns, with_changes
from placement.cloud.providers import Flags, Floats, Ints, ProviderColumns, places_in
from placement.domain.search_plan import Demand, NamedIds, Plan
from placement.domain.tree import AS_IT_IS, Overlay

Rule = Callable[[StockColumns, Ints, int], Flags]
"""Tells for some rows of a stock whether an amount can be taken from them."""


class Reach(Enum):
    """The way in which a provider may serve a demand; it decides what the conditions look at.

    In its own tree, it is judged by its own aggregates or by the root's, which span the tree for the unsuffixed group.
    """

    ITSELF = auto()
    ROOT = auto()
    SHARED = auto()


class ProviderSets(Protocol):
    """The sets of providers that meet conditions, as flags by position in a cloud's columns."""

    def read(self, *, traits: Collection[int] = (), aggregates: Collection[int] = ()) -> None:
        """Find out together who has each of some traits, and who is in each of some aggregates."""

    def with_trait(self, trait_id: int) -> Flags:
        """Return who has a trait."""

    def in_aggregate(self, aggregate_id: int) -> Flags:
        """Return who is in an aggregate."""

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return the aggregates of some providers, given by id."""


@dataclass(frozen=True, eq=False)
class SetsInView:
    """The sets of providers in a cloud as it would be."""

    sets: ProviderSets
    view: CloudView
    real: ProviderColumns

    def read(self, *, traits: Collection[int] = (), aggregates: Collection[int] = ()) -> None:
        """Find out together who has each of some traits, and who is in each of some aggregates."""
        self.sets.read(traits=traits, aggregates=aggregates)

    def with_trait(self, trait_id: int) -> Flags:
        """Return who has a trait."""
        return self.sets.with_trait(trait_id)[self.view.origin]

    def in_aggregate(self, aggregate_id: int) -> Flags:
        """Return who is in an aggregate."""
        return self.sets.in_aggregate(aggregate_id)[self.view.origin]

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return the aggregates of some providers, given by id."""
        at = self.view.columns.providers.positions([*providers])
        originals = dict(zip(providers, self.real.ids[self.view.origin[at]].tolist(), strict=True))
        aggregates = self.sets.aggregates_of({*originals.values()})
        return {provider: aggregates.get(original, ()) for provider, original in originals.items()}


class Sharing(NamedTuple):
    """Sharing providers that can serve something of a plan: for each demand, with their roots, and trees by index."""

    options: list[set[int]]
    root_of: dict[int, int]
    trees: Mapping[int, Ints]


@dataclass(eq=False)
class Serving:
    """Finds who can serve a plan in one state of a cloud, given the ids of its names, and who meets which condition.

    ``adds_up`` tells whether all slots take from a tree at the same time. ``overlay`` tells which trees are avoided or
    gone; its changes are in the columns.
    """

    plan: Plan
    ids: NamedIds
    _: KW_ONLY
    columns: CloudColumns
    sets: ProviderSets
    adds_up: bool = False
    overlay: Overlay = AS_IT_IS

    def under(self, overlay: Overlay, class_ids: Mapping[str, int]) -> "Serving":
        """Return the same under an overlay, given the ids of the classes that it changes; must not be repeated."""
        return replace(self, columns=with_changes(self.columns, overlay, class_ids), overlay=overlay)

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
        """The root of the single tree that in_tree leaves, if it does."""
        for index, demand in enumerate(self.plan.demands):
            if demand.resources and demand.group.in_tree and not self.sharing.options[index]:
                return self.ids.roots[demand.group.in_tree]
        return None

    def providers(
        self, demand: Demand, at: Ints | None = None, *, sharing: bool = False, whatever_is_used: bool = False
    ) -> Ints:
        """Return the positions of those of some, or all, that can serve a demand in their own trees, or by sharing."""
        rules = [rule for _name, rule in (UNIT_RULES if whatever_is_used else self.rules(demand))]
        for stock, amount in self.stocks(demand):
            at, rows = _owners(stock, at)
            at = at[np.logical_and.reduce([rule(stock, rows, amount) for rule in rules])]
        if at is None:
            at = np.arange(len(self.columns.providers.ids))
        is_spanned = demand.group.is_spanned and not sharing
        for name, _values, flags in self.conditions(demand, Reach.SHARED if sharing else Reach.ITSELF):
            if not (is_spanned and name == "member_of"):
                at = at[flags[at]]
        if is_spanned:  # Either way: a mix of own aggregates and those of the root does not count.
            members = np.logical_and.reduce([self.in_any_aggregate(any_of) for any_of in demand.group.member_of])
            at = at[members[at] | self.of_roots(members)[self.columns.providers.trees[at]]]
        return at

    def own_providers(self, demand: Demand, at: Ints | None = None) -> Ints:
        """Return the same, but only those in trees that meet all conditions on trees."""
        providers, possible = self.providers(demand, at), self.possible_trees
        return providers if possible is None else providers[possible[self.columns.providers.trees[providers]]]

    def places_of(self, levels: Sequence[int | None]) -> list[Flags | None]:
        """Return who is a place of each level, given by the id of its trait; None for nobody."""
        return [None if trait_id is None else self.sets.with_trait(trait_id) for trait_id in levels]

    def stocks(self, demand: Demand) -> list[tuple[StockColumns, int]]:
        """Return the stock of each class that a demand asks for, with the amount."""
        return [(self.columns.stock(self.ids.classes[name]), amount) for name, amount in demand.resources]

    def rules(self, demand: Demand) -> Iterator[tuple[str, Rule]]:
        """Yield the rules for taking an amount, by their names in explanations, in the order of these."""
        if demand.ignores_usage:
            yield "capacity", lambda stock, rows, _amount: stock.capacity[rows] > 0
            return
        yield "capacity", lambda stock, rows, amount: amount <= stock.capacity[rows] - stock.used[rows]
        yield from UNIT_RULES

    def flags(self, at: Ints) -> Flags:
        """Return positions as flags; -1 stands for nobody."""
        flags = np.zeros(len(self.columns.providers.ids), dtype=bool)
        flags[at[at >= 0]] = True
        return flags

    def conditions(self, demand: Demand, reach: Reach) -> Iterator[tuple[str, AbstractSet[str], Flags]]:
        """Yield the other conditions on single providers: the name in explanations, of what, and who meets it."""
        group, providers = demand.group, self.columns.providers
        for any_of in demand.required:
            yield "required", any_of, self.with_any_trait(any_of)
        for name in sorted(group.forbidden):
            yield "forbidden", {name}, ~self.with_any_trait([name])
        for any_of in group.member_of:
            members = self.in_any_aggregate(any_of)
            yield "member_of", any_of, self.of_roots(members)[providers.trees] if reach is Reach.ROOT else members
        if group.forbidden_aggregates:
            yield "forbidden_aggregates", group.forbidden_aggregates, ~self.in_any_aggregate(group.forbidden_aggregates)
        if not (group.resources or group.required or group.member_of):
            # The reference finds no provider for a group that only forbids, whichever tree it names.
            yield "empty_group", frozenset(), np.zeros(len(providers.ids), dtype=bool)
        # Like the reference, find a granular group without resources in any tree, as long as the named tree exists.
        root = self.ids.roots.get(group.in_tree or "")
        if group.in_tree is not None and (demand.resources or root is None):
            # in_tree keeps the unsuffixed group inside the tree.
            is_outside = reach is Reach.SHARED and not group.is_granular
            index = providers.tree_indices([] if root is None or is_outside else [root])
            yield "in_tree", {group.in_tree}, self.flags(providers.positions_in(index[index >= 0]))

    def with_any_trait(self, names: Collection[str]) -> Flags:
        """Return who has any of some traits."""
        return self._any_of([self.sets.with_trait(self.ids.traits[name]) for name in names])

    def in_any_aggregate(self, uuids: Collection[str]) -> Flags:
        """Return who is in any of some aggregates."""
        ids = self.ids.aggregates
        return self._any_of([self.sets.in_aggregate(ids[uuid]) for uuid in uuids if uuid in ids])

    def _any_of(self, sets: list[Flags]) -> Flags:
        if len(sets) == 1:
            return sets[0]
        flags: Flags = np.logical_or.reduce([np.zeros(len(self.columns.providers.ids), dtype=bool), *sets])
        return flags

    def of_roots(self, flags: Flags) -> Flags:
        """Return by tree whether its root is in a set of providers."""
        at = self.columns.providers.root_positions
        return (at >= 0) & flags[at]

    @cached_property
    def possible_trees(self) -> Flags | None:
        """Which trees meet all conditions on roots, and on trees as a whole; None for all."""
        request = self.plan.request
        conditions = [self.of_roots(self.with_any_trait(any_of)) for any_of in request.root_required]
        if request.root_forbidden:
            conditions.append(~self.of_roots(self.with_any_trait(request.root_forbidden)))
        if self.plan.forbidden_root_aggregates:
            conditions.append(~self.of_roots(self.in_any_aggregate(self.plan.forbidden_root_aggregates)))
        # If providers share, a trait may come from outside the tree, so its own providers do not decide.
        if not self.ids.shares:
            starts, owners = self.columns.providers.starts[:-1], map(self.with_any_trait, self.plan.trait_sets)
            conditions += [np.logical_or.reduceat(flags, starts) for flags in owners]
        if self.overlay.avoided:
            conditions.append(~np.isin(self.columns.providers.roots, [*self.overlay.avoided]))
        return np.logical_and.reduce(conditions) if conditions else None

    @cached_property
    def withheld(self) -> Flags | None:
        """Who is, or lies in, a place that somebody holds exclusively; None if nobody can."""
        return withheld(self.columns, self.sets, self.ids.locks) if self.ids.locks else None

    @cached_property
    def in_use(self) -> Flags:
        """On which providers, or below which, anything is in use."""
        used = np.zeros(len(self.columns.providers.ids), dtype=bool)
        for stock in map(self.columns.stock, self.columns.class_ids):
            used[stock.at[stock.used > 0]] = True
        used[self.columns.providers.with_ancestors(np.flatnonzero(used))] = True
        return used

    @cached_property
    def sharing(self) -> Sharing:
        """The sharing providers of all trees that can serve anything of the plan."""
        options: list[set[int]] = [set() for _ in self.plan.demands]
        if not self.ids.shares:
            return Sharing(options, {}, {})
        providers = self.columns.providers
        sharing = np.flatnonzero(self.sets.with_trait(self.ids.sharing_trait))
        if self.overlay.gone:
            gone = np.isin(providers.roots, [*self.overlay.gone])
            sharing = sharing[~gone[providers.trees[sharing]]]
        for demand, servants in zip(self.plan.demands, options, strict=True):
            servants.update(providers.ids[self.providers(demand, sharing, sharing=True)].tolist())
        serving = sorted(set().union(*options))
        roots = providers.roots[providers.trees[providers.positions(serving)]].tolist()
        root_of = dict(zip(serving, roots, strict=True))
        return Sharing(options, root_of, trees_shared_with(self.columns, self.sets, serving))

    def trees_with_room(self, at: Ints | None = None) -> Flags | None:
        """Return which trees have left what several slots take in all of a class that nobody else may give.

        Judged by the providers at some positions; None for all trees.
        """
        amounts, conditions = defaultdict[str, list[int]](list), []
        for slot in self.plan.slots if self.adds_up else ():
            for name, amount in slot.resources if not self.sharing.options[slot.demand] else ():
                amounts[name].append(amount)
        for name, needed in [(name, sum(of_slots)) for name, of_slots in amounts.items() if len(of_slots) > 1]:
            stock = self.columns.stock(self.ids.classes[name])
            owners, rows = _owners(stock, at)
            free = np.maximum(0, np.trunc(stock.capacity[rows]) - stock.used[rows])
            trees = self.columns.providers.trees[owners]
            conditions.append(np.bincount(trees, free, len(self.columns.providers.roots)) >= needed)
        return np.logical_and.reduce(conditions) if conditions else None

    def fit_counts(self, serving: Sequence[Ints]) -> Floats:
        """Return by position how often demands fit on those serving each, in millionths, all classes added up."""
        counts: Floats = np.zeros(len(self.columns.providers.ids))
        for demand, at in zip(self.plan.demands, serving, strict=True):
            for stock, amount in self.stocks(demand):
                rows = places_in(stock.at, at)
                counts[at] += np.trunc((stock.capacity[rows] - stock.used[rows]) * 1_000_000.0 / amount)
        return counts

    def room(self, name: str, at: Ints) -> Floats:
        """Return how much of a class all slots together may take from providers that have an inventory of it."""
        stock = self.columns.stock(self.ids.classes[name])
        rows = places_in(stock.at, at)
        return np.minimum(stock.capacity[rows] - stock.used[rows], stock.max_unit[rows])


def trees_shared_with(columns: CloudColumns, sets: ProviderSets, sharing: Collection[int]) -> Mapping[int, Ints]:
    """Return by id the indices of the trees that sharing providers share with; none for those in no aggregate."""
    aggregates = sets.aggregates_of(sharing)
    sets.read(aggregates=sorted({*()}.union(*aggregates.values())))
    return {
        provider: np.unique(columns.providers.trees[np.logical_or.reduce([*map(sets.in_aggregate, of_provider)])])
        for provider, of_provider in aggregates.items()
        if of_provider
    }


def withheld(columns: CloudColumns, sets: ProviderSets, locks: Mapping[int, int | None]) -> Flags:
    """Return who is, or lies in, a place that somebody holds exclusively.

    ``locks`` has, by lock class, the trait of the places that it locks; None if every provider is one.
    """
    places = np.zeros(len(columns.providers.ids), dtype=bool)
    for class_id, trait_id in locks.items():
        stock = columns.stock(class_id)
        at = stock.at[(stock.used > 0) & (stock.used >= stock.capacity)]
        places[at if trait_id is None else at[sets.with_trait(trait_id)[at]]] = True
    return columns.providers.inside(places)


class SplitAmount(NamedTuple):
    """An amount that single providers cannot give, even if they were empty: eight GPUs with a provider each.

    ``largest`` is the most that one provider could give: of the ``trees`` that have enough free, but on several
    providers, or else of the cloud. ``is_everywhere``: no provider of the cloud could give the amount.
    """

    resource_class: str
    amount: int
    largest: int
    trees: int
    is_everywhere: bool


def split_amounts(
    plan: Plan, columns: CloudColumns, class_ids: Mapping[str, int], *, sharing: Ints
) -> Iterator[SplitAmount]:
    """Yield the largest amount of each class that a plan asks of one provider, if it is split and nobody shares it."""
    portions = [portion for slot in plan.slots for portion in slot.resources]
    for name, amount in {name: max(n for key, n in portions if key == name) for name, _amount in portions}.items():
        stock = columns.stock(class_ids[name])
        largest = np.minimum(np.maximum(0, np.trunc(stock.capacity)).astype(np.int64), stock.max_unit)
        if not largest.any() or (len(sharing) and (largest[np.isin(stock.at, sharing)] >= amount).any()):
            continue
        best = np.zeros(len(columns.providers.roots), dtype=np.int64)
        np.maximum.at(best, columns.providers.trees[stock.at], largest)
        is_split = best < amount
        if is_split.any():
            # Trees have the amount free, on however many providers.
            free = np.maximum(0, np.trunc(stock.capacity).astype(np.int64) - stock.used)
            is_split &= np.bincount(columns.providers.trees[stock.at], free, len(best)) >= amount
        is_everywhere = int(best.max()) < amount
        if is_everywhere or is_split.any():
            limits = best[is_split] if is_split.any() else best
            yield SplitAmount(name, amount, int(limits.max()), int(np.count_nonzero(is_split)), is_everywhere)


def _owners(stock: StockColumns, at: Ints | None) -> tuple[Ints, Any]:
    """Return which providers at some positions, or of all, have an inventory, and where it stands among the stock."""
    if at is None:
        return stock.at, slice(None)
    rows = places_in(stock.at, at)
    return at[rows >= 0], rows[rows >= 0]


UNIT_RULES: tuple[tuple[str, Rule], ...] = (
    ("min_unit", lambda stock, rows, amount: stock.min_unit[rows] <= amount),
    ("max_unit", lambda stock, rows, amount: stock.max_unit[rows] >= amount),
    (
        "step_size",
        lambda stock, rows, amount: ((step := stock.step_size[rows]) > 0) & (amount % np.maximum(1, step) == 0),
    ),
)
