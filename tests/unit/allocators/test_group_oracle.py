"""Instances too large for brute force, compared with a model for the CP-SAT solver of OR-Tools.

The model states as inequalities what the allocator does by search; it does not know the allocator's bounds. OR-Tools is
large, so these tests are skipped where it is not installed.
"""

import random
from fractions import Fraction
from math import lcm

import pytest

from placement.allocators.group.objective import Rules
from placement.allocators.group.place import place
from placement.allocators.group.tree import Capacity, Location, Requirement

cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="OR-Tools, the oracle, is not installed")

LEVELS = ("numa", "switch", "link", "gpu")
"""Outermost first."""


def host(rng: random.Random, *, numas: int, shared: bool) -> Location:
    """Return a host of four levels with four GPUs per NUMA node; shared GPUs have several slices and memory in use."""

    def gpu(number: int) -> Location:
        memory = rng.choice([24, 40, 48, 80])
        if shared:
            return Location(
                f"dev{number}", "gpu", {"cards": Capacity(4), "memory": Capacity(memory, rng.choice([0, 8]))}
            )
        busy = rng.random() < 0.2
        return Location(f"dev{number}", "gpu", {"cards": Capacity(1, int(busy)), "memory": Capacity(memory)})

    def inside(level: str, first: int, count: int) -> Location:
        if level == "gpu":
            return gpu(first)
        below = LEVELS[LEVELS.index(level) + 1]
        step = {"link": 1, "switch": 2, "numa": 2}[level]
        parts = [inside(below, number, step) for number in range(first, first + count, step)]
        return Location(str(first), level, {}, tuple(parts))

    return Location(children=tuple([inside("numa", 4 * numa, 4) for numa in range(numas)]))


def request(rng: random.Random, *, devices: int) -> Requirement:
    """Return a request for about this many devices, some in groups of some level."""
    parts = []
    while devices > 0:
        level = rng.choice(LEVELS)
        count = 1 if level == "gpu" else rng.randint(1, min(devices, {"link": 1, "switch": 2, "numa": 3}[level]))
        asked = [
            Requirement(f"y{number}", "gpu", {"cards": 1, "memory": rng.choice([8, 20, 40])}) for number in range(count)
        ]
        parts.append(asked[0] if level == "gpu" else Requirement(f"x{len(parts)}", level, {}, tuple(asked)))
        devices -= count
    return Requirement(parts=tuple(parts))


class Model:
    """The same problem as integer inequalities."""

    def __init__(self, root: Location, requirement: Requirement, *, distinct: bool) -> None:
        self.model = cp_model.CpModel()
        self.places = {(): root}
        self._add_places(root, ())
        self.scale = lcm(*[cap.allocatable for place in self.places.values() for cap in place.capacities.values()])
        self.load = {path: [] for path in self.places}
        self.choices = {path: [] for path in self.places}
        self._add_parts(requirement, {(): 1}, distinct=distinct)
        self._limit()
        self._define_objective()

    def _add_places(self, location: Location, path: tuple) -> None:
        for child in location.children:
            inner = (*path, (child.level, child.name))
            self.places[inner] = child
            self._add_places(child, inner)

    def _add_parts(self, requirement: Requirement, around: dict, *, distinct: bool) -> None:
        chosen = []
        for part in requirement.parts:
            takes = {path: self.model.new_bool_var("") for path in self.places if path and path[-1][0] == part.level}
            self.model.add_exactly_one(takes.values())
            for path, take in takes.items():
                outer = [around[path[:length]] for length in range(len(path)) if path[:length] in around]
                self.model.add(sum(outer) >= take)
                self.load[path].append((take, part.amounts))
                self.choices[path].append(take)
            chosen.append((part.level, takes))
            self._add_parts(part, takes, distinct=distinct)
        for path in self.places if distinct else ():
            for level in LEVELS:
                self.model.add_at_most_one([takes[path] for own, takes in chosen if own == level and path in takes])

    def _limit(self) -> None:
        for path, location in self.places.items():
            for base in {base for _take, amounts in self.load[path] for base in amounts}:
                free = location.capacities[base].allocatable - location.capacities[base].used
                self.model.add(sum(take * amounts.get(base, 0) for take, amounts in self.load[path]) <= free)

    def _define_objective(self) -> None:
        self.sums = {path: self._sum_of_scores(path) for path in self.places}
        self.keys = {
            path: sum(len(p.capacities) for o, p in self.places.items() if o[: len(path)] == path)
            for path in self.places
        }
        touched = {path: self.model.new_bool_var("") for path in self.places}
        for path, takes in self.choices.items():
            for take in takes:
                for length in range(1, len(path) + 1):
                    self.model.add_implication(take, touched[path[:length]])
        self.touched = [sum(touched[path] for path in self.places if path and path[-1][0] == level) for level in LEVELS]
        common = lcm(*self.keys.values())
        squares = []
        for path, total in self.sums.items():
            if path:
                top = self.keys[path] * self.scale
                value = self.model.new_int_var(0, top, "")
                square = self.model.new_int_var(0, top * top, "")
                self.model.add(value == total)
                self.model.add_multiplication_equality(square, [value, value])
                squares.append(square * (common // self.keys[path]) ** 2)
        self.tightness = sum(squares)
        self.unit = Fraction(1, (common * self.scale) ** 2)

    def _sum_of_scores(self, path: tuple):
        total = 0
        for inner in self._within(path):
            for base, cap in self.places[inner].capacities.items():
                taken = sum(take * amounts.get(base, 0) for take, amounts in self.load[inner])
                total += (taken + cap.used) * (self.scale // cap.allocatable)
        return total

    def _within(self, path: tuple) -> list[tuple]:
        return [inner for inner in self.places if inner[: len(path)] == path]

    def best(self) -> tuple | None:
        """Return the objective, optimising its parts one by one, with the earlier ones fixed."""
        score = self._optimise(self.sums[()])
        if score is None:
            return None
        touched = tuple(self._optimise(-count) for count in self.touched)
        tightness = self._optimise(self.tightness)
        return Fraction(score, self.scale * self.keys[()]), touched, tightness * self.unit

    def _optimise(self, part) -> int | None:
        self.model.maximize(part)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        status = solver.solve(self.model)
        if status == cp_model.INFEASIBLE:
            return None
        assert status == cp_model.OPTIMAL
        value = round(solver.objective_value)
        self.model.clear_objective()
        self.model.add(part == value)
        return value


@pytest.mark.parametrize("distinct", [False, True], ids=["siblings may share", "siblings apart"])
@pytest.mark.parametrize("shared", [False, True], ids=["whole devices", "slices of devices"])
@pytest.mark.parametrize("seed", range(6))
def test_the_solver_finds_nothing_better_on_a_host_of_eight_devices(seed, shared, distinct):
    rng = random.Random(f"{seed} {shared} {distinct}")
    root, requirement = host(rng, numas=2, shared=shared), request(rng, devices=6)
    expected = Model(root, requirement, distinct=distinct).best()
    placement = place(root, [requirement], Rules(distinct=distinct))
    assert placement.complete
    assert (placement.objective.rank if placement.feasible else None) == expected
