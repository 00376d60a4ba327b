"""Candidates and claims in small random clouds, compared with brute force; gangs, with one claim after the other."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from placement.domain.planner_request import Affinity, Exclusive, PlannerGroup, PlannerRequest, Within
from placement.domain.search_plan import RequestGroup
from tests.api.conftest import Api
from tests.claims import ask, new_uuid, proposed
from tests.definition_of_plans import Plan, PlanDefinition, TooMany
from tests.planner_clouds import LEVELS, LOCK, LOCKS, body_of, make_names, random_cloud, random_hosts, random_request
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer
from tests.small_clouds import Cloud, load

CLOUDS, REQUESTS = 25, 4
GANGS, MEMBERS = 30, 4
PROFILES: tuple[dict[str, Any], ...] = (
    {},
    {"profile": {"fit": {"resources": {name: {"type": "MostAllocated"} for name in ("PGPU", "VCPU")}}}},
    {"profile": {"sra": {"resources": {"PGPU": 2, "SRIOV_NET_VF": 1}}, "compactness": {"weight": 4}}},
)


def test_what_is_found_is_what_trying_everything_finds(api: Api, seeds: Callable[..., range]) -> None:
    make_names(api.database)
    for seed in seeds(CLOUDS, times=40):
        chance = Random(seed)
        cloud = random_cloud(chance) if chance.random() < 0.8 else random_hosts(chance, 3, models=1)
        load(api.database, cloud)
        for _ in range(REQUESTS):
            one_request(api, chance, cloud)


def one_request(api: Api, chance: Random, cloud: Cloud) -> None:
    """Get candidates, allocate one of them, and claim."""
    wanted = random_request(chance)
    definition = PlanDefinition(wanted, cloud, levels=LEVELS, locks=LOCKS)
    try:
        best = [definition.best(node.id) for node in cloud.values() if node.parent is None]
    except TooMany:
        return
    body = body_of(wanted)
    answer = ask(api, "POST", CANDIDATES, body=body)
    assert answer["complete"]
    found = [seen(candidate, cloud) for candidate in answer["allocation_requests"]]
    assert len(found) == len(set(found)), body
    assert set(found) <= {plan for of_tree in best for plan in of_tree}, body
    assert all(not of_tree or not of_tree.keys().isdisjoint(found) for of_tree in best), body
    if found and chance.random() < 0.3:
        put(api, chance.choice(answer["allocation_requests"]))
    if chance.random() < 0.3:
        del body["limit"]
        claim(api, body, found)


def seen(candidate: dict[str, Any], cloud: Cloud) -> Plan:
    """Return a candidate of an answer in the form of the definition."""
    ids = {node.uuid: node.id for node in cloud.values()}
    amounts = [
        (ids[uuid], name, amount)
        for uuid, taken in candidate["allocations"].items()
        for name, amount in taken["resources"].items()
    ]
    mappings = [(suffix, ids[uuid]) for suffix, uuids in candidate["mappings"].items() for uuid in uuids]
    return frozenset(amounts), frozenset(mappings)


def put(api: Api, candidate: dict[str, Any]) -> None:
    path = f"/allocations/{new_uuid()}"
    ask(api, "PUT", path, body=proposed(candidate))
    ask(api, "DELETE", path)


def claim(api: Api, body: dict[str, Any], found: list[Plan]) -> None:
    """Claim, which must succeed exactly if there were candidates."""
    holder = consumer()
    answer = api.post(CLAIMS, {**body, "consumer": holder})
    assert answer.status_code == (201 if found else 409), body
    if found:
        ask(api, "DELETE", f"/allocations/{holder['uuid']}")


def modest_request(chance: Random) -> PlannerRequest:
    """Return a request that several members can be placed for: a device, perhaps with something else."""
    device = PlannerGroup(group=RequestGroup(suffix="_A", resources={"PGPU": 1}), count=chance.choice((1, 1, 2)))
    beside = PlannerGroup(group=RequestGroup(suffix="_B", resources={"SRIOV_NET_VF": 1}))
    core = PlannerGroup(group=RequestGroup(suffix="", resources={"VCPU": 1}))
    further = chance.choice(([], [], [beside], [core], [beside, core]))
    level, mode = chance.choice(("numa", "pcie")), chance.random() < 0.3
    rules: dict[str, Any] = {"within": (Within(groups=("_A",), level=level, required=mode),)}
    if beside in further and chance.random() < 0.5:
        rules = {"affinity": (Affinity(primary="_A", secondaries=("_B",), level=level, required=mode),)}
    elif chance.random() < 0.3:
        rules = {"exclusive": (Exclusive(groups=("_A",), level="pcie"),)}
    return PlannerRequest(groups=(device, *further), isolate=chance.random() < 0.5, **rules)


@pytest.mark.any_database
def test_a_gang_gets_what_single_claims_would_get_one_after_the_other(api: Api, seeds: Callable[..., range]) -> None:
    """Candidates are requested and allocated, so earlier members' allocations need not be remembered.

    Nor are places without a lock that members hold exclusively: only members of a gang keep out of each other's.
    """
    compared = 0
    make_names(api.database)
    # In the first cloud, a member comes back to a tree that another one has taken from.
    for seed in (617986003, *seeds(GANGS)):
        chance = Random(seed)
        load(api.database, cloud := random_hosts(chance, chance.randint(4, 8), models=chance.choice((None, None, 2))))
        wanted = {**body_of(replace(modest_request(chance), limit=1)), **chance.choice(PROFILES)}
        gang = api.post(CLAIMS, {**wanted, "consumer": consumer(), "members": MEMBERS, "dry_run": True})
        singles = [one for _ in range(MEMBERS) if (one := put_the_best(api, wanted))]
        if len(singles) == MEMBERS and not (wanted.get("exclusive") and has_unlocked_places(cloud)):
            compared += 1
            assert [(one["allocations"], one["mappings"]) for one in gang.json["members"]] == singles, seed
    assert compared > GANGS // 4


def has_unlocked_places(cloud: Cloud) -> bool:
    return any(LEVELS["pcie"] in node.traits and LOCK not in node.inventories for node in cloud.values())


def put_the_best(api: Api, wanted: dict[str, Any]) -> tuple[Any, Any] | None:
    """Return what the best candidate takes; None if there is none, or if its sum violates a unit rule."""
    for best in ask(api, "POST", CANDIDATES, body=wanted)["allocation_requests"]:
        if api.put(f"/allocations/{new_uuid()}", proposed(best)).status_code == 204:
            return best["allocations"], best["mappings"]
    return None
