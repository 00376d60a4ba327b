"""The strategy of the search: first a quick one, a beam search, then an exact one if the beam was too narrow.

If one way is wanted on a host with few places, each set of places is searched by itself, which yields the optimum.
Otherwise, most requests are so small that all their states fit into the beam. For many of the rest, the exact search
proves optimality: it need not look at what costs more than the way already known. All others get an answer at least: if
even the beam search finds none, the neighbourhood of an arbitrary assignment is searched.
"""

from collections.abc import Sequence

from placement.allocators.devices.any_way import any_way, has_no_rules
from placement.allocators.devices.assigned import assigned
from placement.allocators.devices.few_places import FewPlaces
from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.plan import DevicePlan
from placement.allocators.devices.request import Group
from placement.allocators.devices.search import Knapsack
from placement.allocators.devices.search_memo import SearchMemo
from placement.allocators.devices.tables import Limits

STEPS = 1_000_000
"""How many pairs of states the beam search may look at; the exact one may use what is left of them."""

WIDTH = 100
"""The width of the beam: how many states of a table the first search keeps."""


class Attempts:
    """The searches for one request on one host.

    Args:
        plan: the plan of the search.
        own: the options' own costs.
        most: the number of ways to find.
        limits: the budget of all searches together, and the width of the first one.
        memo: what was found for this request on other hosts; it grows.
    """

    def __init__(
        self, plan: DevicePlan, own: OwnCosts, *, most: int, limits: Limits, memo: SearchMemo | None = None
    ) -> None:
        self._plan = plan
        self._request = plan.request
        self._own = own
        self._most = most
        self._memo = memo
        self._budget = limits.budget
        self._width = limits.width
        self._steps = min(STEPS, self._budget.left)
        self._left = self._steps
        self._was_cut = False
        self.is_complete = True
        """Whether the result is proven optimal; it may not be where places overlap."""

    def best(self, *, of_any_cost: bool = False) -> list[int]:
        """Return the costs of the best ways found, in ascending order; of arbitrary ways if those will do."""
        if of_any_cost and has_no_rules(self._request):
            return self._any_way()
        if self._most == 1:
            few = self._in_few_places()
            if few is not None:
                return few
        costs = self._searched(self._quick)
        if of_any_cost and costs:
            return costs
        if self._was_cut and not costs:
            some = assigned(self._request, self._plan.usable)
            if some is None and all([group.apart for group in self._request.groups]):
                return []
            costs = self._searched(self._quick, self._around(some or []))
        if not self._was_cut:
            return costs
        limit = costs[-1] if len(costs) == self._most else None
        better = self._searched(Limits(self._budget.child(max(0, self._left)), cost=limit))
        return better if self.is_complete else costs

    def _any_way(self) -> list[int]:
        """Return the cost of some way to serve a request without rules; empty if there is none."""
        before, budget = self._budget.left, self._budget.child(self._steps)
        some = any_way(self._request, self._plan.usable, budget, misfits=self._own.misfits)
        self._left -= before - self._budget.left
        self.is_complete = not budget.was_hit
        return [] if some is None else [sum([self._own.of[option.number] for option in some])]

    def _in_few_places(self) -> list[int] | None:
        """Return the cost of the best way on a host with few places; None if that cannot be determined here."""
        before = self._budget.left
        sets = self._plan.place_sets
        search = FewPlaces(sets, own=self._own, limits=self._quick, memo=self._memo)
        best = search.best() if sets.are_few else None
        self._left -= before - self._budget.left
        if not search.is_complete:
            return None
        return [] if best is None else [best]

    @property
    def _quick(self) -> Limits:
        return Limits(self._budget.child(self._steps), self._width)

    def _searched(self, limits: Limits, options: Sequence[DeviceOption] | None = None) -> list[int]:
        before = self._budget.left
        memo = self._memo.tables if self._memo is not None else None
        host, every = self._plan.host, self._plan.options
        search = Knapsack(host, self._request, every, own=self._own, most=self._most, limits=limits, memo=memo)
        costs = search.run(self._plan.usable if options is None else options)
        self._left -= before - self._budget.left
        self.is_complete = not search.tables.is_over and search.has_nested_places
        self._was_cut = search.tables.is_cut or search.tables.is_over or options is not None
        return costs

    def _around(self, some: Sequence[DeviceOption]) -> list[DeviceOption]:
        """Return the options to search: the given ones, and all options of groups that are subject to rules."""
        pairs = {(option.group, option.device.name) for option in some}
        ruled = {index for index, group in enumerate(self._request.groups) if self._is_ruled(group)}
        return [one for one in self._plan.usable if one.group in ruled or (one.group, one.device.name) in pairs]

    def _is_ruled(self, group: Group) -> bool:
        request = self._request
        joined = [label for joint in request.joint for label in (joint.primary, *joint.secondaries)]
        within = [label for rule in request.within for label in rule.groups]
        return group.label in {*joined, *within} or any(group.meets.values())
