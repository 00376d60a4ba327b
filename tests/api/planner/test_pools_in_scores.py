"""Scores and order where hosts may have local disks and pools as well, compared with a definition."""

import random
from collections import Counter
from collections.abc import Iterable
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
    {"_A": {"DISK_GB": 5}, "_B": {"DISK_GB": 12}},
]
LIMITS = (1, 5)


@dataclass
class Host:
    """A host's total and usage of each class."""

    has: dict[str, int]
    used: dict[str, int]
    beside: tuple[str, ...] = ()


def taken_as_one(hosts: Iterable[Host]) -> Host:
    has: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for host in hosts:
        has.update(host.has)
        used.update(host.used)
    return Host(has, used)


def random_pools(dice: random.Random) -> dict[str, Host]:
    """Return pools of all sizes, some fuller than others; one also shares GPUs."""
    pools = {}
    for name in ("A", "B", "C"):
        size = dice.choice((200, 1000, 2000))
        pools[f"pool {name}"] = Host({"DISK_GB": size}, {"DISK_GB": dice.choice((1, size // 2))}, (name,))
    pools["pool C"].has["PGPU"] = 8
    return pools


def random_hosts(dice: random.Random) -> dict[str, Host]:
    """Return hosts whose local disks are too small, just large enough, large, or missing; some have GPUs."""
    hosts = {}
    for number in range(6):
        has = {"VCPU": dice.choice((8, 16, 64))}
        has |= dice.choice(({}, {"DISK_GB": 10}, {"DISK_GB": 40}, {"DISK_GB": 500}))
        has |= dice.choice(({}, {}, {"PGPU": 4}))
        used = {name: dice.randint(1, amount // 2) for name, amount in has.items() if dice.random() < 0.5}
        hosts[f"h{number}"] = Host(has, used, dice.choice(((), ("A",), ("B", "C"), ("A", "B"))))
    return hosts


def register(app: Flask, hosts: dict[str, Host], pools: dict[str, Host]) -> dict[str, str]:
    """Store hosts and pools; return the name of each provider by uuid."""
    shared = [provider(name, traits=[SHARES], aggregates=pool.beside, **pool.has) for name, pool in pools.items()]
    made = [provider(name, aggregates=host.beside, **host.has) for name, host in hosts.items()]
    built = stored(app, *shared, *made)
    for name, host in {**pools, **hosts}.items():
        if host.used:
            allocate(Api(app).call, built.providers[name], host.used)
    return {uuid: name for name, uuid in built.providers.items()}


def by_definition(
    profile: RankingProfile, hosts: dict[str, Host], pools: dict[str, Host], taken: dict[str, dict[str, int]]
) -> tuple[bool, Fraction]:
    """Return whether the reserve is kept, and the total of a candidate, given by names of providers."""
    strategy = profile.strategy
    charged = hosts if hosts.keys() & taken.keys() else pools
    host = taken_as_one([charged[name] for name in taken if name in charged])
    own: Counter[str] = Counter()
    for name in charged.keys() & taken.keys():
        own.update(taken[name])
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
    return "&".join([*parts, *(["group_policy=none"] if len(request.keys() - {""}) > 1 else [])])


class Compared:
    """One cloud under one profile, in which every answer is compared with the definition."""

    def __init__(
        self, api: Api, profile: RankingProfile, cloud: tuple[dict[str, Host], dict[str, Host]], names: dict[str, str]
    ) -> None:
        self.api, self.profile, self.names = api, profile, names
        self.hosts, self.pools = cloud
        self.charged_apart = 0
        self.pools_apart = 0

    def keys(self, candidates: list[dict[str, Any]], scores: list[dict[str, Any]]) -> list[tuple[bool, float]]:
        """Compare scores with the definition; return the sort keys of the candidates."""
        keys = []
        for candidate, score in zip(candidates, scores, strict=True):
            taken = {self.names[uuid]: of["resources"] for uuid, of in candidate["allocations"].items()}
            keeps, total = by_definition(self.profile, self.hosts, self.pools, taken)
            assert score["total"] == pytest.approx(float(total)), taken
            assert (score.get("keeps_proportion") is not False) == keeps
            assert keeps or not self.profile.filters
            keys.append((not keeps, -round(float(total), 9)))
        return keys

    def tree(self, candidate: dict[str, Any]) -> str:
        """Return the host that a candidate takes from, or the pools if only they serve it."""
        names = sorted(self.names[one] for one in candidate["allocations"])
        return next((name for name in names if name in self.hosts), " and ".join(names))

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
        self.pools_apart += len({of[0] for name, of in by_tree.items() if name not in self.hosts}) > 1

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
    hosts, pools = random_hosts(dice), random_pools(dice)
    names = register(app, hosts, pools)
    apart, pools_apart = 0, 0
    for name, profile in PROFILES.items():
        planner = PlannerSettings(profiles=PROFILES, default_profile=name)
        api = Api(create_app(replace(app.extensions["placement"].settings, planner=planner)))
        compared = Compared(api, profile, (hosts, pools), names)
        for request in REQUESTS:
            compared.plainly(request)
            compared.by_the_planner(request)
        apart += compared.charged_apart
        pools_apart += compared.pools_apart
    assert apart > len(PROFILES)
    assert pools_apart >= len(PROFILES)
