"""How much of a resource class several slots together may take from one provider, computed on demand."""

from collections.abc import Callable
from functools import cache

from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.domain.facts import Facts
from placement.domain.search_plan import Plan

RoomOf = Callable[[int], float]
"""Returns how much of a class may be taken from a provider that has any."""


class SummedRoom:
    """The room of the providers of one cloud, for all plans searched in it.

    Args:
        facts: the cloud.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._limits: dict[str, dict[int, tuple[int, int]]] = {}
        """By class and provider, what is left and the largest unit."""

    def of(self, plan: Plan, name: str, without: Condition | None) -> RoomOf:
        """Return how much of a class all slots of a plan may take from a provider, a condition on amounts left out.

        Capped at what all slots ask for, which makes trees more alike.
        """
        asked = sum([dict(slot.resources).get(name, 0) for slot in plan.slots])
        lifted = without.kind if without and without.resource_class == name else None
        if lifted == ConditionKind.AMOUNT:
            return lambda _provider: asked
        limits = self._limits_of(name)
        if lifted == ConditionKind.CAPACITY:
            return lambda provider: min(asked, limits[provider][1])
        if lifted == ConditionKind.MAX_UNIT:
            return lambda provider: min(asked, limits[provider][0])
        return cache(lambda provider: min(asked, *limits[provider]))

    def _limits_of(self, name: str) -> dict[int, tuple[int, int]]:
        if name not in self._limits:
            rows = self._facts.stocks.get(name, ())
            self._limits[name] = {
                provider: (int(left), max_unit) for _class, provider, _root, left, _low, max_unit, _step in rows
            }
        return self._limits[name]
