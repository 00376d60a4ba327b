"""Random trees and requirements for the Group Allocator, from a seed: Hypothesis takes longer to draw a number."""

import random
from typing import NamedTuple

from hypothesis import strategies as st

from placement.allocators.group.tree import Capacity, Location, Phase, Requirement, Units

WHOLE, MIXED, SLICED = range(3)
"""Devices with one card; with one card and memory; with several cards."""


class Instance(NamedTuple):
    """A problem for the allocator."""

    root: Location
    requirements: list[Requirement]
    distinct: bool
    levels: list[str] | None


def random_instance(seed: int) -> Instance:
    """Return an instance that is usually small enough for brute force."""
    return _Maker(random.Random(seed)).instance()


instances = st.integers(0, 2**32).map(random_instance)
"""Trees of up to three levels, several containers, skipped levels, siblings together and apart."""


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._kind = rng.choice([WHOLE, MIXED, SLICED])
        self._devices = 0
        self._levels: set[str] = {"gpu"}
        # Most requirements equal another one.
        self._usual = [self._asked(), self._asked()]

    def instance(self) -> Instance:
        root = self._root()
        if self._rng.random() < 0.6:
            requirements = [self._container(4)]
        else:
            requirements = [self._container(2) for _container in range(self._rng.randint(2, 3))]
        names = sorted(self._levels)
        levels = self._rng.choice([None, None, None, names, names[:1]])
        return Instance(root, requirements, self._rng.random() < 0.35, levels)

    def _root(self) -> Location:
        make = self._rng.choice([self._flat, self._grouped, self._nested, self._with_nics])
        return Location(capacities=self._capacities(["cpu", "ram"], 0.3), children=make())

    def _capacities(self, bases: list[str], share: float) -> dict[str, Capacity]:
        found = {}
        for base in bases:
            if self._rng.random() < share:
                allocatable = self._rng.choice([1, 1, 2, 2, 3, 4, 6])
                found[base] = Capacity(allocatable, self._rng.choice([0, 0, 0, 1]) if allocatable > 1 else 0)
        return found

    def _some(self, fewest: int, most: int) -> tuple[Location, ...]:
        """Return some devices."""
        return tuple([self._device() for _device in range(self._rng.randint(fewest, most))])

    def _device(self) -> Location:
        self._devices += 1
        units = self._rng.choice([Units(), Units(), Units(), Units(max_total=2), Units(least=2, step=2)])
        cards = Capacity(self._rng.choice([1, 2, 3, 4]), 0, units) if self._kind == SLICED else Capacity(1)
        offers = {"cards": cards}
        if self._kind != WHOLE:
            offers["memory"] = Capacity(self._rng.choice([2, 4, 4, 6, 8]), self._rng.choice([0, 0, 1, 2]))
        if self._rng.random() < 0.2:
            offers["enumKind"] = Capacity(self._rng.randint(0, 3))
        return Location(f"d{self._devices}", "gpu", offers)

    def _flat(self) -> tuple[Location, ...]:
        return self._some(2, 5)

    def _grouped(self) -> tuple[Location, ...]:
        self._levels |= {"grp"}
        own = [self._capacities(["memory", "cpu"], 0.2) for _group in range(self._rng.randint(2, 3))]
        return tuple([Location(f"g{number}", "grp", cells, self._some(1, 3)) for number, cells in enumerate(own)])

    def _nested(self) -> tuple[Location, ...]:
        self._levels |= {"grp", "numa"}
        return tuple([Location(f"n{n}", "numa", self._capacities(["cpu"], 0.3), self._half(n)) for n in range(2)])

    def _half(self, number: int) -> tuple[Location, ...]:
        groups = [
            Location(f"g{number}{inner}", "grp", self._capacities(["cpu"], 0.1), self._some(1, 2))
            for inner in range(self._rng.randint(1, 2))
        ]
        return (*groups, *(self._some(1, 1) if self._rng.random() < 0.2 else ()))

    def _with_nics(self) -> tuple[Location, ...]:
        self._levels |= {"numa", "nic"}
        return tuple([Location(f"n{n}", "numa", {}, (*self._some(1, 2), *self._nics())) for n in range(2)])

    def _nics(self) -> list[Location]:
        offers = [Capacity(self._rng.randint(1, 3), self._rng.randint(0, 1)) for _nic in range(self._rng.randint(0, 2))]
        return [Location(f"v{number}", "nic", {"vf": capacity}) for number, capacity in enumerate(offers)]

    def _asked(self) -> dict[str, int]:
        asked = {"cards": self._rng.choice([1, 1, 1, 0, 2]) if self._kind == SLICED else 1}
        if self._kind != WHOLE and self._rng.random() < 0.6:
            asked["memory"] = self._rng.randint(1, 4)
        if self._rng.random() < 0.08:
            asked["enumKind"] = self._rng.randint(0, 3)
        return asked

    def _gpu(self) -> Requirement:
        amounts = self._rng.choice(self._usual) if self._rng.random() < 0.7 else self._asked()
        return Requirement(f"{self._rng.random()}", "gpu", amounts)

    def _container(self, most: int) -> Requirement:
        left = self._rng.randint(1, most)
        parts = []
        while left > 0:
            part = self._part(left)
            parts.append(part)
            left -= max(1, len(part.parts))
        phase = self._rng.choice([Phase.RUNNING, Phase.RUNNING, Phase.RUNNING, Phase.INITIALISATION])
        return Requirement(amounts={"cpu": 1} if self._rng.random() < 0.1 else {}, parts=tuple(parts), phase=phase)

    def _part(self, most: int) -> Requirement:
        level = self._rng.choice(sorted(self._levels))
        if level == "gpu":
            return self._gpu()
        if level == "nic":
            return Requirement("", "nic", {"vf": self._rng.randint(0, 2)})
        inside = [self._gpu() for _device in range(self._rng.randint(0, min(3, most)))]
        if level == "numa":
            inside = self._in_numa(inside)
        own = {"cpu": self._rng.randint(0, 2)} if self._rng.random() < 0.15 else {}
        return Requirement("", level, own, tuple(inside))

    def _in_numa(self, inside: list[Requirement]) -> list[Requirement]:
        if "grp" in self._levels and self._rng.random() < 0.5:
            return [Requirement("", "grp", {}, tuple(inside))]
        if "nic" in self._levels and self._rng.random() < 0.5:
            return [*inside, Requirement("", "nic", {"vf": 1})]
        return inside
