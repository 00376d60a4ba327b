"""How much of a resource class several slots together may take from one provider."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache

from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.domain.facts import Facts
from placement.domain.search_plan import Plan

RoomOf = Callable[[int], float]
"""Returns how much of a class may be taken from a provider that has any."""

UsefulLimits = Mapping[int, tuple[int, int]]
"""By provider, what is left of a class and the largest unit."""


class SummedRoom:
    """The room of the providers of one cloud, for all plans searched in it.

    Args:
        facts: the cloud.
        plan: the plan that asks for most: no other asks for more of any class.
    """

    def __init__(self, facts: Facts, plan: Plan) -> None:
        self._facts = facts
        self._asked = _amounts_of(plan)
        self._limits: dict[str, UsefulLimits] = {}

    def of(self, plan: Plan, name: str, without: Condition | None) -> RoomOf:
        """Return how much of a class all slots of a plan may take from a provider, a condition on amounts left out.

        Capped at what all slots ask for, which makes trees more alike.
        """
        asked = _amounts_of(plan)[name]
        lifted = without.kind if without and without.resource_class == name else None
        if lifted == ConditionKind.AMOUNT:
            return lambda _provider: asked
        limits = self.useful_limits(name)
        if lifted == ConditionKind.CAPACITY:
            return lambda provider: min(asked, limits[provider][1])
        if lifted == ConditionKind.MAX_UNIT:
            return lambda provider: min(asked, limits[provider][0])
        return cache(lambda provider: min(asked, *limits[provider]))

    def useful_limits(self, name: str) -> UsefulLimits:
        """Return what each provider has of a class, as far as it makes a difference to any plan."""
        if name not in self._limits:
            limits, most = dict[int, tuple[int, int]](), self._asked[name]
            for equal in self._facts.stocks.get(name, ()):
                limits |= dict.fromkeys(equal.providers, (min(most, int(equal.left)), min(most, equal.max_unit)))
            self._limits[name] = limits
        return self._limits[name]


def _amounts_of(plan: Plan) -> Counter[str]:
    """Return how much of each class the slots of a plan ask for in all."""
    asked: Counter[str] = Counter()
    for slot in plan.slots:
        asked.update(dict(slot.resources))
    return asked
