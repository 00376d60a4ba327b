"""Candidates come in the order of their scores: GET /allocation_candidates and POST /planner/v1/scores agree."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from flask import Flask
from placement_scores import BREAKS_PROPORTION, SCORES_PATH, scores_body, weights_of

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api
from tests.clouds import SHARES, Provider, allocate, provider
from tests.stored_clouds import stored

KEEPING = Proportional({"PGPU": {"VCPU": 3}}, exempt="own")
PROFILES = {
    "spread": RankingProfile("spread"),
    "pack": RankingProfile(
        "pack", Profile(fit=Fit({"PGPU": Preference("MostAllocated"), "VCPU": Preference("MostAllocated")})), 3
    ),
    "all": RankingProfile(
        "all",
        Profile(
            fit=Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated")}, weight=7),
            sra=Sra({"PGPU": 2, "SRIOV_NET_VF": 1}, weight=5),
            proportional=Proportional({"PGPU": {"VCPU": 2}}, exempt="own"),
        ),
        4,
    ),
    "compactness alone": RankingProfile("compactness alone", Profile(), 1),
    "keeping": RankingProfile("keeping", Profile(fit=Fit(), proportional=KEEPING)),
    "keeping alone": RankingProfile("keeping alone", Profile(proportional=KEEPING), 1),
}

QUERIES = [
    "resources=VCPU:2",
    "resources=VCPU:3,DISK_GB:10",
    "resources=VCPU:1&resources_G=PGPU:1",
    "resources_A=PGPU:1&resources_B=PGPU:1&resources_C=VCPU:2&group_policy=isolate",
    "resources=VCPU:1&resources_N=SRIOV_NET_VF:1&resources_G=PGPU:2&group_policy=none",
]


def host(dice: random.Random, number: int) -> Provider:
    """Return a server with NUMA nodes and switches, with some of them, or with neither."""
    nodes = []
    for node in range(dice.randint(0, 2)):
        name = f"h{number}n{node}"
        switches = [
            provider(f"{name}s{switch}", traits=["CUSTOM_HW_PCIE_SWITCH"], PGPU=dice.randint(1, 3))
            for switch in range(dice.randint(0, 2))
        ]
        if dice.random() < 0.5:
            switches.append(provider(f"{name}vf", SRIOV_NET_VF=dice.randint(1, 4)))
        nodes.append(provider(name, *switches, traits=["HW_NUMA_ROOT"], VCPU=dice.randint(2, 8)))
    disk = {"DISK_GB": dice.choice((5, 40))} if dice.random() < 0.5 else {}
    return provider(f"h{number}", *nodes, VCPU=dice.randint(4, 16), aggregates=["A"], **disk)


@pytest.mark.parametrize("seed", range(3))
def test_candidates_come_by_their_totals(app: Flask, seed: int) -> None:
    """Trees are ordered by their best candidates, those of one tree by their own totals; broken reserves come last."""
    dice = random.Random(seed)
    plain = Api(app)

    hosts = [host(dice, number) for number in range(7)]
    pool = provider("pool", traits=[SHARES], aggregates=["A"], DISK_GB=1000)
    built = stored(app, *hosts, pool)
    for number in range(7):
        allocate(plain.call, built.providers[f"h{number}"], {"VCPU": dice.randint(1, 4)})
    compared = 0
    for name in PROFILES:
        planner = PlannerSettings(profiles=PROFILES, default_profile=name)
        api = Api(create_app(replace(app.extensions["placement"].settings, planner=planner)))
        for query in QUERIES:
            answer = api.get(f"/allocation_candidates?{query}").json
            candidates = answer["allocation_requests"]
            scored = api.post(SCORES_PATH, scores_body(candidates)).json
            assert scored == api.post(SCORES_PATH, {"allocation_requests": candidates}).json
            keys = [(score["keeps_proportion"] is False, -score["total"]) for score in scored["scores"]]
            weights = weights_of(scored, number=len(candidates))
            assert weights == [-negated + BREAKS_PROPORTION * breaks for breaks, negated in keys]
            by_tree: dict[str, list[tuple[bool, float]]] = {}
            for candidate, key in zip(candidates, keys, strict=True):
                by_tree.setdefault(tree_of(answer, candidate, built.providers["pool"]), []).append(key)
            firsts = [of_tree[0] for of_tree in by_tree.values()]
            for sequence in (firsts, *by_tree.values()):
                assert all(before[0] < after[0] or before[1] <= after[1] + 1e-9 for before, after in pairwise(sequence))
                assert all(before[0] <= after[0] for before, after in pairwise(sequence))
            compared += len(set(firsts)) > 1
            assert all(score["has_room"] for score in scored["scores"])
    assert compared > 8


def tree_of(answer: dict, candidate: dict, pool: str) -> str:
    """Return the root of a candidate's tree, apart from the pool."""
    provider_uuid = next(uuid for uuid in candidate["allocations"] if uuid != pool)
    return answer["provider_summaries"][provider_uuid]["root_provider_uuid"]
