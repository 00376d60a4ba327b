"""Plans under an overlay in small random clouds, compared with plans in the cloud that it describes."""

from dataclasses import replace
from random import Random

import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile
from placement.domain.overlay import Overlay
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import RequestGroup
from placement.errors import Unavailable
from placement.services.planner.candidates import PlannerAnswer, planned_candidates
from placement.services.planner.changes import released
from placement.services.planner.questions import PlannerOptions
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import reads
from tests import rows_of_a_cloud
from tests.planner_clouds import LEVELS, LOCKS, make_names, random_cloud, random_request
from tests.small_clouds import Cloud, Inventory, Node, load

CLOUDS, REQUESTS = 12, 4
PACKED = RankingProfile(strategy=Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), compactness=1)
OPTIONS = PlannerOptions(RankingProfile(), LEVELS, LOCKS)


@pytest.fixture
def database(migrated: Database) -> Database:
    """A database of each of the three kinds, with the names of the clouds."""
    make_names(migrated)
    return migrated


@pytest.mark.any_database
def test_a_plan_under_an_overlay_is_the_plan_of_the_cloud_that_it_describes(
    database: Database, is_long: bool, request: pytest.FixtureRequest
) -> None:
    first = 1000 * request.config.getoption("--seed")
    for seed in range(first, first + CLOUDS * (40 if is_long else 1)):
        chance = Random(seed)
        cloud = random_cloud(chance)
        meant = {id_: changed(chance, node) for id_, node in cloud.items()}
        requests = [random_request(chance) for _ in range(REQUESTS)]
        load(database, cloud)
        options = replace(OPTIONS, profile=chance.choice((RankingProfile(), PACKED)))
        found = [answer(database, one, options, overlay(cloud, meant)) for one in requests]
        load(database, meant)
        assert found == [answer(database, one, options, Overlay()) for one in requests], seed


@pytest.mark.any_database
def test_trees_that_are_left_out_are_not_planned_in(database: Database) -> None:
    chance = Random(1)
    for _ in range(CLOUDS):
        cloud = random_cloud(chance)
        wanted = random_request(chance)
        load(database, cloud)
        whole = planned_candidates(database, wanted, OPTIONS).candidates
        roots = {one.proposal.root for one in whole}
        avoided = frozenset(chance.sample(sorted(roots), min(1, len(roots))))
        rest = planned_candidates(database, wanted, OPTIONS, overlay=Overlay(avoided=avoided)).candidates
        assert {one.proposal.root for one in rest} >= roots - avoided
        assert avoided.isdisjoint([one.proposal.root for one in rest])


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


def test_what_consumers_hold_is_released_together(database: Database) -> None:
    rows_of_a_cloud.fill(database)
    rows_of_a_cloud.fill(database, "other")
    uuids = [rows_of_a_cloud.uuid_of(f"{prefix}-consumer") for prefix in ("host", "other")]
    found = reads(released)(database, uuids)
    assert sorted(tuple(sorted(of.items())) for of in found.changes.values()) == [
        (("CUSTOM_HOST", -1), ("VCPU", -3)),
        (("CUSTOM_OTHER", -1), ("VCPU", -3)),
    ]


@pytest.mark.parametrize("level", ["numa", "pcie"])
def test_nothing_is_taken_inside_a_place_that_is_held(database: Database, level: str) -> None:
    """There are neither locks nor usage: only the overlay declares it."""
    switches = {2: Node(2, 1, 1, {}, frozenset([LEVELS["numa"]])), 3: Node(3, 2, 1, {}, frozenset([LEVELS["pcie"]]))}
    gpus = {id_: Node(id_, parent, 1, {"PGPU": Inventory(1)}) for id_, parent in ((4, 3), (5, 2), (6, 1))}
    load(database, {1: Node(1, None, 1), **switches, **gpus})
    group = PlannerGroup(group=RequestGroup(suffix="_A", resources={"PGPU": 1}))
    wanted = PlannerRequest(groups=(group,), per_tree=3)
    place, inside = {"numa": (2, {4, 5}), "pcie": (3, {4})}[level]
    found = planned_candidates(database, wanted, OPTIONS, overlay=Overlay(held=frozenset([place])))
    assert {id_ for one in found.candidates for id_ in one.proposal.amounts} == {4, 5, 6} - inside
