"""Explanations of rules over several providers in planner requests, compared with brute force."""

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from flask import Flask

from placement.app import create_app
from placement.candidates.explain.rules import rules_of, with_rules
from placement.domain.planner_request import PlannerRequest
from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.claims import ask
from tests.definition_of_plans import PlanDefinition, TooMany
from tests.planner_clouds import LEVELS, LOCKS, body_of, make_names, random_cloud, random_request
from tests.planner_hosts import CANDIDATES
from tests.small_clouds import Cloud, Inventory, Node, load

CLOUDS, REQUESTS = 12, 4
NUMA, SWITCH = frozenset({LEVELS["numa"]}), frozenset({LEVELS["pcie"]})
GPU = {"resources": {"PGPU": 1}}
NIC = {"resources": {"SRIOV_NET_VF": 1}}


@pytest.fixture
def database(app: Flask) -> Database:
    """The application's database, with the traits and classes of random clouds."""
    found: Database = app.extensions["placement"].database
    make_names(found)
    return found


def hosts(number: int, *, gpus: int) -> Cloud:
    """Return hosts of two NUMA nodes with this many GPUs below a switch each; the first one has a NIC as well."""
    cloud: Cloud = {}

    def add(parent: int | None, traits: frozenset[str] = frozenset(), **stock: int) -> int:
        id_ = len(cloud) + 1
        root = id_ if parent is None else cloud[parent].root
        inventories = {name: Inventory(total) for name, total in stock.items()}
        cloud[id_] = Node(id_, parent, root, inventories, traits, frozenset())
        return id_

    for _ in range(number):
        root = add(None)
        for place in range(2):
            numa = add(root, NUMA)
            switch = add(numa, SWITCH)
            for _ in range(gpus):
                add(switch, PGPU=1)
            if not place:
                add(switch, SRIOV_NET_VF=8)
    return cloud


def explained(api: Api, body: dict[str, Any]) -> Any:
    return ask(api, "POST", CANDIDATES, body={**body, "explain": True})["explanation"]


def test_more_than_any_tree_has(database: Database, api: Api) -> None:
    load(database, hosts(3, gpus=4))
    found = explained(api, {"groups": {"_GPU": {**GPU, "count": 17}}})
    assert found["trees_with_candidates"] == 0
    assert found["cause"] == {
        "condition": "count",
        "groups": ["_GPU"],
        "value": "17",
        "message": "No tree is left after this condition: 17 different providers (group _GPU); of the 17 asked for by "
        "group _GPU at most 8 fit.",
        "shortfall": {"group": "_GPU", "asked": 17, "most": 8},
    }
    (near_miss,) = found["near_misses"]
    assert (near_miss["condition"], near_miss["trees"], near_miss["complete"]) == ("count", 3, True)


def test_more_than_one_numa_node_has(database: Database, api: Api) -> None:
    load(database, hosts(2, gpus=4))
    body = {"groups": {"_GPU": {**GPU, "count": 5}}, "within": [{"groups": ["_GPU"], "level": LEVELS["numa"]}]}
    found = explained(api, body)
    assert (found["cause"]["condition"], found["cause"]["shortfall"]) == (
        "within",
        {"group": "_GPU", "asked": 5, "most": 4},
    )
    assert [(one["condition"], one["trees"], one["shortfall"]["most"]) for one in found["near_misses"]] == [
        ("count", 2, 4),
        ("within", 2, 4),
    ]


def test_one_of_all_is_asked_for_beside_all_of_another(database: Database, api: Api) -> None:
    """All NICs must not become all GPUs where one GPU suffices: there are four GPUs and one NIC."""
    load(database, hosts(1, gpus=2))
    body = {
        "groups": {"_GPU": {**GPU, "count": "all"}, "_NIC": {**NIC, "count": "all"}},
        "within": [{"groups": ["_GPU"], "level": LEVELS["numa"]}],
    }
    found = explained(api, body)
    assert found["cause"]["condition"] == "within"
    assert [(one["condition"], one["groups"], one["trees"]) for one in found["near_misses"]] == [
        ("count", ["_GPU"], 1),
        ("within", ["_GPU"], 1),
    ]


@pytest.mark.parametrize(("count", "aside"), [(1, ""), (3, "Counts and rules aside, ")])
def test_a_near_miss_on_single_providers_does_not_speak_for_the_rules(
    database: Database, api: Api, count: int, aside: str
) -> None:
    """Where single providers lack something, rules are not looked at: here no host has three GPUs either."""
    load(database, hosts(2, gpus=1))
    body = {"groups": {"_GPU": {**GPU, "count": count}, "_NIC": {"resources": {"SRIOV_NET_VF": 9}}}}
    (near_miss,) = explained(api, body)["near_misses"]
    assert near_miss["message"].startswith(f"{aside}2 trees fail only this condition: 9 SRIOV_NET_VF")


def test_joined_with_what_is_elsewhere(database: Database, api: Api) -> None:
    """There are eight GPUs, and NICs at the switch of half of them."""
    load(database, hosts(1, gpus=4))
    body = {
        "groups": {"_GPU": {**GPU, "count": 8}, "_NIC": NIC},
        "affinity": [{"groups": ["_GPU", "_NIC"], "level": LEVELS["pcie"]}],
    }
    found = explained(api, body)
    assert found["cause"]["condition"] == "affinity"
    assert found["cause"]["shortfall"] == {"group": "_GPU", "asked": 8, "most": 4}


def test_held_places_are_mentioned_only_where_somebody_holds_any(database: Database, api: Api) -> None:
    """The first host lacks room for both groups, which is another condition."""
    gpus = {root: Node(root, None, root, {"PGPU": Inventory(4 * root)}, frozenset(), frozenset()) for root in (1, 2)}
    load(database, gpus)
    group = {"resources": {"PGPU": 3}}
    body = {"groups": {"_A": group, "_B": group}, "within": [{"groups": ["_A"], "level": LEVELS["numa"]}]}
    found = explained(api, body)
    assert found["cause"]["condition"] == "within"
    assert [one["trees"] for one in found["trees"]] == [2, 1, 0]


def test_paths_that_do_not_nest(database: Database, api: Api) -> None:
    load(database, hosts(1, gpus=1))
    paths = {
        f"{LEVELS['pcie']}/A/PGPU": 1,
        f"{LEVELS['pcie']}/A/SRIOV_NET_VF": 1,
        f"{LEVELS['pcie']}/B/SRIOV_NET_VF": 1,
    }
    found = explained(api, {"paths": paths, "distinct": True})
    assert found["cause"] is not None
    assert found["trees_with_candidates"] == 0


@pytest.mark.any_database
@pytest.mark.parametrize("locks", [LOCKS, {}], ids=["with locks", "where nobody can hold a place"])
def test_what_is_said_is_what_trying_everything_finds(
    database: Database, app: Flask, locks: dict[str, str], is_long: bool, request: pytest.FixtureRequest
) -> None:
    settings = app.extensions["placement"].settings
    api = Api(create_app(replace(settings, planner=replace(settings.planner, exclusive=locks))))
    first = 1000 * request.config.getoption("--seed")
    for seed in range(first, first + CLOUDS * (40 if is_long else 1)):
        chance = Random(seed)
        cloud = random_cloud(chance)
        load(database, cloud)
        for _ in range(REQUESTS):
            one_request(api, random_request(chance), cloud, locks)


def one_request(api: Api, wanted: PlannerRequest, cloud: Cloud, locks: dict[str, str]) -> None:
    """Compare the number of trees, and the number without each rule."""
    rules = rules_of(wanted)
    try:
        trees = trees_of(with_rules(wanted, rules), cloud, locks)
        rest = {rule: with_rules(wanted, [one for one in rules if one != rule]) for rule in rules}
        less = {rule: trees_of(without, cloud, locks) for rule, without in rest.items()}
    except TooMany:
        return
    found = explained(api, body_of(wanted))
    assert found["complete"]
    assert found["trees_with_candidates"] == trees, body_of(wanted)
    assert (found["cause"] is None) == (trees > 0)
    steps = {one["condition"]: before["trees"] - one["trees"] for before, one in pairwise(found["trees"])}
    held = steps.get("held_exclusively")
    assert held is None or (held and locks)  # mentioned only where it leaves out any tree
    if found["cause"] and found["trees"][-1]["condition"] == (rules or [None])[-1]:
        counted = {(one["condition"], tuple(one["groups"]), one["value"]): one["trees"] for one in found["near_misses"]}
        assert counted == {(rule.kind, rule.groups, rule.value): number for rule, number in less.items() if number}


def trees_of(wanted: PlannerRequest, cloud: Cloud, locks: dict[str, str]) -> int:
    definition = PlanDefinition(wanted, cloud, levels=LEVELS, locks=locks)
    return sum(bool(definition.best(node.id)) for node in cloud.values() if node.parent is None)
