"""Which providers can serve each demand of a plan, and which fail only one condition."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import or_

from placement.candidates.explain.conditions import NUMERIC, Condition, ConditionKind
from placement.candidates.explain.explanation import DemandCounts, Remainder
from placement.candidates.explain.provider_filters import Filter, ProviderFilters, Reach
from placement.candidates.explain.provider_kinds import ByTree, KindSet, ProviderKinds
from placement.domain.search_plan import Demand, Plan


@dataclass(slots=True)
class DemandOptions:
    """The options of a demand: the kinds that pass all filters, and for each condition those that fail only it."""

    fitting: KindSet
    failing_only: Mapping[Condition, KindSet]

    def options(self, without: Condition | None) -> KindSet:
        """Return the kinds of providers that fit when a condition is left out."""
        more = self.failing_only.get(without) if without else None
        return self.fitting | more if more else self.fitting


class OptionsByTree(dict[int, list[int]]):
    """The options of a demand by tree, in ascending order, computed on demand.

    Args:
        kind_of: the kind of each provider.
        of: the providers of each tree, and those that share with it; of both the kinds that fit.
    """

    def __init__(self, kind_of: Mapping[int, int], of: Sequence[tuple[ByTree, KindSet]]) -> None:
        super().__init__()
        self._kind_of = kind_of
        self._of = of

    def __missing__(self, root: int) -> list[int]:
        kind_of = self._kind_of
        found = [one for by_tree, options in self._of for one in by_tree.get(root, ()) if kind_of[one] in options]
        # A sharing provider may belong to the tree itself.
        options = self[root] = sorted(set(found)) if len(self._of) > 1 else found
        return options


@dataclass(slots=True)
class FilteredDemand:
    """A demand, with the providers that can serve it in their own trees (``own``) or by sharing (``shared``).

    ``reached`` has the roots of the trees in which any can.
    """

    kinds: ProviderKinds
    asked: Demand
    groups: tuple[str, ...]
    conditions: tuple[Condition, ...]
    own: DemandOptions
    shared: DemandOptions
    reached: AbstractSet[int]
    steps: tuple[Remainder, ...]
    _by_tree: OptionsByTree | None = None

    @property
    def described(self) -> DemandCounts:
        """What an explanation says about it."""
        return DemandCounts(self.groups, self.asked.resources, self.steps)

    def trees_failing_only(self, condition: Condition) -> AbstractSet[int]:
        """Return the roots of the trees in which a provider fails only this condition."""
        nobody = frozenset[int]()
        if condition.groups != self.groups:
            return nobody
        return self.kinds.trees(*[one.failing_only.get(condition, nobody) for one in (self.own, self.shared)])

    def by_tree(self, without: Condition | None = None) -> OptionsByTree:
        """Return by tree the providers that can serve it if a condition is left out."""
        if without in self.own.failing_only or without in self.shared.failing_only:
            return self._options_by_tree(without)
        if self._by_tree is None:
            self._by_tree = self._options_by_tree(None)
        return self._by_tree

    def _options_by_tree(self, without: Condition | None) -> OptionsByTree:
        own, shared = self.own.options(without), self.shared.options(without)
        of = [(self.kinds.own_by_tree, own)] if own else []
        if shared:
            of.append((self.kinds.shared_by_tree, shared))
        return OptionsByTree(self.kinds.kind_of, of)


class DemandFilters:
    """Filters the providers of one cloud by the conditions of demands, each demand once."""

    def __init__(self, kinds: ProviderKinds) -> None:
        self._kinds = kinds
        self._filters = ProviderFilters(kinds)
        self._known: dict[tuple[object, ...], FilteredDemand] = {}

    def demands(self, plan: Plan) -> list[FilteredDemand]:
        """Return the demands of a plan, in their order."""
        return [self._demand(demand, groups_of(plan, index)) for index, demand in enumerate(plan.demands)]

    def _demand(self, demand: Demand, groups: tuple[str, ...]) -> FilteredDemand:
        key = (groups, demand.identity)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._filtered(demand, groups)
        return found

    def _filtered(self, demand: Demand, groups: tuple[str, ...]) -> FilteredDemand:
        filters = self._filters
        reaches = filters.reaches(demand)
        filters_of_each = [list(filters.filters(demand, groups, reach)) for reach in reaches]
        own = [_Filtered(filters.base(demand, reach)) for reach in reaches if reach is not Reach.SHARED]
        shared = [_Filtered(filters.base(demand, reach)) for reach in reaches if reach is Reach.SHARED]
        steps, reached = self._applied(own, shared, zip(*filters_of_each, strict=True))
        conditions = tuple(filter_.condition for filter_ in filters_of_each[0])
        return FilteredDemand(self._kinds, demand, groups, conditions, _options(own), _options(shared), reached, steps)

    def _applied(
        self,
        own: Sequence["_Filtered"],
        shared: Sequence["_Filtered"],
        filters_of_each: Iterable[Sequence[Filter]],
    ) -> tuple[tuple[Remainder, ...], AbstractSet[int]]:
        """Apply filters; return what is left after each, and the trees in which any provider is left in the end."""
        steps: list[Remainder] = []
        reached: AbstractSet[int] = frozenset()
        counted: tuple[int, int] | None = None
        for filter_of_each in filters_of_each:
            refused = [one.apply(filter_) for one, filter_ in zip((*own, *shared), filter_of_each, strict=True)]
            if counted is None or any(refused):
                in_own, as_shared = _union([one.left for one in own]), _union([one.left for one in shared])
                reached = self._kinds.trees(in_own, as_shared)
                counted = self._kinds.count(in_own | as_shared), len(reached)
            steps.append(Remainder(filter_of_each[0].condition, *counted))
        return tuple(steps), reached


class _Filtered:
    """The kinds left as filters are applied one by one. O(filters x kinds that failed at most one)."""

    def __init__(self, base: KindSet) -> None:
        self.left = base
        self.failing_only: dict[Condition, KindSet] = {}

    def apply(self, filter_: Filter) -> bool:
        """Apply a filter; tell whether it refused any kind that was left."""
        of_filter = filter_.condition
        for condition, kinds in self.failing_only.items():
            if kinds and not condition.includes(of_filter):
                self.failing_only[condition] = kinds - filter_.refused(kinds)
        refused = filter_.refused(self.left)
        self.failing_only[of_filter] = refused
        if of_filter.kind in NUMERIC:
            amount = Condition(ConditionKind.AMOUNT, of_filter.groups, of_filter.value)
            self.failing_only[amount] = self.failing_only.get(amount, frozenset()) | refused
        if refused:
            self.left = self.left - refused
        return bool(refused)


def _options(filtered: Sequence["_Filtered"]) -> DemandOptions:
    """Return the kinds left in any of these, and for each condition those that would be left but for it."""
    fitting = _union([one.left for one in filtered])
    failing_only = {
        condition: found
        for condition in (filtered[0].failing_only if filtered else ())
        if (found := _union([one.failing_only[condition] for one in filtered]) - fitting)
    }
    return DemandOptions(fitting, failing_only)


def _union(sets: Sequence[KindSet]) -> KindSet:
    return reduce(or_, sets) if sets else frozenset()


def groups_of(plan: Plan, demand: int) -> tuple[str, ...]:
    """Return the suffixes of the groups behind a demand, given its index."""
    return tuple(dict.fromkeys(slot.suffix for slot in plan.slots if slot.demand == demand))
