"""The rules a placement is made and judged by, and judging one that was made elsewhere."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.allocators.group.objective import Objective, Weights, objective_of
from placement.allocators.group.scorers import Phase, ScorerChoice, scorer_by_name
from placement.allocators.group.sites import Sites, levels_inside_out
from placement.allocators.group.tree import Location, Path

SEARCH_BUDGET = 200_000


@dataclass(frozen=True, slots=True)
class Rules:
    """What a good placement is, and how long to search for it.

    Args:
        distinct: whether parts of one demand that have one level must get different locations.
        levels: the levels where few touched locations are better, most important first; if not given, all of them, the
            innermost first.
        scorer_for: the scorer of each resource, by its base name.
        budget: how many times a demand may be tried at a location, if it comes to a search.
    """

    distinct: bool = False
    levels: Sequence[str] | None = None
    scorer_for: ScorerChoice = scorer_by_name
    budget: int = SEARCH_BUDGET


USUAL_RULES = Rules()


def weights_for(sites: Sites, rules: Rules) -> Weights:
    """Return how the objective is packed under some rules."""
    return Weights(sites, levels_inside_out(sites.all) if rules.levels is None else rules.levels)


def assess(
    root: Location, amounts: Sequence[tuple[Path, Mapping[str, int]]], rules: Rules = USUAL_RULES
) -> Objective | None:
    """Return how good it is to take amounts at given locations, or None if they do not fit there.

    Args:
        root: the locations.
        amounts: a location and what is taken there; a location may come more than once.
        rules: what is good; only levels and scorers matter.

    Raises:
        ValueError: as for ``place``.

    >>> from placement.allocators.group.tree import Capacity
    >>> numa = [Location(name, "numa", {"VCPU": Capacity(4)}) for name in "ab"]
    >>> assess(Location(children=tuple(numa)), [((("numa", "a"),), {"VCPU": 2})]).touched
    (1,)
    """
    sites = Sites(root, rules.scorer_for)
    index_of = {site.path: site.index for site in sites.all}
    asked: dict[tuple[int, str], list[int]] = defaultdict(list)
    touched = {0}
    for path, wanted in amounts:
        if path not in index_of:
            return None
        touched.update(sites.trail(0, index_of[path]))
        for base, amount in wanted.items():
            asked[index_of[path], base].append(amount)
    scores = _scores_after(sites, asked)
    return None if scores is None else objective_of(sites, weights_for(sites, rules), scores, touched)


def _scores_after(sites: Sites, asked: Mapping[tuple[int, str], list[int]]) -> list[int] | None:
    """Return the sum of scores in each location after amounts are taken, or None if they do not fit."""
    scores = [site.score for site in sites.all]
    for (index, base), amounts in asked.items():
        cell = sites.all[index].cells.get(base)
        if cell is None:
            return None
        verdict = cell.scorer.judge(cell.allocatable, cell.used, amounts, Phase.RUNNING)
        if not verdict.fits:
            return None
        gain = sites.scaled(verdict.score) - sites.score(cell)
        for site in (0, *sites.trail(0, index)):
            scores[site] += gain
    return scores
