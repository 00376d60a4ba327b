"""How much a request may take of a tree if the count of a group is open: all providers, or one for each place.

Scores depend on it, and have to be bounded before anything is composed. In a tree with four GPUs, a group that wants
all of them takes 4; one that wants a GPU for each place, but at least two, takes 2, 3 or 4.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from placement.domain.planner_request import PlannerRequest
from placement.domain.quantities import ResourceAmounts
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

MAX_SUMS = 64
"""The most sums to tell apart in a tree. If there are more, none are returned."""


class _Open(NamedTuple):
    """A group with an open count.

    Args:
        amounts: what each provider gives.
        demand: the demand whose options are the providers there are.
        least: the fewest providers it takes; None if it takes all of them.
    """

    amounts: ResourceAmounts
    demand: int
    least: int | None


class OpenCounts:
    """The groups of a request with a fixed count of providers, and those with an open one.

    Args:
        request: the request.
        plan: its plan; for each group that wants everything there is a further demand of all healthy providers.
    """

    def __init__(self, request: PlannerRequest, plan: Plan) -> None:
        self._fixed: dict[str, int] = dict.fromkeys(request.requested, 0)
        self._open: list[_Open] = []
        demands = {slot.suffix: slot.demand for slot in plan.slots}
        every = {one.group.suffix: number for number, one in enumerate(plan.demands) if one.ignores_usage}
        for one in request.groups:
            amounts = one.group.resources
            if one.everything:
                # If each device gives one virtual function, only the details of a tree tell how many devices there are.
                self._open.append(_Open(amounts, every[one.suffix], None if one.device is None else 1))
            elif one.per_subtree:
                self._open.append(_Open(amounts, demands[one.suffix], one.count))
            else:
                for name, amount in amounts.items():
                    self._fixed[name] += one.count * amount
        self._known: dict[tuple[int, ...], Sequence[Mapping[str, int]]] = {}

    def amounts_in(self, tree: Tree) -> Sequence[ResourceAmounts]:
        """Return the amounts that the request may take in a tree, perhaps with some it cannot; none if too many."""
        supplies = tuple([len(tree.options[one.demand]) for one in self._open])
        known = self._known.get(supplies)
        if known is None:
            known = self._known[supplies] = self._sums(supplies)
        return known

    def _sums(self, supplies: Sequence[int]) -> Sequence[Mapping[str, int]]:
        names, sums = tuple(self._fixed), {tuple(self._fixed.values())}
        for one, supply in zip(self._open, supplies, strict=True):
            each = [one.amounts.get(name, 0) for name in names]
            counts = range(supply if one.least is None else one.least, supply + 1)
            sums = {
                tuple([some + count * amount for some, amount in zip(before, each, strict=True)])
                for before in sums
                for count in counts
            }
            if len(sums) > MAX_SUMS:
                return ()
        return [dict(zip(names, one, strict=True)) for one in sorted(sums)]
