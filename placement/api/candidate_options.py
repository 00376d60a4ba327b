"""How the operator has configured the search for candidates, for the API and the console alike."""

import random

from placement.api.call import Call
from placement.services.allocation_candidates import Ranking, SearchOptions
from placement.services.fragmentation import FragmentationJudge


def search_options(call: Call) -> SearchOptions:
    """Return how the operator configured candidate generation."""
    chosen, ranks = call.server.settings.placement, call.server.settings.ranking.enabled
    default = "breadth-first" if ranks else "depth-first"
    return SearchOptions(
        most=chosen.max_allocation_candidates if chosen.max_allocation_candidates >= 0 else None,
        breadth_first=(chosen.allocation_candidates_generation_strategy or default) == "breadth-first",
        # A random sample has no order; in a ranking, chance only decides between trees of nearly equal score.
        shuffled=chosen.randomize_allocation_candidates and not ranks,
        limits=call.server.limits,
        locks=call.server.settings.locks_for_all,
    )


def ranking_of(call: Call) -> Ranking | None:
    """Return how the operator wants candidates ordered; None if no ranking is enabled."""
    settings = call.server.settings
    if not settings.ranking.enabled:
        return None
    return Ranking(
        settings.planner.profile_in_force,
        levels=tuple(settings.planner.levels.values()),
        near_equal=settings.ranking.near_equal,
        seed=random.getrandbits(32) if settings.placement.randomize_allocation_candidates else None,
    )


def judge_in_force(call: Call) -> FragmentationJudge | None:
    """Return what scores fragmentation, if the ranking in force uses it."""
    settings = call.server.settings
    return call.server.fragmentation_judges.of(settings.planner.profile_in_force) if settings.ranking.enabled else None
