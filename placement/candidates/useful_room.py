"""How much of a provider's room makes a difference to a request: 5 is as good as 4 where 2 is asked for twice."""

from bisect import bisect_right

from placement.domain.search_plan import Plan

MAX_SUMS = 10_000
"""How many sums of amounts to tell apart; beyond that, room is told apart to the unit."""


class UsefulRoom:
    """Rounds room down to what makes a difference, for the contended classes of a plan.

    Args:
        plan: what is asked for.
    """

    def __init__(self, plan: Plan) -> None:
        self._sums = {name: _sums(plan, name) for name in plan.contended}

    def of(self, name: str, room: float) -> float:
        """Return the largest sum of a class's amounts that fits into some room."""
        sums = self._sums[name]
        return sums[max(0, bisect_right(sums, room) - 1)] if sums else room


def _sums(plan: Plan, name: str) -> list[int]:
    """Return the sums that slots may take of a class from one provider, ascending; nothing if there are too many."""
    sums = {0}
    for slot in plan.slots:
        amount = dict(slot.resources).get(name, 0)
        sums |= {one + amount for one in sums}
        if len(sums) > MAX_SUMS:
            return []
    return sorted(sums)
