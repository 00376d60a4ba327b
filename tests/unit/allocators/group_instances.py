"""The best placement of the Group Allocator by brute force.

Slow and simple; of the code under test it uses only the plain values and the scorers.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import compress, product

from placement.allocators.group.place import Placement
from placement.allocators.group.tree import (
    ANYWHERE,
    Location,
    Path,
    Phase,
    Placed,
    Requirement,
    ScorerChoice,
    Units,
    Used,
    scorer_by_name,
)

Key = tuple[int, ...]
"""Identifies a requirement: the number of its container, then its index among the parts at each level of nesting."""
Choice = dict[Key, Path]
Worth = tuple[Fraction, tuple[int, ...], Fraction]
"""(score, minus the touched locations of each level, tightness)."""


class Everything:
    """All placements of requirements in a tree.

    Args:
        root: the tree.
        requirements: the requirements, one for each container.
        distinct: whether parts of one requirement with one level must have different locations.
        levels: the levels whose touched locations count; by default all, outermost first.
        scorer_for: the scorers.
    """

    def __init__(
        self,
        root: Location,
        requirements: Sequence[Requirement],
        *,
        distinct: bool = False,
        levels: Sequence[str] | None = None,
        scorer_for: ScorerChoice = scorer_by_name,
    ) -> None:
        self._requirements = requirements
        self._distinct = distinct
        self._scorer_for = scorer_for
        self._places = dict(_walk(root, ()))
        self._levels = levels if levels is not None else self._levels_outside_in()
        self._cells = {(p, base): cap for p, place in self._places.items() for base, cap in place.capacities.items()}
        self._keys: dict[Path, int] = defaultdict(int)
        for path, _base in self._cells:
            for length in range(len(path) + 1):
                self._keys[path[:length]] += 1
        self._scores = {cell: self._judge(cell, Used(cap.used), ()).score for cell, cap in self._cells.items()}

    def _levels_outside_in(self) -> list[str]:
        depth: dict[str, int] = {}
        for path in self._places:
            if path:
                depth[path[-1][0]] = min(depth.get(path[-1][0], len(path)), len(path))
        return sorted(depth, key=lambda level: (depth[level], level))

    def _judge(self, cell, used, amounts, phase=Phase.RUNNING):
        return self._scorer_for(cell[1]).judge(self._cells[cell].allocatable, used, amounts, phase)

    def choices(self) -> Iterator[Choice]:
        """Yield every way to give each requirement a location of its level inside that of its enclosing requirement."""
        return self._combined(
            [list(self._ways(requirement, (number,), ())) for number, requirement in enumerate(self._requirements)]
        )

    def _combined(self, lists: Sequence[list[Choice]]) -> Iterator[Choice]:
        for combination in product(*lists):
            yield {key: path for choice in combination for key, path in choice.items()}

    def _ways(self, requirement: Requirement, key: Key, path: Path) -> Iterator[Choice]:
        inside = [[p for p in self._inside(path) if _may_have(part, p)] for part in requirement.parts]
        bound = [part.level != ANYWHERE for part in requirement.parts]
        for places in product(*inside):
            apart = [*compress(places, bound)]
            if self._distinct and len(set(apart)) < len(apart):
                continue
            parts = enumerate(zip(requirement.parts, places, strict=True))
            for choice in self._combined([list(self._ways(part, (*key, n), place)) for n, (part, place) in parts]):
                yield {key: path} | choice

    def _inside(self, path: Path) -> list[Path]:
        return [other for other in self._places if len(other) > len(path) and other[: len(path)] == path]

    def worth(self, choice: Choice) -> Worth | None:
        """Return how good a choice is, or None if something does not fit."""
        played = self._play(choice)
        if played is None:
            return None
        scores, _used = played
        means = self._means(scores)
        squares = [mean * mean for path, mean in means.items() if path]
        return means.get((), Fraction(0)), self._touched(choice), sum(squares, start=Fraction(0))

    def taken(self, choice: Choice) -> dict[tuple[Path, str], int]:
        """Return the amounts that a fitting choice takes."""
        _scores, used = self._play(choice)
        added = {cell: used[cell].total - capacity.used for cell, capacity in self._cells.items()}
        return {cell: amount for cell, amount in added.items() if amount}

    def _play(self, choice: Choice):
        """Return the scores and the usage after a choice, container by container; None if something does not fit."""
        used = {cell: Used(cap.used) for cell, cap in self._cells.items()}
        scores = dict(self._scores)
        for number in sorted(
            range(len(self._requirements)), key=lambda n: self._requirements[n].phase is not Phase.RUNNING
        ):
            phase = self._requirements[number].phase
            for cell, amounts in self._asked(choice, number).items():
                if cell not in self._cells:
                    return None
                verdict = self._judge(cell, used[cell], amounts, phase)
                units = self._cells[cell].units
                if not verdict.fits or any(not _is_allowed(units, amount) for amount in amounts):
                    return None
                if any(amounts) and units.max_total is not None and verdict.used.own > units.max_total:
                    return None
                used[cell] = verdict.used
                if phase is Phase.RUNNING:
                    scores[cell] = verdict.score
        return scores, used

    def _asked(self, choice: Choice, number: int) -> dict[tuple[Path, str], list[int]]:
        asked = defaultdict(list)
        for key, path in choice.items():
            if key[0] == number:
                for base, amount in self._requirement(key).amounts.items():
                    asked[path, base].append(amount)
        return asked

    def _requirement(self, key: Key) -> Requirement:
        requirement = self._requirements[key[0]]
        for number in key[1:]:
            requirement = requirement.parts[number]
        return requirement

    def _means(self, scores) -> dict[Path, Fraction]:
        sums: dict[Path, Fraction] = defaultdict(Fraction)
        for (path, _base), score in scores.items():
            for length in range(len(path) + 1):
                sums[path[:length]] += Fraction(score)
        return {path: total / self._keys[path] for path, total in sums.items()}

    def _touched(self, choice: Choice) -> tuple[int, ...]:
        holding = {path[:length] for path in choice.values() for length in range(1, len(path) + 1)}
        return tuple(-sum(path[-1][0] == level for path in holding) for level in self._levels)

    def best(self) -> Worth | None:
        """Return the worth of the best choice, or None if none fits."""
        found = [self.worth(choice) for choice in self.choices()]
        return max([worth for worth in found if worth is not None], default=None)

    def count(self, limit: int) -> int:
        """Return how many choices there are, or the limit if there are more."""
        count = 0
        for _choice in self.choices():
            count += 1
            if count == limit:
                break
        return count


def _may_have(part: Requirement, path: Path) -> bool:
    return part.level in (ANYWHERE, path[-1][0]) and (part.only is None or path in part.only)


def _is_allowed(units: Units, amount: int) -> bool:
    return amount == 0 or (amount >= units.least and amount % units.step == 0)


def choice_of(placement: Placement) -> Choice:
    """Return the choice that a placement made."""

    def walk(placed: Placed, key: Key) -> Iterator[tuple[Key, Path]]:
        yield key, placed.path
        for number, part in enumerate(placed.parts):
            yield from walk(part, (*key, number))

    return {key: path for number, one in enumerate(placement.placed) for key, path in walk(one, (number,))}


def _walk(location: Location, path: Path) -> Iterator[tuple[Path, Location]]:
    yield path, location
    for child in location.children:
        yield from _walk(child, (*path, (child.level, child.name)))
