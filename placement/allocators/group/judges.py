"""Tells whether a location can serve several requirements together, and what that gains."""

from collections import defaultdict
from collections.abc import Sequence

from placement.allocators.group.locations import LocationNode, Locations
from placement.allocators.group.requirements import RequirementNode
from placement.allocators.group.scorers import QUANTITY, Phase

ContainerPart = tuple[int, RequirementNode]
"""(the number of the container, the requirement)."""


ServedLoad = tuple[int, int]
"""(the gain in the location's sum of scores, the judge's state)."""


class QuantityJudge:
    """Judges plain amounts of running containers without calling scorers: amounts and gains simply add up.

    What is free of every resource is packed into one integer, with a guard bit above each field. A resource that does
    not suffice borrows its guard bit, so one mask checks all resources.

    Args:
        location: the location.
        wanted: the requirements, those of a container next to each other; each of them fits alone.
        locations: all locations.
    """

    def __init__(self, location: LocationNode, wanted: Sequence[ContainerPart], locations: Locations) -> None:
        capacities = location.capacities
        bits = max([capacity.allocatable for capacity in capacities.values()]).bit_length()
        places = {base: 1 << place * (bits + 1) for place, base in enumerate(capacities)}
        units = {base: locations.scale // (capacity.allocatable or 1) for base, capacity in capacities.items()}
        self._amounts = [sum([amount * places[base] for base, amount in node.amounts]) for _number, node in wanted]
        self._gains = [sum([amount * units[base] for base, amount in node.amounts]) for _number, node in wanted]
        self._guards = sum([place << bits for place in places.values()])
        free = [max(0, one.allocatable - one.used.total) * places[base] for base, one in capacities.items()]
        self.empty: ServedLoad = 0, self._guards + sum(free)

    @classmethod
    def applies(cls, location: LocationNode, wanted: Sequence[ContainerPart]) -> bool:
        """Tell whether only plain amounts of running containers are asked for."""
        scorers = {location.capacities[base].scorer for _number, node in wanted for base, _amount in node.amounts}
        return scorers == {QUANTITY} and all([node.phase is Phase.RUNNING for _number, node in wanted])

    def with_one(self, load: ServedLoad, index: int) -> ServedLoad | None:
        """Add a requirement to a load, in the order of indices; return None if it does not fit."""
        gain, free = load
        free -= self._amounts[index]
        return (gain + self._gains[index], free) if free & self._guards == self._guards else None


class ScoringJudge:
    """Judges by a location's scorers; the state of a load is the list of requirements in it."""

    def __init__(self, location: LocationNode, wanted: Sequence[ContainerPart], locations: Locations) -> None:
        self._location = location
        self._wanted = wanted
        self._locations = locations
        self._gains: dict[object, int | None] = {}
        self._served: list[tuple[int, ...]] = [()]
        self.empty: ServedLoad = 0, 0

    def with_one(self, load: ServedLoad, index: int) -> ServedLoad | None:
        """Add a requirement to a load, in the order of indices; return None if it does not fit."""
        there = (*self._served[load[1]], index)
        asked: dict[str, list[tuple[int, Phase, int]]] = defaultdict(list)
        for one in there:
            number, node = self._wanted[one]
            for base, amount in node.amounts:
                asked[base].append((number, node.phase, amount))
        gain = 0
        for base, amounts in asked.items():
            more = self._gain(base, tuple(amounts))
            if more is None:
                return None
            gain += more
        self._served.append(there)
        return gain, len(self._served) - 1

    def _gain(self, base: str, asked: tuple[tuple[int, Phase, int], ...]) -> int | None:
        """Return the gain on one resource, or None if it does not suffice."""
        key = (base, asked)
        if key not in self._gains:
            self._gains[key] = self._judged(base, asked)
        return self._gains[key]

    def _judged(self, base: str, asked: Sequence[tuple[int, Phase, int]]) -> int | None:
        capacity = self._location.capacities[base]
        score = before = self._locations.score(capacity)
        used = capacity.used
        by_container: dict[tuple[int, Phase], list[int]] = defaultdict(list)
        for number, phase, amount in asked:
            by_container[number, phase].append(amount)
        for (_number, phase), amounts in by_container.items():
            verdict = capacity.scorer.judge(capacity.allocatable, used, sorted(amounts), phase)
            if not verdict.fits:
                return None
            used = verdict.used
            if phase is Phase.RUNNING:
                score = self._locations.scaled(verdict.score)
        return score - before


Judge = QuantityJudge | ScoringJudge


def judge_of(location: LocationNode, wanted: Sequence[ContainerPart], locations: Locations) -> Judge:
    """Return the fastest judge that applies to these requirements at a location."""
    judge = QuantityJudge if QuantityJudge.applies(location, wanted) else ScoringJudge
    return judge(location, wanted, locations)
