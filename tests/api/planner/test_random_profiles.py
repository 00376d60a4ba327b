"""Random profiles: candidates come in the order of their scores, and none that the profile filters out."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from flask import Flask

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api
from tests.planner_clouds import at_work, body_of, make_names, random_cloud, random_hosts, random_request
from tests.planner_hosts import CANDIDATES
from tests.small_clouds import load

CLOUDS, REQUESTS = 15, 4
CLASSES = ("PGPU", "VCPU", "SRIOV_NET_VF", "MEMORY_MB", "DISK_GB")


def random_profile(chance: Random) -> RankingProfile:
    """Return a profile of some of the policies, about some of the classes."""
    some = chance.sample(CLASSES, 3)
    pair = chance.sample(CLASSES, 2)
    kinds = ("MostAllocated", "LeastAllocated")
    policies: dict[str, Any] = {
        "fit": Fit({name: Preference(chance.choice(kinds), chance.choice((1, 2, 5))) for name in some}, weight=3),
        "sra": Sra(dict.fromkeys(some[:2], 1), weight=2, mode=chance.choice(("upstream", "unneeded"))),
        "proportional": Proportional(
            {pair[0]: {pair[1]: chance.choice((0.5, 1, 3))}},
            exempt=chance.choice(("own", "all")),
            mode=chance.choice(("last", "filter")),
        ),
    }
    chosen = chance.sample(sorted(policies), chance.randint(1, 3))
    return RankingProfile("random", Profile(**{name: policies[name] for name in chosen}), chance.choice((0, 1, 3)))


@pytest.mark.any_database
def test_candidates_come_in_the_order_of_their_scores(
    app: Flask, is_long: bool, request: pytest.FixtureRequest
) -> None:
    """Trees share with each other, and groups take all that there is, or one for each place; some hosts are in use."""
    server = app.extensions["placement"]
    make_names(server.database)
    first = 1000 * request.config.getoption("--seed")
    several = filtered = 0
    for seed in range(first, first + CLOUDS * (20 if is_long else 1)):
        chance = Random(seed)
        profile = random_profile(chance)
        hosts = random_hosts(chance, chance.randint(3, 8), pools=chance.choice((0, 0, 1, 2)))
        cloud = hosts if chance.random() < 0.7 else random_cloud(chance)
        load(server.database, at_work(chance, cloud) if chance.random() < 0.5 else cloud)
        planner = PlannerSettings(
            profiles={"random": profile}, default_profile="random", levels=server.settings.planner.levels
        )
        api = Api(create_app(replace(server.settings, planner=planner)))
        for _ in range(REQUESTS):
            body = body_of(replace(random_request(chance), limit=50, per_tree=1))
            answer = api.post(CANDIDATES, body)
            assert answer.status_code in (200, 503), answer.text  # 503 says that the search was cut off.
            if answer.status_code == 503:
                continue
            ranks = [(one.get("keeps_proportion") is False, -round(one["total"], 6)) for one in answer.json["scores"]]
            assert ranks == sorted(ranks), seed
            assert not (profile.filters and any(is_broken for is_broken, _total in ranks)), seed
            best = api.post(CANDIDATES, {**body, "limit": 1}).json["allocation_requests"]
            assert best == answer.json["allocation_requests"][:1], seed
            several += len(ranks) > 1
            filtered += profile.filters
    assert several > 2
    assert filtered
