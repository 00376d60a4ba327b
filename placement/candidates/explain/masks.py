"""Which providers and trees meet the conditions of a plan: the masks of the search, counted one by one.

Of each provider it is also known which condition alone keeps it from serving, if one does. So what leaving out any
condition would change is known without looking at the providers again.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.candidates.explain.explanation import (
    LOOSE,
    Condition,
    ConditionKind,
    Remainder,
    any_of_value,
    traits_condition,
)
from placement.candidates.serving import Reach, Serving, trees_shared_with
from placement.cloud.providers import Flags, Ints, places_in
from placement.domain.search_plan import Demand, Plan

NOBODY: Ints = np.zeros(0, dtype=np.int64)

HOPELESS, FITS, FIRST_CONDITION = 0, 1, 2
"""How a provider looks to a demand: no single condition keeps it out, none does, or only this one."""

FORBIDDING = (ConditionKind.FORBIDDEN, ConditionKind.FORBIDDEN_AGGREGATES)

Met = tuple[Condition, Flags]
"""A condition, and which of some providers, or of all trees, meet it."""


class ConditionMasks:
    """The conditions on single providers in one state of a cloud: on one tree, or on all but those to avoid.

    What avoided trees share counts as little.
    """

    def __init__(
        self, serving: Serving, *, only_root: int | None = None, avoided: frozenset[int] = frozenset()
    ) -> None:
        self.serving = serving
        self.columns = serving.columns
        self.providers = serving.columns.providers
        self.demands: dict[tuple[object, ...], MaskedDemand] = {}
        """The demands under these conditions, each worked out once for all plans."""
        self._is_left_out = np.isin(self.providers.roots, [*avoided])
        """Which trees are not looked at, nor what they share."""
        self._trees: Ints | None = None if only_root is None else self.providers.tree_indices([only_root])
        if avoided:
            self._trees = np.flatnonzero(~self._is_left_out)
        withheld = serving.withheld
        concerned = [self.with_stock(name) for name in serving.ids.classes]
        concerned += [self.in_trees for demand in serving.plan.demands if not demand.resources]
        # Places are rarely held, so that is mentioned only where it may matter.
        self._held = None if withheld is None or not any([withheld[at].any() for at in concerned]) else withheld

    @cached_property
    def in_trees(self) -> Ints:
        """The positions of the providers of the trees to look at."""
        if self._trees is None:
            return np.arange(len(self.providers.ids))
        return self.providers.positions_in(self._trees)

    @cached_property
    def in_reach(self) -> Ints:
        """The same, and those that share with these trees."""
        return self.in_trees if self._trees is None else np.union1d(self.in_trees, self.sharing)

    @cached_property
    def trees_shared_with(self) -> Mapping[int, Ints]:
        """By the position of each provider that shares: the indices of the trees that it shares with, ascending."""
        serving, providers = self.serving, self.providers
        if not serving.ids.shares:
            return {}
        shares = serving.sets.with_trait(serving.ids.sharing_trait) & ~self._is_left_out[providers.trees]
        trees = trees_shared_with(self.columns, serving.sets, providers.ids[shares].tolist())
        if self._trees is not None:
            trees = {id_: np.intersect1d(users, self._trees) for id_, users in trees.items()}
        ids = sorted([id_ for id_, users in trees.items() if len(users)])
        return {at: trees[id_] for at, id_ in zip(providers.positions(ids).tolist(), ids, strict=True)}

    @cached_property
    def sharing(self) -> Ints:
        """The positions of the providers that share, ascending."""
        return np.array(sorted(self.trees_shared_with), dtype=np.int64)

    def trees_of(self, own: Ints, sharing: Ints = NOBODY) -> Flags:
        """Return the trees of some providers, and those that others share with."""
        flags = np.zeros(len(self.providers.roots), dtype=bool)
        flags[self.providers.trees[own]] = True
        for pool in sharing.tolist():
            flags[self.trees_shared_with[pool]] = True
        return flags

    def with_stock(self, name: str) -> Ints:
        """Return the positions of all providers that have any inventory of a class, wherever they are."""
        return self.columns.stock(self.serving.ids.classes[name]).at

    def considered(self, demand: Demand, reach: Reach) -> Ints:
        """Return who is considered before any condition: those with inventory of the first class."""
        at = self.sharing if reach is Reach.SHARED else self.in_trees
        if not demand.resources:
            return at
        owners = self.with_stock(demand.resources[0][0])
        return owners if len(at) == len(self.providers.ids) else np.intersect1d(at, owners, assume_unique=True)

    def met(self, demand: Demand, groups: tuple[str, ...], reach: Reach, *, at: Ints) -> Iterator[Met]:
        """Yield the conditions of a demand of some groups, in the order of the explanation, and who meets them."""
        yield from self._amounts(demand, groups, at)
        for name, values, flags in self.serving.conditions(demand, reach):
            kind = ConditionKind(name)
            # The unsuffixed group has its traits together.
            if kind != ConditionKind.REQUIRED or demand.group.is_granular:
                value = any_of_value(values, forbidden=kind in FORBIDDING) if values else ""
                yield Condition(kind, groups, value), flags[at]
        if self._held is not None:
            yield Condition(ConditionKind.HELD, groups), ~self._held[at]

    def _amounts(self, demand: Demand, groups: tuple[str, ...], at: Ints) -> Iterator[Met]:
        stocks = self.serving.stocks(demand)
        rows = [places_in(stock.at, at) for stock, _amount in stocks]
        for (name, _amount), places in zip(demand.resources, rows, strict=True):
            yield Condition(ConditionKind.INVENTORY, groups, name), places >= 0
        for name_of_rule, rule in self.serving.rules(demand):
            # What has no capacity at all is no better than what has no inventory.
            kind = ConditionKind.INVENTORY if demand.ignores_usage else ConditionKind(name_of_rule)
            for (name, amount), (stock, _amount), places in zip(demand.resources, stocks, rows, strict=True):
                met: Flags = places < 0
                met[~met] = rule(stock, places[~met], amount)
                yield Condition(kind, groups, f"{name}:{amount}"), met


class Servers(NamedTuple):
    """The positions of those that serve in their own trees, and of those that do in trees that they share with."""

    own: Ints
    shared: Ints


class MaskedDemand:
    """A demand of some groups under its conditions. ``reached`` has the trees in which any provider can serve it.

    Either the provider is in an aggregate of every set, or the root is: to judge by the root is a way of its own.
    """

    def __init__(self, masks: ConditionMasks, demand: Demand, groups: tuple[str, ...]) -> None:
        self.demand, self.groups = demand, groups
        self._providers, self._trees_shared_with = masks.providers, masks.trees_shared_with
        reaches = [Reach.ITSELF, *([Reach.ROOT] if demand.group.is_spanned else []), Reach.SHARED]
        ways = [masks.considered(demand, reach) for reach in reaches]
        met = [dict(masks.met(demand, groups, reach, at=at)) for reach, at in zip(reaches, ways, strict=True)]
        self._at, self._bounds = np.concatenate(ways), np.cumsum([len(at) for at in ways])[:-1]
        self.conditions = tuple(met[-1])
        values = [f"{name}:{amount}" for name, amount in demand.resources]
        self.amounts = [Condition(ConditionKind.AMOUNT, groups, value) for value in values]
        """A condition for the whole amount of each class: enough of it, in valid units."""
        failing = [
            np.array([*[~flags for flags in of_way.values()], np.ones(len(at), dtype=bool)])
            for of_way, at in zip(met, ways, strict=True)
        ]
        self._set_looks(np.concatenate(failing, axis=1))
        self._servers: dict[Condition | None, Servers] = {}

    def _set_looks(self, failing: Flags) -> None:
        """Work out how far each provider comes, and how it looks; the last row stands for having met all conditions."""
        number = len(self.conditions)
        passed = failing.argmax(axis=0)
        fails = failing.sum(axis=0) - 1
        self._look = np.where(passed == number, FITS, np.where(fails == 1, FIRST_CONDITION + passed, HOPELESS))
        self._numbers = {condition: [row] for row, condition in enumerate(self.conditions, start=FIRST_CONDITION)}
        """How those look that meet all conditions but for one, or for all on one amount."""
        for amount, condition in enumerate(self.amounts, start=FIRST_CONDITION + number):
            included = [row for row, narrower in enumerate(self.conditions) if condition.includes(narrower)]
            self._look[(fails > 1) & (failing[included].sum(axis=0) == fails)] = amount
            self._numbers[condition] = [amount, *[FIRST_CONDITION + row for row in included]]
        self._looks = {*np.unique(self._look).tolist()}
        (*_ways, shared), start = np.split(passed, self._bounds), self._bounds[-1]
        providers, trees = np.full(len(self._providers.ids), -1), np.full(len(self._providers.roots), -1)
        np.maximum.at(providers, self._at, passed)
        np.maximum.at(trees, self._providers.trees[self._at[:start]], passed[:start])
        for pool, far in zip(self._at[start:].tolist(), shared.tolist(), strict=True):
            at = self._trees_shared_with[pool]
            trees[at] = np.maximum(trees[at], far)
        self.reached = trees == number
        sums = [(int((providers > row).sum()), int((trees > row).sum())) for row in range(number)]
        self.steps = tuple([Remainder(condition, *step) for condition, step in zip(self.conditions, sums, strict=True)])

    def looks(self) -> list[tuple[Ints, Ints]]:
        """Return for each way, that of sharing providers last, their positions, and how each looks."""
        return [*zip(np.split(self._at, self._bounds), np.split(self._look, self._bounds), strict=True)]

    def options(self, without: Condition | None = None) -> Servers:
        """Return who can serve if a condition is left out, by ascending position."""
        if without not in self._servers:
            numbers = [] if without is None else self._numbers.get(without, [])
            self._servers[without] = self._looking([FITS, *numbers])
        return self._servers[without]

    def failing_only(self, condition: Condition) -> Servers:
        """Return who would meet all conditions but for one, or for all on one amount."""
        numbers = self._numbers.get(condition, [])
        return Servers(NOBODY, NOBODY) if self._looks.isdisjoint(numbers) else self._looking(numbers)

    def _looking(self, numbers: Sequence[int]) -> Servers:
        start, own = self._bounds[-1], np.zeros(len(self._providers.ids), dtype=bool)
        is_chosen = np.zeros(FIRST_CONDITION + len(self.conditions) + len(self.amounts), dtype=bool)
        is_chosen[numbers] = True
        looks_so = is_chosen[self._look]
        own[self._at[:start][looks_so[:start]]] = True
        if FITS not in numbers:
            own[self._at[:start][self._look[:start] == FITS]] = False
        return Servers(np.flatnonzero(own), self._at[start:][looks_so[start:]])


class CloudMasks:
    """A cloud under the conditions of a plan that need no search."""

    def __init__(self, plan: Plan, masks: ConditionMasks) -> None:
        self.plan = plan
        self.masks = masks
        self.providers = masks.providers
        self.options = [self._demand(index) for index in range(len(plan.demands))]
        """All demands, with those for whatever could serve a group that wants all."""
        self.demands = [demand for demand in self.options if not demand.demand.ignores_usage]
        self.filters: Sequence[Met] = list(self._filters())
        sets = [*[demand.reached for demand in self.demands], *[trees for _condition, trees in self.filters]]
        self.fails = np.sum([~trees for trees in sets], axis=0)
        """How many of the conditions each tree fails, a provider for each demand among them."""

    @property
    def serving_loose(self) -> Ints:
        """The positions of those that can serve anything of the unsuffixed group, whatever traits they have."""
        loose = [at for demand in self.demands if demand.groups == LOOSE for at in demand.options()]
        return np.unique(np.concatenate([NOBODY, *loose]))

    @property
    def trees(self) -> Flags:
        """The trees that have a provider for each demand and meet all conditions on trees."""
        serving: Flags = self.fails == 0
        return serving

    def trees_without(self, condition: Condition, *, is_searched: bool) -> Flags:
        """Return the trees that may serve only without a condition: those that fail it, or any if searched."""
        fails = self.fails.copy()
        affected = np.zeros(len(fails), dtype=bool)
        for demand in self.demands:
            only = demand.failing_only(condition) if condition.groups == demand.groups else Servers(NOBODY, NOBODY)
            if len(only.own) or len(only.shared):
                more = self.masks.trees_of(*only)
                fails -= more & ~demand.reached
                affected |= more
        for tree_condition, trees in self.filters:
            if tree_condition == condition:
                fails -= ~trees
                affected |= ~trees
        serving: Flags = fails == 0
        return serving if is_searched else serving & affected

    def trees_left(self) -> Iterator[Remainder]:
        """Yield how many trees are left after each condition on trees."""
        remaining: Flags = np.logical_and.reduce([demand.reached for demand in self.demands])
        yield Remainder(Condition(ConditionKind.EVERY_GROUP), None, int(remaining.sum()))
        for condition, trees in self.filters:
            remaining = remaining & trees
            yield Remainder(condition, None, int(remaining.sum()))

    def first_emptied(self) -> Condition | None:
        """Return the first condition that leaves nothing; None if trees are left."""
        emptied = [step.condition for demand in self.demands for step in demand.steps if not step.providers]
        emptied += [step.condition for step in self.trees_left() if not step.trees]
        return next(iter(emptied), None)

    def _demand(self, index: int) -> MaskedDemand:
        demand, groups, demands = self.plan.demands[index], groups_of(self.plan, index), self.masks.demands
        key = groups, demand.ignores_usage, demand.identity
        if key not in demands:
            demands[key] = MaskedDemand(self.masks, demand, groups)
        return demands[key]

    def _filters(self) -> Iterator[Met]:
        """Yield the conditions on the root, then on traits of anybody in the tree: the search checks who serves."""
        request, masks, serving = self.plan.request, self.masks, self.masks.serving
        for any_of in sorted(request.root_required, key=sorted):
            trees = serving.of_roots(serving.with_any_trait(any_of))
            yield Condition(ConditionKind.ROOT_REQUIRED, (), any_of_value(any_of)), trees
        for name in sorted(request.root_forbidden):
            trees = ~serving.of_roots(serving.with_any_trait([name]))
            yield Condition(ConditionKind.ROOT_FORBIDDEN, (), f"!{name}"), trees
        if of_root := self.plan.forbidden_root_aggregates:
            # For the unsuffixed group the condition covers the root, too.
            condition = Condition(ConditionKind.FORBIDDEN_AGGREGATES, LOOSE, any_of_value(of_root, forbidden=True))
            yield condition, ~serving.of_roots(serving.in_any_aggregate(of_root))
        for any_of in self.plan.trait_sets:
            owners = serving.with_any_trait(any_of)
            trees = masks.trees_of(masks.in_trees[owners[masks.in_trees]], masks.sharing[owners[masks.sharing]])
            yield traits_condition(any_of), trees


def groups_of(plan: Plan, demand: int) -> tuple[str, ...]:
    """Return the suffixes of the groups behind a demand, given its index."""
    planned = plan.demands[demand]
    if planned.ignores_usage:
        # It stands beside the demand of the same group that has to have room.
        demand = next(index for index, twin in enumerate(plan.demands) if twin.identity == planned.identity)
    return tuple(dict.fromkeys(slot.suffix for slot in plan.slots if slot.demand == demand))
