"""Orders of trees that the planner keeps between requests do not change its plans."""

import re
from dataclasses import replace
from random import Random

import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile
from placement.domain.candidate_request import RequestGroup
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.errors import Unavailable
from placement.services.cloud_cache import CloudCache
from placement.services.planner.candidates import planned_candidates
from placement.services.planner.composers import PlannerOptions
from placement.store.connection.database import Database
from tests.databases import open_database
from tests.planner_clouds import LEVELS, LOCKS, make_names, random_cloud, random_request
from tests.small_clouds import Cloud, Node, load
from tests.store.rows import VCPU, add_providers, allocate, run, stocking
from tests.store.statements import statements

CLOUDS, CHANGES, HOSTS = 6, 3, 80
PACKED = RankingProfile(strategy=Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), compactness=1)
ROWS = re.compile(r"min_unit\W.*max_unit\W.*step_size", re.DOTALL)
LISTED = re.compile(r"root_provider_id (= ANY|IN) \(")


def options_with(cache: CloudCache | None) -> PlannerOptions:
    return PlannerOptions(RankingProfile(), LEVELS, LOCKS, cache=cache)


def planned(database: Database, request: PlannerRequest, options: PlannerOptions, overlay: Overlay) -> object:
    """Return the candidates in their order, with their scores."""
    try:
        found = planned_candidates(database, request, options, overlay=overlay)
    except Unavailable:
        return None
    return [(one.proposal, one.score) for one in found.candidates], found.complete


def test_plans_are_the_same_whether_or_not_orders_are_kept(migrated: Database) -> None:
    """Whatever happens between two requests, also under an overlay that allocates or avoids trees."""
    make_names(migrated)
    cache, chance = CloudCache(), Random(7)
    for _ in range(CLOUDS):
        cloud, wanted = random_cloud(chance), random_request(chance)
        for _ in range(CHANGES):
            cloud = {id_: _used_anew(node, chance) for id_, node in cloud.items()}
            load(migrated, cloud)
            profile = chance.choice((options_with(None).profile, PACKED))
            kept, anew = (replace(options_with(one), profile=profile) for one in (cache, None))
            roots = frozenset([node.root for node in cloud.values() if chance.random() < 0.3])
            for overlay in (AS_IT_IS, Overlay(avoided=roots), _changing(cloud, chance)):
                request = replace(wanted, limit=chance.choice((1, 1000)))
                assert planned(migrated, request, kept, overlay) == planned(migrated, request, anew, overlay)


def _changing(cloud: Cloud, chance: Random) -> Overlay:
    """Return an overlay in which the usage of some providers is higher or lower."""
    overlay = Overlay()
    for id_, node in cloud.items():
        for name, one in node.inventories.items():
            if chance.random() < 0.3:
                overlay = overlay.taking({id_: {name: 1}})
            elif one.used and chance.random() < 0.2:
                overlay = overlay.releasing({id_: {name: one.used}})
    return overlay


def _used_anew(node: Node, chance: Random) -> Node:
    stocks = {
        name: replace(one, used=chance.randint(0, one.total - one.reserved)) for name, one in node.inventories.items()
    }
    return replace(node, inventories=stocks)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_plan_reads_the_stocks_of_no_tree_but_those_that_changed(kind: str, request: pytest.FixtureRequest) -> None:
    database = open_database(request.getfixturevalue(f"{kind}_url"))
    with database.writer.begin() as connection:
        for provider in add_providers(connection, HOSTS):
            run(connection, stocking((provider, VCPU), total=1000 - provider))
    options = options_with(CloudCache())
    wanted = PlannerRequest(groups=(PlannerGroup(group=RequestGroup(suffix="", resources={"VCPU": 1})),), limit=3)
    reads_of_all: list[int] = []
    for number in range(3):
        with statements(database) as sent:
            found = planned(database, wanted, options, AS_IT_IS)
        reads_of_all.append(len([one for one in sent if ROWS.search(one) and not LISTED.search(one)]))
        assert found == planned(database, wanted, options_with(None), AS_IT_IS)
        with database.writer.begin() as connection:
            allocate(connection, f"c{number}", {(40 + number, VCPU): 500})
    assert reads_of_all == [1, 0, 0]
    database.dispose()
