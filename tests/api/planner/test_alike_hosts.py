"""Hosts of one model are composed once, those of one kind until nothing is found: each gives the same as by itself."""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from flask import Flask

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile
from placement.candidates.planner.planner_search import PlannerSearch
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.questions import PlannerOptions, question_for
from placement.store.connection.unit_of_work import Transaction, reads
from tests.planner_clouds import (
    LEVELS,
    LOCKS,
    make_names,
    random_hosts,
    random_request,
)
from tests.small_clouds import load

if TYPE_CHECKING:
    from placement.candidates.compose.proposals import Proposal

CLOUDS, REQUESTS = 4, 6
PROFILES = (
    RankingProfile("spread"),
    RankingProfile("pack", Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), 3),
)


@reads
def by_tree(tx: Transaction, request: PlannerRequest, options: PlannerOptions) -> tuple[object, object]:
    """Return the proposals of each tree, found together and separately."""

    def planning() -> PlannerSearch:
        return PlannerSearch(question_for(tx, request, options))

    together: dict[int, list[Proposal]] = {}
    for proposal in planning().proposals():
        together.setdefault(proposal.root, []).append(proposal)
    alone = {root: found for root in planning().roots() if (found := [*planning().proposals(only=root)])}
    return together, alone


@pytest.mark.any_database
def test_hosts_of_a_model_have_what_each_has_alone(app: Flask, is_long: bool, request: pytest.FixtureRequest) -> None:
    """Some share resources with each other; names and ids come in different orders."""
    database, first, found = app.extensions["placement"].database, 1000 * request.config.getoption("--seed"), 0
    make_names(database)
    for seed in range(first, first + CLOUDS * (20 if is_long else 1)):
        chance = Random(seed)
        cloud = random_hosts(chance, 6, models=2, pools=chance.choice((0, 0, 1, 2)))
        load(database, cloud)
        for _ in range(REQUESTS):
            options = PlannerOptions(profile=chance.choice(PROFILES), levels=LEVELS, locks=LOCKS)
            wanted = replace(random_request(chance), limit=100, per_tree=chance.choice((1, 3)))
            together, alone = by_tree(database, wanted, options)
            assert together == alone, seed
            found += bool(together)
    assert found
