"""Hosts with too little left are passed by: without an effect on what is found, and without being read."""

from dataclasses import replace
from random import Random

import pytest
from flask import Flask
from sqlalchemy import text

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile
from placement.candidates.ranking import Ranking
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_limits import SearchLimits
from placement.services.allocation_candidates import SearchOptions, answer_to
from placement.services.cloud_cache import CloudCache
from placement.services.journal import put_in_order
from placement.services.planner.composers import PlannerOptions
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from tests.api.exact_with_orders import assert_plain_is_exact, assert_planner_is_exact
from tests.planner_clouds import LEVELS, make_names, random_hosts
from tests.small_clouds import Cloud, load
from tests.store.rows import DISK_GB, VCPU, add_providers, allocate, run, stocking
from tests.store.statements import statements

CLOUDS, CHANGES = 8, 5
SMALL_STEPS = SearchLimits(first_trees=1, growth=2)

TAKEN = {VCPU: 2, DISK_GB: 4}
"""What is in use on a full host, on which only the VCPUs tell how good it is."""

PACKED = RankingProfile("packed", Profile(fit=Fit({"VCPU": Preference("MostAllocated")})))
BY_ID = RankingProfile("by id", Profile())
PROFILES = (
    PACKED,
    BY_ID,
    RankingProfile("spread"),
    RankingProfile("devices", Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), 3),
)


@pytest.fixture
def database(app: Flask) -> Database:
    """A database with the names of random clouds."""
    found: Database = app.extensions["placement"].database
    make_names(found)
    return found


def fill_or_empty(database: Database, chance: Random, cloud: Cloud) -> None:
    """Leave nothing in most of some hosts, and all in the others."""
    roots = sorted({node.root for node in cloud.values()})
    with database.writer.begin() as connection:
        for root in chance.sample(roots, len(roots) // 2):
            reserved = chance.choice(("total", "total", "total", "0"))
            inside = ", ".join([str(id_) for id_, node in cloud.items() if node.root == root])
            where = f"WHERE resource_provider_id IN ({inside})"
            connection.execute(text(f"UPDATE inventories SET reserved = {reserved} {where}"))


def random_request(chance: Random) -> CandidateRequest:
    names = chance.sample(("VCPU", "MEMORY_MB", "PGPU", "PGPU"), chance.choice((1, 2)))
    groups = [RequestGroup(suffix=f"_{number}", resources={name: 1}) for number, name in enumerate(names)]
    if chance.random() < 0.3:
        groups[0] = replace(groups[0], required=(frozenset({"CUSTOM_A"}),))
    return CandidateRequest(groups=tuple(groups), isolate=chance.random() < 0.5)


@pytest.mark.any_database
def test_the_best_few_are_those_of_all_trees_however_many_are_full(
    database: Database, is_long: bool, request: pytest.FixtureRequest
) -> None:
    first = 1000 * request.config.getoption("--seed")
    found = 0
    for seed in range(first, first + CLOUDS * (10 if is_long else 1)):
        chance, cache = Random(seed), CloudCache()
        cloud = random_hosts(chance, chance.choice((8, 24)))
        load(database, cloud)
        wanted, profile = [random_request(chance) for _ in range(2)], chance.choice(PROFILES)
        ranking = Ranking(profile, tuple(LEVELS.values()))
        device = PlannerGroup(group=RequestGroup(suffix="_A", resources={"PGPU": 1}), count=2)
        options = PlannerOptions(profile=profile, levels=LEVELS, locks={})
        for _ in range(CHANGES):
            found += sum([assert_plain_is_exact(database, one, ranking, cache, SMALL_STEPS) for one in wanted])
            assert_planner_is_exact(database, PlannerRequest(groups=(device,), limit=3), options, cache)
            fill_or_empty(database, chance, cloud)
    assert found > 5 * CLOUDS


@reads
def best(tx: Transaction, profile: RankingProfile, cache: CloudCache) -> list[int]:
    """Return the host of the best candidate."""
    request = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1, "DISK_GB": 1}),), isolate=False, limit=1)
    options = SearchOptions(breadth_first=True, limits=SMALL_STEPS)
    return [root for root, _choice in answer_to(tx, request, options, Ranking(profile), cache=cache).candidates]


@pytest.mark.parametrize("profile", [PACKED, BY_ID], ids=lambda profile: profile.name)
def test_full_hosts_that_come_first_are_not_read(app: Flask, database: Database, profile: RankingProfile) -> None:
    """Where work is packed, full hosts come first: with 500 of 2,000, a claim for eight took five times as long."""
    hosts, full = 300, 200
    with database.writer.begin() as connection:
        add_providers(connection, hosts)
        run(connection, *[stocking((one, of), total=4) for one in range(1, hosts + 1) for of in (VCPU, DISK_GB)])
        allocate(connection, "earlier", {(one, of): used for one in range(1, full + 1) for of, used in TAKEN.items()})
    put_in_order(database)
    cache = CloudCache()
    first_free = [full + 1]
    assert best(database, profile, cache) == first_free
    with statements(database) as sent:
        assert best(database, profile, cache) == first_free
    reading = [one for one in sent if "max_unit" in one]
    assert not reading  # The columns of the cloud tell who has room.
    with database.writer.begin() as connection:
        allocate(connection, "late", {(full + 1, of): used for of, used in TAKEN.items()})
    assert best(database, profile, cache) == [full + 2]
