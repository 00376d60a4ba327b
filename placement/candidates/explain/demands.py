"""Which providers can serve each demand of a plan, and which fail only one condition."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import or_

from placement.candidates.explain.conditions import NUMERIC, Condition, ConditionKind
from placement.candidates.explain.explanation import DemandCounts, Remainder
from placement.candidates.explain.provider_filters import ByTree, Filter, ProviderFilters, Reach
from placement.domain.facts import Facts
from placement.domain.search_plan import Demand, Plan


@dataclass(slots=True)
class DemandOptions:
    """The options of a demand: the providers that pass all filters, and for each condition those that fail only it.

    ``considered`` has by tree all providers that the filters were applied to.
    """

    fitting: AbstractSet[int]
    failing_only: Mapping[Condition, AbstractSet[int]]
    considered: ByTree

    def options(self, without: Condition | None) -> AbstractSet[int]:
        """Return the providers that fit when a condition is left out."""
        more = self.failing_only.get(without) if without else None
        return self.fitting | more if more else self.fitting


class OptionsByTree(dict[int, list[int]]):
    """The options of a demand by tree, in ascending order, computed on demand.

    Args:
        of: the options of the tree itself, and those shared with it.
        without: the condition to leave out, if any.
    """

    def __init__(self, of: Sequence[DemandOptions], without: Condition | None = None) -> None:
        super().__init__()
        self._of = [(one.considered, one.options(without)) for one in of]

    def __missing__(self, root: int) -> list[int]:
        found = [provider for by_tree, options in self._of for provider in by_tree.get(root, ()) if provider in options]
        # A sharing provider may belong to the tree itself.
        options = self[root] = sorted(set(found)) if len(self._of) > 1 else found
        return options


@dataclass(slots=True)
class FilteredDemand:
    """A demand, with the providers that can serve it in their own trees (``own``) or by sharing (``shared``).

    ``reached`` has the roots of the trees in which either kind can.
    """

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

    def trees_failing_only(self, condition: Condition, facts: Facts) -> AbstractSet[int]:
        """Return the roots of the trees in which a provider fails only this condition."""
        nobody = frozenset[int]()
        own, shared = (one.failing_only.get(condition, nobody) for one in (self.own, self.shared))
        return _trees_with(facts, self.own.considered, own, shared) if own or shared else nobody

    def by_tree(self, without: Condition | None = None) -> OptionsByTree:
        """Return by tree the providers that can serve it if a condition is left out."""
        of = [one for one in (self.own, self.shared) if one.considered]
        if any([without in one.failing_only for one in of]):
            return OptionsByTree(of, without)
        if self._by_tree is None:
            self._by_tree = OptionsByTree(of)
        return self._by_tree


class DemandFilters:
    """Filters the providers of one cloud by the conditions of demands, each demand once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._filters = ProviderFilters(facts)
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
        considered = filters.by_tree(demand, Reach.ITSELF)
        steps, reached = self._applied(own, shared, zip(*filters_of_each, strict=True), considered=considered)
        return FilteredDemand(
            demand,
            groups,
            tuple(filter_.condition for filter_ in filters_of_each[0]),
            _options(own, considered),
            _options(shared, filters.by_tree(demand, Reach.SHARED)),
            reached,
            steps,
        )

    def _applied(
        self,
        own: Sequence["_Filtered"],
        shared: Sequence["_Filtered"],
        filters_of_each: Iterable[Sequence[Filter]],
        *,
        considered: ByTree,
    ) -> tuple[tuple[Remainder, ...], AbstractSet[int]]:
        """Apply filters; return what is left after each, and the trees in which any provider is left in the end."""
        steps: list[Remainder] = []
        reached: AbstractSet[int] = frozenset()
        counted: tuple[int, int] | None = None
        for filter_of_each in filters_of_each:
            refused = [one.apply(filter_) for one, filter_ in zip((*own, *shared), filter_of_each, strict=True)]
            if counted is None or any(refused):
                in_own, as_shared = _union([one.left for one in own]), _union([one.left for one in shared])
                reached = _trees_with(self._facts, considered, in_own, as_shared)
                counted = len(in_own) + len(as_shared - in_own), len(reached)
            steps.append(Remainder(filter_of_each[0].condition, *counted))
        return tuple(steps), reached


class _Filtered:
    """The providers left as filters are applied one by one. O(filters x providers that failed at most one)."""

    def __init__(self, base: AbstractSet[int]) -> None:
        self.left = base
        self.failing_only: dict[Condition, AbstractSet[int]] = {}

    def apply(self, filter_: Filter) -> bool:
        """Apply a filter; tell whether it refused any provider that was left."""
        of_filter = filter_.condition
        for condition, providers in self.failing_only.items():
            if providers and not condition.includes(of_filter):
                self.failing_only[condition] = providers - filter_.refused(providers)
        refused = filter_.refused(self.left)
        self.failing_only[of_filter] = refused
        if of_filter.kind in NUMERIC:
            amount = Condition(ConditionKind.AMOUNT, of_filter.groups, of_filter.value)
            self.failing_only[amount] = self.failing_only.get(amount, frozenset()) | refused
        if refused:
            self.left = self.left - refused
        return bool(refused)


def _options(filtered: Sequence["_Filtered"], considered: ByTree) -> DemandOptions:
    """Return the providers left in any of these, and for each condition those that would be left but for it."""
    fitting = _union([one.left for one in filtered])
    failing_only = {
        condition: found
        for condition in (filtered[0].failing_only if filtered else ())
        if (found := _union([one.failing_only[condition] for one in filtered]) - fitting)
    }
    return DemandOptions(fitting, failing_only, considered)


def _union(sets: Sequence[AbstractSet[int]]) -> AbstractSet[int]:
    return reduce(or_, sets) if sets else frozenset()


def _trees_with(facts: Facts, considered: ByTree, own: AbstractSet[int], shared: AbstractSet[int]) -> AbstractSet[int]:
    """Return the trees of ``own``, some of the providers considered, and those that ``shared`` share with.

    O(trees) where that is less than O(providers).
    """
    if len(own) <= len(considered):
        return facts.trees_with(own, shared)
    own_trees = {root for root, providers in considered.items() if not own.isdisjoint(providers)}
    return own_trees | facts.trees_with(frozenset(), shared) if shared else own_trees


def groups_of(plan: Plan, demand: int) -> tuple[str, ...]:
    """Return the suffixes of the groups behind a demand, given its index."""
    return tuple(dict.fromkeys(slot.suffix for slot in plan.slots if slot.demand == demand))
