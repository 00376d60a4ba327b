"""Who can serve each demand of a plan, and who fails one condition only."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import or_

from placement.candidates.explain.conditions import NUMERIC, Condition, ConditionKind
from placement.candidates.explain.explanation import DemandCounts, Remainder
from placement.candidates.explain.provider_filters import Filter, ProviderFilters, Reach
from placement.domain.facts import Facts
from placement.domain.search_plan import Demand, Plan


class DemandOptions:
    """The options of a demand: who passes all filters, and for each condition who fails it alone.

    ``trees_of`` are the roots of the trees that each of them can serve in.
    """

    def __init__(
        self,
        fitting: AbstractSet[int],
        failing_only: Mapping[Condition, AbstractSet[int]],
        trees_of: Callable[[int], Iterable[int]],
    ) -> None:
        self.fitting = fitting
        self.failing_only = failing_only
        self._trees_of = trees_of
        self._by_tree: dict[Condition | None, Mapping[int, list[int]]] = {}

    def options(self, without: Condition | None) -> AbstractSet[int]:
        """Return who fits when a condition is left out."""
        more = self.failing_only.get(without) if without else None
        return self.fitting | more if more else self.fitting

    def options_in(self, root: int, without: Condition | None) -> list[int]:
        """Return the same of one tree."""
        found = self._in(root, None)
        return found + self._in(root, without) if without in self.failing_only else found

    def _in(self, root: int, failing: Condition | None) -> list[int]:
        by_tree = self._by_tree.get(failing)
        if by_tree is None:
            grouped: dict[int, list[int]] = defaultdict(list)
            for provider in sorted(self.fitting if failing is None else self.failing_only[failing]):
                for tree in self._trees_of(provider):
                    grouped[tree].append(provider)
            by_tree = self._by_tree[failing] = dict(grouped)
        return by_tree.get(root, [])


@dataclass(slots=True)
class FilteredDemand:
    """A demand with the providers of its own tree that can serve it (``own``), and those that share (``shared``).

    ``reached`` are the roots of the trees in which one of either can.
    """

    asked: Demand
    groups: tuple[str, ...]
    conditions: tuple[Condition, ...]
    own: DemandOptions
    shared: DemandOptions
    reached: AbstractSet[int]
    steps: tuple[Remainder, ...]

    @property
    def described(self) -> DemandCounts:
        """What an explanation says of it."""
        return DemandCounts(self.groups, self.asked.resources, self.steps)

    def options_in(self, root: int, without: Condition | None) -> list[int]:
        """Return who can serve it in a tree if a condition is left out, ascending."""
        own = self.own.options_in(root, without)
        shared = self.shared.options_in(root, without)
        return sorted({*own, *shared}) if shared else sorted(own)


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
        filters, facts = self._filters, self._facts
        reaches = filters.reaches(demand)
        filters_of_each = [list(filters.filters(demand, groups, reach)) for reach in reaches]
        own = [_Filtered(filters.base(demand, reach)) for reach in reaches if reach is not Reach.SHARED]
        shared = [_Filtered(filters.base(demand, reach)) for reach in reaches if reach is Reach.SHARED]
        steps = tuple(self._steps(own, shared, zip(*filters_of_each, strict=True)))
        in_own = _options(own, lambda provider: (facts.home[provider],))
        as_shared = _options(shared, lambda provider: facts.shares[provider])
        return FilteredDemand(
            demand,
            groups,
            tuple(filter_.condition for filter_ in filters_of_each[0]),
            in_own,
            as_shared,
            facts.trees_with(in_own.fitting, as_shared.fitting),
            steps,
        )

    def _steps(
        self,
        own: Sequence["_Filtered"],
        shared: Sequence["_Filtered"],
        filters_of_each: Iterable[Sequence[Filter]],
    ) -> Iterator[Remainder]:
        counted: tuple[int, int] | None = None
        for filter_of_each in filters_of_each:
            refused = [one.apply(filter_) for one, filter_ in zip((*own, *shared), filter_of_each, strict=True)]
            if counted is None or any(refused):
                in_own, as_shared = _union([one.left for one in own]), _union([one.left for one in shared])
                counted = len(in_own | as_shared), len(self._facts.trees_with(in_own, as_shared))
            yield Remainder(filter_of_each[0].condition, *counted)


class _Filtered:
    """Who is left after filters that are applied one by one. O(filters x providers that failed at most once)."""

    def __init__(self, base: AbstractSet[int]) -> None:
        self.left = base
        self.failing_only: dict[Condition, AbstractSet[int]] = {}

    def apply(self, filter_: Filter) -> bool:
        """Apply a filter; tell whether it refused anybody who was left."""
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


def _options(filtered: Sequence["_Filtered"], trees_of: Callable[[int], Iterable[int]]) -> DemandOptions:
    """Return who is left in any of some, which had the same conditions, and who would be without one of these."""
    fitting = _union([one.left for one in filtered])
    failing_only = {
        condition: found
        for condition in (filtered[0].failing_only if filtered else ())
        if (found := _union([one.failing_only[condition] for one in filtered]) - fitting)
    }
    return DemandOptions(fitting, failing_only, trees_of)


def _union(sets: Sequence[AbstractSet[int]]) -> AbstractSet[int]:
    return reduce(or_, sets) if sets else frozenset()


def groups_of(plan: Plan, demand: int) -> tuple[str, ...]:
    """Return the suffixes of the groups that a demand, by its index, comes from."""
    return tuple(dict.fromkeys(slot.suffix for slot in plan.slots if slot.demand == demand))
