"""Requests for several devices, answered by cached bounds on places: the first of the candidates of all trees."""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from flask import Flask
from sqlalchemy import text

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional
from placement.candidates.ranking import Ranking
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_limits import SearchLimits
from placement.services.cloud_cache import CloudCache
from placement.services.planner.composers import PlannerOptions
from placement.store.connection.database import Database
from tests.api.exact_with_orders import assert_plain_is_exact, assert_planner_is_exact
from tests.clouds import SHARES
from tests.planner_clouds import LEVELS, make_names, random_hosts
from tests.small_clouds import Cloud, load

if TYPE_CHECKING:
    from collections.abc import Sequence

CLOUDS, CHANGES = 6, 4
ONE_BY_ONE = SearchLimits(first_trees=1, growth=1)

PROFILES = (
    RankingProfile("spread"),
    RankingProfile("pack", Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), 3),
    RankingProfile("kept", Profile(fit=Fit(), proportional=Proportional({"PGPU": {"VCPU": 1}}, "own", "filter"))),
    RankingProfile("compactness alone", Profile(), 1),
)


@pytest.fixture
def database(app: Flask) -> Database:
    """A database with the names of random clouds."""
    found: Database = app.extensions["placement"].database
    make_names(found)
    return found


def pairs(chance: Random) -> CandidateRequest:
    """Return a request for several devices of a kind, perhaps each with a NIC on its switch."""
    names = chance.choice((("PGPU",), ("PGPU",), ("PGPU", "SRIOV_NET_VF")))
    number = chance.choice((2, 3, 3, 4))
    groups = [RequestGroup(suffix=f"_{name}{n}", resources={name: 1}) for n in range(number) for name in names]
    ties: tuple[frozenset[str], ...] = ()
    if len(names) > 1 and chance.random() < 0.7:
        switch = (frozenset({LEVELS["pcie"]}),)
        groups += [RequestGroup(suffix=f"_S{n}", required=switch) for n in range(number)]
        ties = tuple([frozenset({f"_S{n}", *[f"_{name}{n}" for name in names]}) for n in range(number)])
    if chance.random() < 0.2:
        groups.append(RequestGroup(resources={"VCPU": 1}))
    return CandidateRequest(groups=tuple(groups), same_subtree=ties, isolate=chance.random() < 0.9)


def change(database: Database, chance: Random, cloud: Cloud) -> None:
    """Let a few providers be in use, lose their inventory, or no longer be places."""
    with database.writer.begin() as connection:
        for provider in chance.sample(sorted(cloud), 2):
            where = f"WHERE resource_provider_id = {provider}"
            statements: Sequence[str] = (
                f"UPDATE inventories SET reserved = total {where}",
                f"UPDATE inventories SET reserved = 0 {where}",
                f"DELETE FROM resource_provider_traits {where}",
                (
                    "INSERT INTO resource_provider_traits (resource_provider_id, trait_id) "
                    f"SELECT {provider}, id FROM traits WHERE name = '{LEVELS['pcie']}' AND NOT EXISTS "
                    f"(SELECT 1 FROM resource_provider_traits {where} AND trait_id = traits.id)"
                ),
            )
            connection.execute(text(chance.choice(statements)))


@pytest.mark.any_database
def test_the_best_few_are_those_of_all_trees_whatever_changes(
    database: Database, is_long: bool, request: pytest.FixtureRequest
) -> None:
    """Some hosts change between requests that ask for the same, or for other numbers."""
    first = 1000 * request.config.getoption("--seed")
    found = 0
    for seed in range(first, first + CLOUDS * (10 if is_long else 1)):
        chance, cache = Random(seed), CloudCache()
        # The planner reads about twenty trees before it uses bounds.
        cloud = random_hosts(chance, chance.choice((8, 8, 8, 24)), models=chance.choice((None, 3)))
        if chance.random() < 0.9:
            cloud = {id_: replace(node, traits=node.traits - {SHARES}) for id_, node in cloud.items()}
        load(database, cloud)
        wanted, profile = [pairs(chance) for _ in range(2)], chance.choice(PROFILES)
        ranking = Ranking(profile, tuple(LEVELS.values()), chance.choice((0.0, 0.0, 20.0)), chance.choice((None, 1)))
        device = PlannerGroup(group=RequestGroup(suffix="_A", resources={"PGPU": 1}), count=3)
        options = PlannerOptions(profile=profile, levels=LEVELS, locks={})
        for _ in range(CHANGES):
            found += sum([assert_plain_is_exact(database, one, ranking, cache, ONE_BY_ONE) for one in wanted])
            assert_planner_is_exact(database, PlannerRequest(groups=(device,), limit=3), options, cache)
            change(database, chance, cloud)
    assert found > 10 * CLOUDS
