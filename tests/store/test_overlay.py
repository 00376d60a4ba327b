"""Plans under an overlay in small random clouds, compared with plans in the cloud that it describes."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile
from placement.domain.planner_request import PlannerRequest
from placement.domain.tree import Overlay
from placement.errors import Unavailable
from placement.services.planner.candidates import PlannerAnswer, planned_candidates
from placement.services.planner.questions import PlannerOptions
from placement.store.connection.database import Database
from tests.planner_clouds import LEVELS, LOCKS, make_names, random_cloud, random_request
from tests.small_clouds import Cloud, Node, load

CLOUDS, REQUESTS = 12, 4
PACKED = RankingProfile(strategy=Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), compactness=1)
OPTIONS = PlannerOptions(RankingProfile(), LEVELS, LOCKS)


@pytest.mark.any_database
def test_a_plan_under_an_overlay_is_the_plan_of_the_cloud_that_it_describes(
    database: Database, seeds: Callable[..., range]
) -> None:
    make_names(database)
    for seed in seeds(CLOUDS, times=40):
        chance = Random(seed)
        cloud = random_cloud(chance)
        meant = {id_: changed(chance, node) for id_, node in cloud.items()}
        requests = [random_request(chance) for _ in range(REQUESTS)]
        load(database, cloud)
        options = replace(OPTIONS, profile=chance.choice((RankingProfile(), PACKED)))
        planned = [answer(database, each, options, overlay(cloud, meant)) for each in requests]
        load(database, meant)
        assert planned == [answer(database, each, options, Overlay()) for each in requests], seed


def changed(chance: Random, node: Node) -> Node:
    """Return a provider, in every second case with another usage."""
    if chance.random() < 0.5:
        return node
    stocks = {
        name: replace(stock, used=chance.randint(0, stock.total - stock.reserved))
        for name, stock in node.inventories.items()
    }
    return replace(node, inventories=stocks)


def overlay(cloud: Cloud, meant: Cloud) -> Overlay:
    """Return the overlay that turns one cloud into the other."""
    found = Overlay()
    for id_, node in cloud.items():
        for name, stock in node.inventories.items():
            more = meant[id_].inventories[name].used - stock.used
            found = found.taking({id_: {name: more}}) if more > 0 else found
            found = found.releasing({id_: {name: -more}}) if more < 0 else found
    return found


def answer(database: Database, request: PlannerRequest, options: PlannerOptions, overlay: Overlay) -> object:
    """Return the essentials of an answer: the candidates in order, with their scores."""
    try:
        found: PlannerAnswer = planned_candidates(database, request, options, overlay=overlay)
    except Unavailable:
        return None
    return [(one.proposal, one.score) for one in found.candidates], found.complete
