"""Which providers can serve each demand of a plan: the conditions of the search as masks, counted one by one.

Of each provider it is also known how many conditions it fails, and which one if only one. So what leaving out any
condition would change is known without looking at the providers again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from placement.candidates.explain.conditions import Condition, ConditionKind, any_of_value
from placement.candidates.explain.explanation import DemandCounts, Remainder
from placement.candidates.serving import Rule, Serving
from placement.cloud.columns import StockColumns
from placement.cloud.providers import Flags, Ints, places_in
from placement.domain.search_plan import Demand

NOBODY: Ints = np.zeros(0, dtype=np.int64)


class Reach(Enum):
    """The way in which a provider may serve a demand; it decides what the conditions look at."""

    ITSELF = auto()
    """In its own tree, judged by its own aggregates."""
    ROOT = auto()
    """In its own tree, judged by the root's aggregates, which span the tree for the unsuffixed group."""
    SHARED = auto()
    """In trees that it shares with."""


class Mask(NamedTuple):
    """A condition, and what tells which of the providers at some positions meet it."""

    condition: Condition
    met_at: Callable[[Ints], Flags]


class ConditionMasks:
    """The conditions on single providers in one state of a cloud.

    Args:
        serving: finds who meets which condition.
        only_root: the root of the only tree to look at; None for all trees.
    """

    def __init__(self, serving: Serving, *, only_root: int | None = None) -> None:
        self.serving = serving
        self.columns = serving.columns
        self.providers = serving.columns.providers
        self._only_tree = None if only_root is None else int(self.providers.tree_indices([only_root])[0])
        withheld = serving.withheld
        concerned = [self.with_stock(name) for name in serving.ids.classes]
        concerned += [self.here for demand in serving.plan.demands if not demand.resources]
        # Places are rarely held, so that is mentioned only where it may matter.
        self._held = None if withheld is None or not any([withheld[at].any() for at in concerned]) else withheld

    @cached_property
    def here(self) -> Ints:
        """The positions of the providers of the trees to look at."""
        if self._only_tree is None:
            return np.arange(len(self.providers.ids))
        return self.providers.positions_in(np.array([self._only_tree]))

    @cached_property
    def around(self) -> Ints:
        """The same, and those that share with these trees."""
        return self.here if self._only_tree is None else np.union1d(self.here, self.sharing)

    @cached_property
    def trees_shared_with(self) -> Mapping[int, Ints]:
        """By the position of each provider that shares: the indices of the trees that it shares with, ascending."""
        serving, providers = self.serving, self.providers
        if not serving.ids.shares:
            return {}
        sharing = np.flatnonzero(serving.sets.with_trait(serving.ids.sharing_trait))
        trees = serving.trees_shared_with(providers.ids[sharing].tolist())
        if self._only_tree is not None:
            trees = {id_: of[of == self._only_tree] for id_, of in trees.items() if self._only_tree in of}
        ids = sorted(trees)
        return {at: trees[id_] for at, id_ in zip(providers.positions(ids).tolist(), ids, strict=True)}

    @cached_property
    def sharing(self) -> Ints:
        """The positions of the providers that share, ascending."""
        return np.array(sorted(self.trees_shared_with), dtype=np.int64)

    def owners_here(self, owners: Flags) -> Ints:
        """Return the positions of those of some providers that are in the trees to look at."""
        return np.flatnonzero(owners) if self._only_tree is None else self.here[owners[self.here]]

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
        """Return the providers considered before any condition: those with inventory of the first class."""
        at = self.sharing if reach is Reach.SHARED else self.here
        if not demand.resources:
            return at
        owners = self.with_stock(demand.resources[0][0])
        return owners if len(at) == len(self.providers.ids) else np.intersect1d(at, owners, assume_unique=True)

    def reaches(self, demand: Demand) -> list[Reach]:
        """Return the ways in which providers of the tree itself may serve a demand.

        The aggregates of a root span its tree, but they do not mix with a provider's own: either the provider is in an
        aggregate of every set, or the root is. So judging by the root is a way of its own.
        """
        spans = not demand.group.is_granular and demand.group.member_of
        return [Reach.ITSELF, *([Reach.ROOT] if spans else [])]

    def masks(self, demand: Demand, groups: tuple[str, ...], reach: Reach) -> Iterator[Mask]:
        """Yield the conditions of a demand of some groups, in the order of the explanation."""
        group = demand.group
        for name, _amount in demand.resources:
            owners = self.serving.flags(self.with_stock(name))
            yield Mask(Condition(ConditionKind.INVENTORY, groups, name), owners.__getitem__)
        yield from self._amounts(demand, groups)
        for (kind, value), flags in self._named(demand, reach):
            yield Mask(Condition(kind, groups, value), flags.__getitem__)
        if not (group.resources or group.required or group.member_of):
            # The reference finds no provider for a group that only forbids, whichever tree it names.
            yield Mask(Condition(ConditionKind.EMPTY_GROUP, groups), _none_of)
        # Like the reference, find a granular group without resources in any tree, as long as the named tree exists.
        if group.in_tree is not None and (demand.resources or group.in_tree not in self.serving.ids.roots):
            yield Mask(Condition(ConditionKind.IN_TREE, groups, group.in_tree), self._in_tree(demand, reach))
        if self._held is not None:
            yield Mask(Condition(ConditionKind.HELD, groups), (~self._held).__getitem__)

    def _amounts(self, demand: Demand, groups: tuple[str, ...]) -> Iterator[Mask]:
        asked = [*zip(demand.resources, self.serving.stocks(demand), strict=True)]
        for kind, rule in self.serving.rules(demand):
            # What has no capacity at all is no better than what has no inventory.
            named = ConditionKind.INVENTORY if demand.ignores_usage else ConditionKind(kind)
            for (name, amount), (stock, _amount) in asked:
                yield Mask(Condition(named, groups, f"{name}:{amount}"), partial(_can_give, rule, stock, amount))

    def _named(self, demand: Demand, reach: Reach) -> Iterator[tuple[tuple[ConditionKind, str], Flags]]:
        """Yield the conditions on traits and aggregates, each with who meets it."""
        group, serving = demand.group, self.serving
        for any_of in group.required if group.is_granular else ():
            yield (ConditionKind.REQUIRED, any_of_value(any_of)), serving.with_any_trait(any_of)
        for name in sorted(group.forbidden):
            yield (ConditionKind.FORBIDDEN, f"!{name}"), ~serving.with_any_trait([name])
        for any_of in group.member_of:
            members = serving.in_any_aggregate(any_of)
            if reach is Reach.ROOT:
                members = serving.of_roots(members)[self.providers.trees]
            yield (ConditionKind.MEMBER_OF, any_of_value(any_of)), members
        if group.forbidden_aggregates:
            value = any_of_value(group.forbidden_aggregates, forbidden=True)
            yield (ConditionKind.FORBIDDEN_AGGREGATES, value), ~serving.in_any_aggregate(group.forbidden_aggregates)

    def _in_tree(self, demand: Demand, reach: Reach) -> Callable[[Ints], Flags]:
        root = self.serving.ids.roots.get(demand.group.in_tree or "")
        if root is None or (reach is Reach.SHARED and not demand.group.is_granular):
            # in_tree keeps the unsuffixed group inside the tree.
            return _none_of
        return lambda at: self.providers.roots[self.providers.trees[at]] == root


def _can_give(rule: Rule, stock: StockColumns, amount: int, at: Ints) -> Flags:
    """Tell which providers can give an amount under a rule, as far as they have any inventory of its class."""
    rows = places_in(stock.at, at)
    has = rows >= 0
    met: Flags = ~has
    met[has] = rule(stock, rows[has], amount)
    return met


def _none_of(at: Ints) -> Flags:
    return np.zeros(len(at), dtype=bool)


class MaskedProviders:
    """The providers of one kind, own or sharing ones, under the conditions of a demand.

    Args:
        at: the positions of those considered, ascending.
        ways: the conditions, for each way in which these may serve; the same of each.
    """

    def __init__(self, at: Ints, ways: Sequence[Sequence[Mask]]) -> None:
        self._at = at
        self._conditions = [mask.condition for mask in ways[0]]
        failing = np.array([[~mask.met_at(at) for mask in way] for way in ways], dtype=bool)
        self._failing: Flags = failing.reshape(len(ways), len(self._conditions), len(at))
        """Who fails which condition, for each way."""
        self._fails: Ints = self._failing.sum(axis=1)
        """How many conditions each provider fails, for each way."""
        self.fitting: Ints = at[(self._fails == 0).any(axis=0)]
        """Those that meet all conditions in any way."""
        self._options: dict[Condition | None, Ints] = {None: self.fitting}

    def left(self) -> Iterator[Ints]:
        """Yield those that are left after each condition and all before it."""
        is_left = np.ones((len(self._failing), len(self._at)), dtype=bool)
        at = self._at
        for number in range(len(self._conditions)):
            refused = self._failing[:, number] & is_left
            if refused.any():
                is_left &= ~refused
                at = self._at[is_left.any(axis=0)]
            yield at

    def failing_only(self, condition: Condition) -> Ints:
        """Return those that would meet all conditions but for one, or for all on one amount."""
        failing: Ints = self._at[self._is_failing_only(condition).any(axis=0) & ~(self._fails == 0).any(axis=0)]
        return failing

    def options(self, without: Condition | None) -> Ints:
        """Return those that can serve if a condition is left out, ascending."""
        if without is not None and without not in self._options:
            may_serve = (self._fails == 0) | self._is_failing_only(without)
            self._options[without] = self._at[may_serve.any(axis=0)]
        return self._options[without]

    def looks(self, conditions: Sequence[Condition]) -> Iterator[tuple[Ints, Ints]]:
        """Yield for each way what tells providers apart, whichever condition is left out: their positions, a number.

        The number is 0 for those that no single condition keeps out.
        """
        looks = np.where(self._fails == 0, 1, 0)
        for number, condition in enumerate(conditions, start=2):
            looks[self._is_failing_only(condition)] = number
        yield from [(self._at, of_way) for of_way in looks]

    def _is_failing_only(self, condition: Condition) -> Flags:
        """Tell for each way who fails a condition, or several on one amount, and no other."""
        included = [number for number, other in enumerate(self._conditions) if condition.includes(other)]
        failing = self._failing[:, included].sum(axis=1)
        is_only: Flags = (failing > 0) & (failing == self._fails)
        return is_only


class MaskedDemand:
    """A demand under its conditions. ``reached`` has the trees in which any provider can serve it.

    Args:
        masks: the conditions.
        asked: the demand.
        groups: the groups that ask for it.
    """

    def __init__(self, masks: ConditionMasks, asked: Demand, groups: tuple[str, ...]) -> None:
        self.asked = asked
        self.groups = groups
        self._masks = masks
        ways = {reach: [*masks.masks(asked, groups, reach)] for reach in (*masks.reaches(asked), Reach.SHARED)}
        sharing = ways.pop(Reach.SHARED)
        self.own = MaskedProviders(masks.considered(asked, Reach.ITSELF), [*ways.values()])
        self.shared = MaskedProviders(masks.considered(asked, Reach.SHARED), [sharing])
        self.conditions = tuple([mask.condition for mask in sharing])
        self.steps = tuple(self._steps())
        self.reached = masks.trees_of(self.own.fitting, self.shared.fitting)

    @property
    def described(self) -> DemandCounts:
        """What an explanation says about it."""
        return DemandCounts(self.groups, self.asked.resources, self.steps)

    @property
    def amounts(self) -> list[Condition]:
        """A condition for the whole amount of each class: enough of it, in valid units."""
        values = [f"{name}:{amount}" for name, amount in self.asked.resources]
        return [Condition(ConditionKind.AMOUNT, self.groups, value) for value in values]

    def failing_only(self, condition: Condition) -> Ints:
        """Return the providers that fail only this condition, in their own trees or where they share."""
        if condition.groups != self.groups:
            return NOBODY
        return np.concatenate((self.own.failing_only(condition), self.shared.failing_only(condition)))

    def trees_failing_only(self, condition: Condition) -> Flags:
        """Return the trees in which a provider fails only this condition."""
        return self._masks.trees_of(self.own.failing_only(condition), self.shared.failing_only(condition))

    def _steps(self) -> Iterator[Remainder]:
        """Yield what is left after each condition."""
        last: tuple[Ints, Ints] | None = None
        for condition, own, shared in zip(self.conditions, self.own.left(), self.shared.left(), strict=True):
            if last is None or own is not last[0] or shared is not last[1]:
                last = own, shared
                providers = len(np.union1d(own, shared)) if len(shared) else len(own)
                counts = providers, int(self._masks.trees_of(own, shared).sum())
            yield Remainder(condition, *counts)
