"""How much of a provider's room makes a difference to a request: 5 is as good as 4 where 2 is asked for twice."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from placement.domain.search_plan import Plan

UsefulRoom = Mapping[str, Mapping[float, float]]
"""For each contended class, the largest sum of amounts that fits into a room."""

MAX_SUMS = 10_000
"""How many sums of amounts to tell apart; beyond that, room is told apart to the unit."""


def useful_room(plan: Plan) -> UsefulRoom:
    """Return, for each contended class of a plan and any room, the largest sum of amounts that fits into it."""
    return {name: _RoundedDown(_sums(plan, name)) for name in plan.contended}


class _RoundedDown(dict[float, float]):
    """Numbers and the largest sum that is no higher; computed on demand, because few numbers occur.

    Args:
        sums: the sums, ascending; if there are none, numbers stay as they are.
    """

    def __init__(self, sums: Sequence[int]) -> None:
        super().__init__()
        self._sums = sums

    def __missing__(self, number: float) -> float:
        at = bisect_right(self._sums, number) - 1
        found = self[number] = self._sums[max(0, at)] if self._sums else number
        return found


def _sums(plan: Plan, name: str) -> list[int]:
    """Return the sums that slots may take of a class from one provider, ascending; nothing if there are too many."""
    sums = {0}
    for slot in plan.slots:
        amount = dict(slot.resources).get(name, 0)
        sums |= {one + amount for one in sums}
        if len(sums) > MAX_SUMS:
            return []
    return sorted(sums)
