"""What outlines of trees tell of a request is what composing in all detail finds."""

from random import Random

import pytest
from flask import Flask

from placement.allocators.budget import Budget
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.planner.planner_search import search_for
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.composers import PlannerOptions
from placement.services.planner.questions import question_for
from placement.store.connection.unit_of_work import Transaction, reads
from tests.planner_clouds import LEVELS, LOCKS, at_work, make_names, random_hosts, random_request
from tests.small_clouds import load

CLOUDS, REQUESTS = 4, 6
HOSTS, SAMPLE = 250, 25
OPTIONS = PlannerOptions(profile=RankingProfile("spread"), levels=LEVELS, locks=LOCKS)


@reads
def outlined(tx: Transaction, request: PlannerRequest) -> tuple[int, int]:
    """Compare all trees in outline with the same in detail; return how many there are, and how many of them lack."""
    question = question_for(tx, request, OPTIONS)
    trees = question.cloud.reader.all_trees()
    composer = question.prepared.composer
    lacking = 0
    for tree, outline, details in zip(trees, question.outlines.of(trees), question.details.of(trees), strict=True):
        serves = composer.serves(tree, details, Budget(1_000_000))
        assert serves == composer.serves(tree, outline, Budget(1_000_000))
        assert serves == any(search_for(question).proposals(only=tree.root))
        lacking += not serves
    return len(trees), lacking


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
