"""What outlines of trees tell of a request is what composing in all detail finds."""

from dataclasses import replace
from random import Random

import pytest
from flask import Flask

from placement.allocators.budget import Budget
from placement.allocators.ranking_profile import RankingProfile
from placement.domain.candidate_request import RequestGroup
from placement.domain.planner_request import PlannerGroup, PlannerRequest, Within
from placement.services.planner.composers import PlannerOptions
from placement.services.planner.ground import ground_for
from placement.services.planner.planning import planning_for
from placement.store.connection.unit_of_work import Transaction, reads
from tests.planner_clouds import LEVELS, LOCKS, at_work, make_names, random_hosts, random_request
from tests.small_clouds import load

CLOUDS, REQUESTS = 4, 6
HOSTS, SAMPLE = 250, 25
OPTIONS = PlannerOptions(profile=RankingProfile("spread"), levels=LEVELS, locks=LOCKS)


@reads
def outlined(tx: Transaction, request: PlannerRequest) -> tuple[int, int]:
    """Compare all trees in outline with the same in detail; return how many there are, and how many of them lack."""
    ground = ground_for(tx, request, OPTIONS)
    trees = ground.reader.all_trees().trees
    composer, kind = ground.prepared.composer, ground.prepared.kind
    assert ground.serving_kinds is not None
    # Kinds are judged only where there are several trees of each.
    lacking = ground.serving_kinds.lacking_in([*trees, *trees])
    for tree, outline, details in zip(trees, ground.outlines.of(trees), ground.details.of(trees), strict=True):
        assert kind(tree, outline) == kind(tree, details)
        assert composer.least_places(tree, outline) == composer.least_places(tree, details)
        serves = composer.serves(tree, details, Budget(1_000_000))
        assert serves == composer.serves(tree, outline, Budget(1_000_000)) == (tree.root not in lacking)
        assert serves == any(planning_for(ground).proposals(only=tree.root))
    return len(trees), len(lacking)


@pytest.mark.any_database
def test_outlines_tell_what_details_do(app: Flask, is_long: bool, request: pytest.FixtureRequest) -> None:
    database, first = app.extensions["placement"].database, 1000 * request.config.getoption("--seed")
    make_names(database)
    found, lacked = 0, 0
    for seed in range(first, first + CLOUDS * (20 if is_long else 1)):
        chance = Random(seed)
        load(database, at_work(chance, random_hosts(chance, 6, pools=chance.choice((0, 0, 1, 2)))))
        for _ in range(REQUESTS):
            number, lacking = outlined(database, random_request(chance))
            found, lacked = found + number, lacked + lacking
    assert 0 < lacked < found


@reads
def searched(tx: Transaction, request: PlannerRequest) -> tuple[bool, int, int]:
    """Return whether any tree serves, how many may by their options, and how many were read in detail to find out.

    Some of the trees are compared with what they have alone.
    """
    ground = ground_for(tx, request, OPTIONS)
    serving = {proposal.root for proposal in planning_for(ground).proposals()}
    alone = planning_for(ground_for(tx, request, OPTIONS))
    roots = [*alone.roots()]
    for root in roots[:: HOSTS // SAMPLE]:
        assert any(alone.proposals(only=root)) == (root in serving)
    return bool(serving), len(roots), len({member.root_id for member in ground.details.members.values()})


def test_hosts_are_not_read_in_detail_in_vain(app: Flask, request: pytest.FixtureRequest) -> None:
    """What serves is found all the same, in a cloud of a few models that each have something else in use."""
    database, first = app.extensions["placement"].database, 1000 * request.config.getoption("--seed")
    make_names(database)
    chance = Random(first)
    hopeful = 0
    while hopeful < HOSTS // 2:  # Judging does not pay for the few hosts that have CPUs left by some chances.
        load(database, at_work(chance, random_hosts(chance, HOSTS, models=12)))
        is_served, hopeful, read = searched(database, cpu_in_a("pcie"))
    assert not is_served
    assert read < hopeful // 2
    assert searched(database, cpu_in_a("numa"))[0]
    for _ in range(6):
        searched(database, replace(random_request(chance), limit=1))


def cpu_in_a(level: str) -> PlannerRequest:
    """Return a request for a CPU in a place of a level; hosts have theirs in NUMA nodes, around the switches."""
    group = PlannerGroup(group=RequestGroup(suffix="_A", resources={"VCPU": 1}))
    return PlannerRequest(groups=(group,), within=(Within(groups=("_A",), level=level, required=True),), limit=1)


@reads
def best(tx: Transaction, request: PlannerRequest) -> tuple[int, int]:
    """Return how many places the best proposal touches, and how many trees were read in detail to find it."""
    ground = ground_for(tx, request, OPTIONS)
    first = next(planning_for(ground, wanted=1).proposals())
    return max(first.counts), len({member.root_id for member in ground.details.members.values()})


def test_hosts_of_equal_promise_are_bounded_by_their_outlines(app: Flask) -> None:
    """The score of each host seems to be the best one until its places are counted."""
    database, chance = app.extensions["placement"].database, Random(3)
    make_names(database)
    load(database, random_hosts(chance, HOSTS, models=1))
    places, read = best(database, devices(3))
    assert places > 1
    assert read < HOSTS // 2


def devices(number: int) -> PlannerRequest:
    """Return a request for devices, each for a group of its own."""
    groups = [PlannerGroup(group=RequestGroup(suffix=f"_{one}", resources={"PGPU": 1})) for one in range(number)]
    return PlannerRequest(groups=tuple(groups), limit=1)
