"""Scores and order where hosts have disks of their own, or not, and pools beside them: compared with a definition."""

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from flask import Flask

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api
from tests.clouds import SHARES, allocate, provider
from tests.stored_clouds import stored

LEAST, MOST = Preference("LeastAllocated"), Preference("MostAllocated")
PROFILES = {
    "least": RankingProfile("least", Profile(fit=Fit({"VCPU": LEAST, "DISK_GB": LEAST})), 0),
    "most": RankingProfile("most", Profile(fit=Fit({"VCPU": MOST, "DISK_GB": MOST})), 0),
    "both": RankingProfile(
        "both",
        Profile(
            fit=Fit({"VCPU": LEAST, "DISK_GB": replace(MOST, weight=3)}),
            sra=Sra({"PGPU": 1}, weight=5),
            proportional=Proportional({"PGPU": {"DISK_GB": 10}}, exempt="own"),
        ),
        3,
    ),
    "kept": RankingProfile(
        "kept",
        Profile(
            fit=Fit({"DISK_GB": LEAST, "PGPU": MOST}),
            sra=Sra({"PGPU": 2, "DISK_GB": 1}),
            proportional=Proportional({"PGPU": {"DISK_GB": 10}}, exempt="all", mode="filter"),
        ),
        1,
    ),
}

REQUESTS: list[dict[str, dict[str, int]]] = [
    {"": {"VCPU": 2, "DISK_GB": 20}},
    {"": {"VCPU": 1}, "_A": {"DISK_GB": 5}, "_B": {"DISK_GB": 12}},
    {"": {"VCPU": 1}, "_G": {"PGPU": 1}, "_D": {"DISK_GB": 10}},
    {"": {"DISK_GB": 15}},
]
LIMITS = (1, 5)


@dataclass
class Host:
    """What a host has of each class, and what of that is in use."""

    has: dict[str, int]
    used: dict[str, int]
    beside: tuple[str, ...]


def random_hosts(dice: random.Random) -> dict[str, Host]:
    """Hosts with disks of their own that are too small, just large enough or large, or with none; some have GPUs."""
    hosts = {}
    for number in range(6):
        has = {"VCPU": dice.choice((8, 16, 64))}
        has |= dice.choice(({}, {"DISK_GB": 10}, {"DISK_GB": 40}, {"DISK_GB": 500}))
        has |= dice.choice(({}, {}, {"PGPU": 4}))
        used = {name: dice.randint(1, amount // 2) for name, amount in has.items() if dice.random() < 0.5}
        hosts[f"h{number}"] = Host(has, used, dice.choice(((), ("A",), ("B",), ("A", "B"))))
    return hosts


def register(app: Flask, hosts: dict[str, Host]) -> dict[str, str]:
    """Store hosts and two pools; return the name of each provider by uuid."""
    pools = [provider(f"pool {name}", traits=[SHARES], aggregates=[name], DISK_GB=1000) for name in ("A", "B")]
    made = [provider(name, aggregates=host.beside, **host.has) for name, host in hosts.items()]
    built = stored(app, *pools, *made)
    for name, host in hosts.items():
        if host.used:
            allocate(Api(app).call, built.providers[name], host.used)
    return {uuid: name for name, uuid in built.providers.items()}


def by_definition(
    profile: RankingProfile, hosts: dict[str, Host], taken: dict[str, dict[str, int]]
) -> tuple[bool, Fraction]:
    """Whether the reserve stays, and the total of what is taken from whom, by the names of providers."""
    strategy = profile.strategy
    (host, own) = next(
        ((hosts[name], amounts) for name, amounts in taken.items() if name in hosts), (Host({}, {}, ()), {})
    )
    asked = {name for amounts in taken.values() for name in amounts}
    free = {name: amount - host.used.get(name, 0) for name, amount in host.has.items()}
    assert strategy.fit is not None
    fit, weights = Fraction(), Fraction()
    for name, preference in strategy.fit.resources.items():
        if name in asked:
            weights += preference.weight
        if own.get(name):
            left = Fraction(free[name] - own[name], host.has[name])
            fit += preference.weight * (left if preference.type == "LeastAllocated" else 1 - left)
    points, most = strategy.fit.weight * 100 * fit / (weights or 1), Fraction(strategy.fit.weight)
    if strategy.sra:
        scarce = strategy.sra.resources
        spared = sum(weight for name, weight in scarce.items() if name in own or name not in host.has)
        points += strategy.sra.weight * 100 * Fraction(spared, sum(scarce.values()))
        most += strategy.sra.weight
    points, most = points + profile.compactness * 100, most + profile.compactness
    keeps = True
    if strategy.proportional and "PGPU" in host.has:
        gpus, disk = own.get("PGPU", 0), own.get("DISK_GB", 0)
        is_exempt = gpus > 0 and (strategy.proportional.exempt == "all" or disk <= 10 * gpus)
        keeps = is_exempt or free.get("DISK_GB", 0) - disk >= 10 * (free["PGPU"] - gpus)
    return keeps, points / most


def query(request: dict[str, dict[str, int]]) -> str:
    parts = [f"resources{suffix}=" + ",".join(f"{n}:{a}" for n, a in of.items()) for suffix, of in request.items()]
    return "&".join([*parts, *(["group_policy=none"] if len(request) > 2 else [])])


class Compared:
    """One cloud under one profile, where every answer is held against the definition."""

    def __init__(self, api: Api, profile: RankingProfile, hosts: dict[str, Host], names: dict[str, str]) -> None:
        self.api, self.profile, self.hosts, self.names = api, profile, hosts, names
        self.charged_apart = 0

    def keys(self, candidates: list[dict[str, Any]], scores: list[dict[str, Any]]) -> list[tuple[bool, float]]:
        """Compare scores with the definition; return what sorts the candidates."""
        keys = []
        for candidate, score in zip(candidates, scores, strict=True):
            taken = {self.names[uuid]: of["resources"] for uuid, of in candidate["allocations"].items()}
            keeps, total = by_definition(self.profile, self.hosts, taken)
            assert score["total"] == pytest.approx(float(total)), taken
            assert (score.get("keeps_proportion") is not False) == keeps
            assert keeps or not self.profile.filters
            keys.append((not keeps, -round(float(total), 9)))
        return keys

    def tree(self, candidate: dict[str, Any]) -> str:
        """The host that a candidate takes from; none where pools alone serve."""
        return next((self.names[one] for one in candidate["allocations"] if self.names[one] in self.hosts), "")

    def plainly(self, request: dict[str, dict[str, int]]) -> None:
        def ask(limit: str = "") -> list[dict[str, Any]]:
            return self.api.get(f"/allocation_candidates?{query(request)}{limit}").json["allocation_requests"]

        found = ask()
        scores = self.api.post("/planner/v1/scores", {"allocation_requests": found}).json["scores"] if found else []
        keys = self.keys(found, scores)
        by_tree: dict[str, list[tuple[bool, float]]] = {}
        for candidate, key in zip(found, keys, strict=True):
            by_tree.setdefault(self.tree(candidate), []).append(key)
        firsts = [of_tree[0] for of_tree in by_tree.values()]
        for line in (firsts, *by_tree.values()):
            assert all(before <= after for before, after in pairwise(line))
        assert all(ask(f"&limit={limit}") == found[:limit] for limit in LIMITS)
        self.charged_apart += any(len(set(of_tree)) > 1 for of_tree in by_tree.values())

    def by_the_planner(self, request: dict[str, dict[str, int]]) -> None:
        groups = {suffix: {"resources": of} for suffix, of in request.items()}

        def ask(limit: int) -> dict[str, Any]:
            return self.api.post("/planner/v1/candidates", {"groups": groups, "per_tree": 10, "limit": limit}).json

        answer = ask(100)
        found = answer["allocation_requests"]
        keys = self.keys(found, answer["scores"])
        assert keys == sorted(keys)
        assert all(ask(limit)["allocation_requests"] == found[:limit] for limit in LIMITS)
        self.charged_apart += len({self.tree(one) for one in found}) < len(set(keys))


@pytest.mark.any_database
@pytest.mark.parametrize("seed", range(2))
def test_a_host_is_charged_for_what_it_gives_itself(app: Flask, seed: int) -> None:
    dice = random.Random(seed)
    hosts = random_hosts(dice)
    names = register(app, hosts)
    apart = 0
    for name, profile in PROFILES.items():
        planner = PlannerSettings(profiles=PROFILES, default_profile=name)
        api = Api(create_app(replace(app.extensions["placement"].settings, planner=planner)))
        compared = Compared(api, profile, hosts, names)
        for request in REQUESTS:
            compared.plainly(request)
            compared.by_the_planner(request)
        apart += compared.charged_apart
    assert apart > len(PROFILES)
