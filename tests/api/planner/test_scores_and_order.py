"""Candidates come in the order of their scores, whatever the profile, the cloud, and the way they are asked for.

Scores are compared with a definition where hosts may have local disks and pools as well.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from flask import Flask
from placement_scores import BREAKS_PROPORTION, SCORES_PATH, scores_body, weights_of

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, Sra
from placement.settings import PlannerSettings
from tests.api.conftest import Api, planner_of, with_settings
from tests.clouds import SHARES, allocate, provider
from tests.planner_clouds import at_work, body_of, make_names, random_cloud, random_hosts, random_request
from tests.planner_hosts import CANDIDATES
from tests.small_clouds import load, shares_of
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

PROFILES = planner_of("""
default_profile: least
profiles:
  least: {fit: {resources: {VCPU: &least {type: LeastAllocated}, DISK_GB: *least}}}
  most: {fit: {resources: {VCPU: &most {type: MostAllocated}, DISK_GB: *most}}}
  both:
    fit: {resources: {VCPU: *least, DISK_GB: {type: MostAllocated, weight: 3}}}
    sra: {resources: {PGPU: 1}, weight: 5}
    proportional: {reserve: {PGPU: {DISK_GB: 10}}, exempt: own}
    compactness: {weight: 3}
  kept:
    fit: {resources: {DISK_GB: *least, PGPU: *most}}
    sra: {resources: {PGPU: 2, DISK_GB: 1}}
    proportional: {reserve: {PGPU: {DISK_GB: 10}}, exempt: all, mode: filter}
    compactness: {weight: 1}
""").profiles
Request = dict[str, dict[str, int]]
REQUESTS: list[Request] = [
    {"": {"VCPU": 2, "DISK_GB": 20}},
    {"": {"VCPU": 1}, "_A": {"DISK_GB": 5}, "_B": {"DISK_GB": 12}},
    {"": {"VCPU": 1}, "_G": {"PGPU": 1}, "_D": {"DISK_GB": 10}},
    {"": {"DISK_GB": 15}},
    {"_A": {"DISK_GB": 5}, "_B": {"DISK_GB": 12}},
]
NESTED: list[Request] = [
    {"": {"VCPU": 1}},
    {"": {"VCPU": 1}, "_G": {"PGPU": 1}},
    {"_A": {"PGPU": 1}, "_B": {"PGPU": 1}, "": {"MEMORY_MB": 1}},
    {"": {"VCPU": 1}, "_N": {"SRIOV_NET_VF": 1}, "_G": {"PGPU": 1}},
]
LIMITS = (1, 5)
Key = tuple[bool, float]
"""Whether a candidate breaks the proportion, and its negated total."""


def query(request: Request) -> str:
    parts = [f"resources{suffix}=" + ",".join(f"{n}:{a}" for n, a in of.items()) for suffix, of in request.items()]
    return "/allocation_candidates?" + "&".join([*parts, *(["group_policy=none"] if len(request) > 1 else [])])


def grouped(keys: Iterable[tuple[str, Key]]) -> dict[str, list[Key]]:
    by_tree: dict[str, list[Key]] = {}
    for tree, key in keys:
        by_tree.setdefault(tree, []).append(key)
    return by_tree


def assert_in_order(by_tree: Collection[list[Key]]) -> None:
    """Trees come by their best candidates, those of one tree by their own scores; broken reserves last."""
    for line in ([keys[0] for keys in by_tree], *by_tree):
        rounded = [(breaks, round(negated, 6)) for breaks, negated in line]
        assert all(before <= after for before, after in pairwise(rounded)), line


@dataclass
class Host:
    """A host's total and usage of each class."""

    has: dict[str, int]
    used: dict[str, int]
    beside: tuple[str, ...] = ()


def random_pools(dice: Random) -> dict[str, Host]:
    """Return pools of all sizes, some fuller than others; one also shares GPUs."""
    pools = {}
    for name in ("A", "B", "C"):
        size = dice.choice((200, 1000, 2000))
        pools[f"pool {name}"] = Host({"DISK_GB": size}, {"DISK_GB": dice.choice((1, size // 2))}, (name,))
    pools["pool C"].has["PGPU"] = 8
    return pools


def disk_hosts(dice: Random) -> dict[str, Host]:
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
            allocate(Api(app), built.providers[name], host.used)
    return {uuid: name for name, uuid in built.providers.items()}


@dataclass
class Definition:
    """Scores of candidates under a profile by definition; a host is charged for what it gives itself."""

    profile: RankingProfile
    hosts: dict[str, Host]
    pools: dict[str, Host]
    names: dict[str, str]

    def score(self, taken: Request) -> tuple[bool, Fraction]:
        """Return whether the reserve is kept, and the total of a candidate, given by names of providers."""
        strategy = self.profile.strategy
        charged = self.hosts if self.hosts.keys() & taken.keys() else self.pools
        has, used, own = Counter[str](), Counter[str](), Counter[str]()
        for name in charged.keys() & taken.keys():
            has.update(charged[name].has)
            used.update(charged[name].used)
            own.update(taken[name])
        asked = {name for amounts in taken.values() for name in amounts}
        free = {name: amount - used[name] for name, amount in has.items()}
        assert strategy.fit is not None
        fit, weights = Fraction(), Fraction()
        for name, preference in strategy.fit.resources.items():
            if name in asked:
                weights += preference.weight
            if own[name]:
                left = Fraction(free[name] - own[name], has[name])
                fit += preference.weight * (left if preference.type == "LeastAllocated" else 1 - left)
        points, most = strategy.fit.weight * 100 * fit / (weights or 1), Fraction(strategy.fit.weight)
        if strategy.sra:
            scarce = strategy.sra.resources
            spared = sum(weight for name, weight in scarce.items() if own[name] or name not in has)
            points += strategy.sra.weight * 100 * Fraction(spared, sum(scarce.values()))
            most += strategy.sra.weight
        points, most = points + self.profile.compactness * 100, most + self.profile.compactness
        keeps = True
        if strategy.proportional and "PGPU" in has:
            gpus, disk = own["PGPU"], own["DISK_GB"]
            is_exempt = gpus > 0 and (strategy.proportional.exempt == "all" or disk <= 10 * gpus)
            keeps = is_exempt or free.get("DISK_GB", 0) - disk >= 10 * (free["PGPU"] - gpus)
        return keeps, points / most

    def keys(self, candidates: list[dict[str, Any]], scores: list[dict[str, Any]]) -> list[tuple[str, Key]]:
        """Compare scores with the definition; return the host of each candidate, or its pools, and its sort key."""
        keys = []
        for candidate, score in zip(candidates, scores, strict=True):
            taken = {self.names[uuid]: of["resources"] for uuid, of in candidate["allocations"].items()}
            keeps, total = self.score(taken)
            assert score["total"] == pytest.approx(float(total)), taken
            assert (score.get("keeps_proportion") is not False) == keeps
            assert keeps or not self.profile.filters
            tree = next((name for name in sorted(taken) if name in self.hosts), " and ".join(sorted(taken)))
            keys.append((tree, (not keeps, -float(total))))
        return keys


@pytest.mark.parametrize("seed", range(2))
def test_a_host_is_charged_for_what_it_gives_itself(app: Flask, seed: int) -> None:
    dice = Random(seed)
    hosts, pools = disk_hosts(dice), random_pools(dice)
    names = register(app, hosts, pools)
    differing = pools_apart = 0
    for name, profile in PROFILES.items():
        api = with_settings(app, planner=PlannerSettings(profiles=PROFILES, default_profile=name))
        definition = Definition(profile, hosts, pools, names)
        for request in REQUESTS:
            plain = [
                api.get(query(request) + limit).json["allocation_requests"] for limit in ("", "&limit=1", "&limit=5")
            ]
            scored = api.post(SCORES_PATH, {"allocation_requests": plain[0]}).json["scores"] if plain[0] else []
            by_tree = grouped(definition.keys(plain[0], scored))
            assert_in_order(by_tree.values())
            assert plain[1:] == [plain[0][:limit] for limit in LIMITS]
            body = {"groups": {suffix: {"resources": of} for suffix, of in request.items()}, "per_tree": 10}
            every, *few = [api.post(CANDIDATES, {**body, "limit": limit}).json for limit in (100, *LIMITS)]
            planned = definition.keys(every["allocation_requests"], every["scores"])
            assert_in_order([[key] for _tree, key in planned])
            assert [one["allocation_requests"] for one in few] == [every["allocation_requests"][:n] for n in LIMITS]
            differing += any(len(set(keys)) > 1 for keys in [*by_tree.values(), *grouped(planned).values()])
            pools_apart += len({keys[0] for tree, keys in by_tree.items() if tree not in hosts}) > 1
    assert differing > len(PROFILES)
    assert pools_apart >= len(PROFILES)


CLOUDS, MOST_CLOUDS, ASKED = 15, 60, 4
CLASSES = ("PGPU", "VCPU", "SRIOV_NET_VF", "MEMORY_MB", "DISK_GB")


def random_profile(chance: Random) -> RankingProfile:
    """Return a profile of some of the policies, about some of the classes, or of compactness alone."""
    chosen, pair = chance.sample(CLASSES, 3), chance.sample(CLASSES, 2)
    kinds = ("MostAllocated", "LeastAllocated")
    policies: dict[str, Any] = {
        "fit": Fit({name: Preference(chance.choice(kinds), chance.choice((1, 2, 5))) for name in chosen}, weight=3),
        "sra": Sra(dict.fromkeys(chosen[:2], 1), weight=2, mode=chance.choice(("upstream", "unneeded"))),
        "proportional": Proportional(
            {pair[0]: {pair[1]: chance.choice((0.5, 1, 3))}},
            exempt=chance.choice(("own", "all")),
            mode=chance.choice(("last", "filter")),
        ),
    }
    names = chance.sample(sorted(policies), chance.choice((0, 1, 1, 2, 2, 3, 3)))
    return RankingProfile("random", Profile(**{name: policies[name] for name in names}), chance.choice((0, 1, 3)))


def test_candidates_come_in_the_order_of_their_scores(
    app: Flask, seeds: Callable[..., range], *, is_long: bool
) -> None:
    """Trees share with each other, and groups take all that there is, or one for each place; some hosts are in use."""
    server = app.extensions["placement"]
    make_names(server.database)
    several = filtered = plain = 0
    drawn = seeds(MOST_CLOUDS, times=5)
    for number, seed in enumerate(drawn):
        if number >= (len(drawn) if is_long else CLOUDS) and several > 2 and filtered and plain:
            break  # Some seeds hardly draw anything to put in order.
        chance = Random(seed)
        profile = random_profile(chance)
        hosts = random_hosts(chance, chance.randint(3, 8), pools=chance.choice((0, 0, 1, 2)))
        cloud = hosts if chance.random() < 0.7 else random_cloud(chance)
        load(server.database, at_work(chance, cloud) if chance.random() < 0.5 else cloud)
        levels = server.settings.planner.levels
        planner = PlannerSettings(profiles={"random": profile}, default_profile="random", levels=levels)
        api = with_settings(app, planner=planner)
        if not shares_of(cloud):
            plain += sum([check_plain(api, wanted) for wanted in NESTED])
        for _ in range(ASKED):
            body = body_of(replace(random_request(chance), limit=50, per_tree=1))
            answer = api.post(CANDIDATES, body)
            assert answer.status_code in (200, 503), answer.text  # 503 says that the search was cut off.
            if answer.status_code == 503:
                continue
            ranks = [(one.get("keeps_proportion") is False, -one["total"]) for one in answer.json["scores"]]
            assert_in_order([[rank] for rank in ranks])
            assert not (profile.filters and any(breaks for breaks, _total in ranks)), seed
            best = api.post(CANDIDATES, {**body, "limit": 1}).json["allocation_requests"]
            assert best == answer.json["allocation_requests"][:1], seed
            several += len(ranks) > 1
            filtered += profile.filters
    assert several > 2
    assert filtered
    assert plain


def check_plain(api: Api, wanted: Request) -> bool:
    """Compare the order of plain candidates with their scores, in the form that nova's weigher uses, too."""
    answer = api.get(query(wanted)).json
    candidates = answer["allocation_requests"]
    if not candidates:
        return False
    scored = api.post(SCORES_PATH, scores_body(candidates)).json
    assert scored == api.post(SCORES_PATH, {"allocation_requests": candidates}).json
    keys = [(score["keeps_proportion"] is False, -score["total"]) for score in scored["scores"]]
    weights = weights_of(scored, number=len(candidates))
    assert weights == [-negated + BREAKS_PROPORTION * breaks for breaks, negated in keys]
    assert all(score["has_room"] for score in scored["scores"])
    used = [answer["provider_summaries"][next(iter(candidate["allocations"]))] for candidate in candidates]
    by_tree = grouped(zip([summary["root_provider_uuid"] for summary in used], keys, strict=True))
    assert_in_order(by_tree.values())
    return len({of_tree[0] for of_tree in by_tree.values()}) > 1
