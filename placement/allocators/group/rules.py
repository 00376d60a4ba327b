"""The rules that a placement is made and judged by, and a judge for placements made elsewhere."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.allocators.group.locations import Locations, levels_inside_out
from placement.allocators.group.objective import Objective, Weights, objective_of
from placement.allocators.group.scorers import Phase, ScorerChoice, scorer_by_name
from placement.allocators.group.tree import Location, Path


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a placement good.

    Args:
        distinct: whether parts of one requirement that have the same level must get different locations.
        levels: the levels where touching fewer locations is better, most important first; by default all of them, the
            innermost first.
        scorer_for: maps a resource's base name to its scorer.
    """

    distinct: bool = False
    levels: Sequence[str] | None = None
    scorer_for: ScorerChoice = scorer_by_name


USUAL_RULES = Rules()


def weights_for(locations: Locations, rules: Rules) -> Weights:
    """Return how the objective is packed under these rules."""
    return Weights(locations, levels_inside_out(locations.all) if rules.levels is None else rules.levels)


def assess(
    root: Location, amounts: Sequence[tuple[Path, Mapping[str, int]]], rules: Rules = USUAL_RULES
) -> Objective | None:
    """Return the objective of taking amounts at given locations, or None if they do not fit there.

    Args:
        root: the locations.
        amounts: a location and what is taken there; a location may be repeated.
        rules: what makes a placement good; only levels and scorers apply.

    Raises:
        ValueError: as for ``place``.

    >>> from placement.allocators.group.tree import Capacity
    >>> numa = [Location(name, "numa", {"VCPU": Capacity(4)}) for name in "ab"]
    >>> assess(Location(children=tuple(numa)), [((("numa", "a"),), {"VCPU": 2})]).touched
    (1,)
    """
    locations = Locations(root, rules.scorer_for)
    index_of = {location.path: location.index for location in locations.all}
    asked: dict[tuple[int, str], list[int]] = defaultdict(list)
    touched = {0}
    for path, wanted in amounts:
        if path not in index_of:
            return None
        touched.update(locations.trail(0, index_of[path]))
        for base, amount in wanted.items():
            asked[index_of[path], base].append(amount)
    scores = _scores_after(locations, asked)
    return None if scores is None else objective_of(locations, weights_for(locations, rules), scores, touched)


def _scores_after(locations: Locations, asked: Mapping[tuple[int, str], list[int]]) -> list[int] | None:
    """Return the sum of scores in each location after amounts are taken, or None if they do not fit."""
    scores = [location.score for location in locations.all]
    for (index, base), amounts in asked.items():
        capacity = locations.all[index].capacities.get(base)
        if capacity is None:
            return None
        verdict = capacity.scorer.judge(capacity.allocatable, capacity.used, amounts, Phase.RUNNING)
        if not verdict.fits:
            return None
        gain = locations.scaled(verdict.score) - locations.score(capacity)
        for location in (0, *locations.trail(0, index)):
            scores[location] += gain
    return scores
