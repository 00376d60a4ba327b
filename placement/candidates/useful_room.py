"""How much of what a provider has left a request can tell apart: 5 are as good as 4 where 2 are asked for twice."""

from bisect import bisect_right

from placement.domain.search_plan import Plan

MOST_SUMS = 10_000
"""So many sums of amounts are told apart; of what has more, room is told apart to the unit."""


class UsefulRoom:
    """Tells it for the contended classes of a plan.

    Args:
        plan: what is asked for.
    """

    def __init__(self, plan: Plan) -> None:
        self._sums = {name: _sums(plan, name) for name in plan.contended}

    def of(self, name: str, room: float) -> float:
        """Return the largest sum of amounts of a class that there is room for."""
        sums = self._sums[name]
        return sums[max(0, bisect_right(sums, room) - 1)] if sums else room


def _sums(plan: Plan, name: str) -> list[int]:
    """Return what slots may take of a class of one provider together, ascending; nothing if there are too many sums."""
    sums = {0}
    for slot in plan.slots:
        amount = dict(slot.resources).get(name, 0)
        sums |= {one + amount for one in sums}
        if len(sums) > MOST_SUMS:
            return []
    return sorted(sums)
