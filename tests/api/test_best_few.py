"""The best few candidates are the first of all, whatever is kept of earlier requests, and full hosts are not read."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from flask import Flask
from sqlalchemy import text

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional
from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.ranking import Ranking
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import CandidateRequest, RequestGroup, SearchLimits
from placement.services.allocation_candidates import CandidateQuestion, SearchOptions, allocation_candidates
from placement.services.journal import put_in_order
from placement.services.planner.questions import PlannerOptions, question_for
from placement.store.connection.database import Database, Transaction, reads
from tests.clouds import SHARES
from tests.databases import statements, without_caches
from tests.planner_clouds import LEVELS, make_names, random_hosts
from tests.small_clouds import Cloud, load
from tests.store.rows import DISK_GB, VCPU, add_providers, allocate, run, stocking

CLOUDS, CHANGES = 6, 5
ONE_BY_ONE = SearchLimits(first_trees=1, growth=1)

TAKEN = {VCPU: 2, DISK_GB: 4}
"""What is in use on a full host, on which only the VCPUs tell how good it is."""

PACKED = RankingProfile("packed", Profile(fit=Fit({"VCPU": Preference("MostAllocated")})))
PROFILES = (
    RankingProfile("spread"),
    RankingProfile("pack", Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), 3),
    RankingProfile("kept", Profile(fit=Fit(), proportional=Proportional({"PGPU": {"VCPU": 1}}, "own", "filter"))),
    RankingProfile("compactness alone", Profile(), 1),
)


@pytest.fixture
def database(app: Flask) -> Database:
    found: Database = app.extensions["placement"].database
    make_names(found)
    return found


def assert_plain_is_exact(database: Database, request: CandidateRequest, ranking: Ranking, limits: SearchLimits) -> int:
    """Compare the best few candidates with the first of all; return how many there are."""
    options = SearchOptions(breadth_first=True, limits=limits)
    anew = without_caches(database)
    every = allocation_candidates(anew, CandidateQuestion(request, options, ranking)).candidates
    for limit in (1, 4):
        for asked in (database, database, anew):  # Asked again, what finds nothing is not searched.
            question = CandidateQuestion(replace(request, limit=limit), options, ranking)
            found = allocation_candidates(asked, question)
            assert found.candidates == every[:limit]
    return len(every)


@reads
def proposals(tx: Transaction, request: PlannerRequest, options: PlannerOptions) -> list[Proposal]:
    """Return all proposals for a request that counts places."""
    return list(PlannerSearch(question_for(tx, request, options), limit=1, first_trees=1).proposals())


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


def singles(chance: Random) -> CandidateRequest:
    names = chance.sample(("VCPU", "MEMORY_MB", "PGPU", "PGPU"), chance.choice((1, 2)))
    groups = [RequestGroup(suffix=f"_{number}", resources={name: 1}) for number, name in enumerate(names)]
    if chance.random() < 0.3:
        groups[0] = replace(groups[0], required=(frozenset({"CUSTOM_A"}),))
    return CandidateRequest(groups=tuple(groups), isolate=chance.random() < 0.5)


def change(database: Database, chance: Random, cloud: Cloud) -> None:
    """Let a few providers be in use, lose their inventory, or no longer be places."""
    with database.writer.begin() as connection:
        for provider in chance.sample(sorted(cloud), 2):
            where = f"WHERE resource_provider_id = {provider}"
            changes = (
                f"UPDATE inventories SET reserved = total {where}",
                f"UPDATE inventories SET reserved = 0 {where}",
                f"DELETE FROM resource_provider_traits {where}",
                (
                    "INSERT INTO resource_provider_traits (resource_provider_id, trait_id) "
                    f"SELECT {provider}, id FROM traits WHERE name = '{LEVELS['pcie']}' AND NOT EXISTS "
                    f"(SELECT 1 FROM resource_provider_traits {where} AND trait_id = traits.id)"
                ),
            )
            connection.execute(text(chance.choice(changes)))


def fill_or_empty(database: Database, chance: Random, cloud: Cloud) -> None:
    """Leave nothing in most of some hosts, and all in the others."""
    roots = sorted({node.root for node in cloud.values()})
    with database.writer.begin() as connection:
        for root in chance.sample(roots, len(roots) // 2):
            reserved = chance.choice(("total", "total", "total", "0"))
            inside = ", ".join([str(id_) for id_, node in cloud.items() if node.root == root])
            where = f"WHERE resource_provider_id IN ({inside})"
            connection.execute(text(f"UPDATE inventories SET reserved = {reserved} {where}"))


@pytest.mark.any_database
def test_the_best_few_are_those_of_all_trees_whatever_changes(database: Database, seeds: Callable[..., range]) -> None:
    """Some hosts change, or are full, between requests that ask for the same, or for other numbers."""
    found = 0
    for seed in seeds(CLOUDS, times=10):
        chance, database.cloud_cache = Random(seed), None
        # The planner reads about twenty trees before it uses bounds.
        pools = chance.choice((0, 0, 1, 2))
        cloud = random_hosts(chance, chance.choice((8, 8, 8, 24)), models=chance.choice((None, 3)), pools=pools)
        if not pools and chance.random() < 0.9:
            cloud = {id_: replace(node, traits=node.traits - {SHARES}) for id_, node in cloud.items()}
        load(database, cloud)
        wanted, profile = [pairs(chance), singles(chance)], chance.choice((PACKED, *PROFILES))
        ranking = Ranking(profile, tuple(LEVELS.values()), chance.choice((0.0, 0.0, 20.0)), chance.choice((None, 1)))
        device = PlannerGroup(group=RequestGroup(suffix="_A", resources={"PGPU": 1}), count=chance.choice((2, 3)))
        options = PlannerOptions(profile=profile, levels=LEVELS, locks={})
        for _ in range(CHANGES):
            found += sum([assert_plain_is_exact(database, one, ranking, ONE_BY_ONE) for one in wanted])
            devices = PlannerRequest(groups=(device,), limit=3), options
            assert proposals(database, *devices) == proposals(without_caches(database), *devices)
            chance.choice((change, change, fill_or_empty))(database, chance, cloud)
    assert found > 10 * CLOUDS


def best(database: Database, profile: RankingProfile) -> list[int]:
    request = CandidateRequest(groups=(RequestGroup(resources={"VCPU": 1, "DISK_GB": 1}),), isolate=False, limit=1)
    options = SearchOptions(breadth_first=True, limits=ONE_BY_ONE)
    question = CandidateQuestion(request, options, Ranking(profile))
    return [root for root, _choice in allocation_candidates(database, question).candidates]


@pytest.mark.parametrize("profile", [PACKED, RankingProfile("by id", Profile())], ids=lambda profile: profile.name)
def test_full_hosts_that_come_first_are_not_read(app: Flask, database: Database, profile: RankingProfile) -> None:
    """Where work is packed, full hosts come first: with 500 of 2,000, a claim for eight took five times as long."""
    hosts, full = 300, 200
    with database.writer.begin() as connection:
        add_providers(connection, hosts)
        run(connection, *[stocking((one, of), total=4) for one in range(1, hosts + 1) for of in (VCPU, DISK_GB)])
        allocate(connection, "earlier", {(one, of): used for one in range(1, full + 1) for of, used in TAKEN.items()})
    put_in_order(database)
    first_free = [full + 1]
    assert best(database, profile) == first_free
    with statements(database) as sent:
        assert best(database, profile) == first_free
    reading = [one for one in sent if "max_unit" in one]
    assert not reading  # The columns of the cloud tell who has room.
    with database.writer.begin() as connection:
        allocate(connection, "late", {(full + 1, of): used for of, used in TAKEN.items()})
    assert best(database, profile) == [full + 2]
