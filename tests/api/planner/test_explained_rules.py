"""Explanations of rules over several providers in planner requests, compared with brute force."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from flask import Flask

from placement.candidates.explain.explain_rules import rules_of, with_rules
from placement.candidates.explain.explanation import NUMERIC, Condition, ConditionKind
from placement.domain.planner_request import PlannerRequest
from placement.store.connection.database import Database
from tests.api.conftest import Api, with_settings
from tests.claims import ask
from tests.definition_of_plans import PlanDefinition, TooMany
from tests.planner_clouds import LEVELS, LOCKS, Builder, body_of, make_names, random_cloud, random_request
from tests.planner_hosts import CANDIDATES
from tests.small_clouds import Cloud, Inventory, Node, load

CLOUDS, REQUESTS = 12, 4
SHARE_AVOIDED = 0.2
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
    builder = Builder(Random(0))

    def add(parent: int | None, traits: frozenset[str] = frozenset(), **stock: int) -> int:
        inventories = {name: Inventory(total) for name, total in stock.items()}
        return builder.add(parent, inventories, traits, plain=True)

    for _ in range(number):
        root = add(None)
        for place in range(2):
            numa = add(root, NUMA)
            switch = add(numa, SWITCH)
            for _ in range(gpus):
                add(switch, PGPU=1)
            if not place:
                add(switch, SRIOV_NET_VF=8)
    return builder.cloud


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


@pytest.mark.parametrize(("count", "aside"), [(1, ""), (3, "Counts and rules aside, ")])
def test_a_near_miss_on_single_providers_does_not_speak_for_the_rules(
    database: Database, api: Api, count: int, aside: str
) -> None:
    """Where single providers lack something, rules are not looked at: here no host has three GPUs either."""
    load(database, hosts(2, gpus=1))
    body = {"groups": {"_GPU": {**GPU, "count": count}, "_NIC": {"resources": {"SRIOV_NET_VF": 9}}}}
    (near_miss,) = explained(api, body)["near_misses"]
    assert near_miss["message"].startswith(f"{aside}2 trees fail only this condition: 9 SRIOV_NET_VF")


@pytest.mark.parametrize("root", [[], ["CUSTOM_A"]], ids=["", "of a root with a trait"])
@pytest.mark.parametrize("seed", range(6))
def test_a_path_is_a_near_miss_if_the_request_without_it_finds_trees(
    database: Database, api: Api, seed: int, root: list[str]
) -> None:
    chance = Random(seed)
    load(database, hosts(2, gpus=2))
    switch, numa = LEVELS["pcie"], LEVELS["numa"]
    names = [f"{switch}/{label}/{name}" for label in "AB" for name in ("PGPU", "SRIOV_NET_VF")] + [f"{numa}/0/PGPU"]
    paths = {name: chance.choice((1, 1, 2, 3, 9)) for name in chance.sample(names, 3)}
    body = {"paths": paths, "distinct": chance.random() < 0.5, "root_required": root}
    found = explained(api, body)
    less = {name: {**body, "paths": {**paths}} for name in paths}
    for name, document in less.items():
        del document["paths"][name]
    without = {("group", name): document for name, document in less.items()}
    without |= {("root_required", "CUSTOM_A"): {**body, "root_required": []}} if root else {}
    trees = {key: explained(api, document)["trees_with_candidates"] for key, document in without.items()}
    assert found["cause"], paths
    named = {(one["condition"], one["value"]): one["trees"] for one in found["near_misses"]}
    is_aside = any(one["message"].startswith("Counts and rules aside") for one in found["near_misses"])
    helping = {key: number for key, number in trees.items() if number}
    assert is_aside or {key: named.get(key) for key in trees if key in named} == helping


@pytest.mark.any_database
@pytest.mark.parametrize("locks", [LOCKS, {}], ids=["with locks", "where nobody can hold a place"])
def test_what_is_said_is_what_trying_everything_finds(
    database: Database, app: Flask, locks: dict[str, str], seeds: Callable[..., range]
) -> None:
    api = with_settings(app, planner_yaml=f"exclusive: {locks}")
    for seed in seeds(CLOUDS, times=40):
        chance = Random(seed)
        cloud = random_cloud(chance)
        load(database, cloud)
        for _ in range(REQUESTS):
            roots = [node for node in cloud.values() if node.parent is None]
            avoided = [root for root in roots if chance.random() < SHARE_AVOIDED]
            one_request(api, random_request(chance), cloud, locks, avoided=avoided)


def one_request(
    api: Api, wanted: PlannerRequest, cloud: Cloud, locks: dict[str, str], *, avoided: Sequence[Node]
) -> None:
    """Compare the number of trees, and the number without each rule and without each condition.

    The trees to avoid count as little as if they did not exist.
    """
    found = explained(api, {**body_of(wanted), "avoid": {"trees": [root.uuid for root in avoided]}})
    gone = {root.id for root in avoided}
    cloud = {id_: node for id_, node in cloud.items() if node.root not in gone}
    rules = rules_of(wanted)
    kept = with_rules(wanted, rules)
    try:
        trees = trees_of(kept, cloud, locks)
        rest = {rule: with_rules(wanted, [one for one in rules if one != rule]) for rule in rules}
        helping = {key_of(rule): trees_of(without, cloud, locks) for rule, without in rest.items()}
        if found["cause"]:
            for condition in conditions_in(found):
                helping[key_of(condition)] = trees_of(kept, cloud, locks, without=condition)
    except TooMany:
        return
    assert found["complete"]
    assert found["trees_with_candidates"] == trees, body_of(wanted)
    assert (found["cause"] is None) == (trees > 0)
    steps = {one["condition"]: before["trees"] - one["trees"] for before, one in pairwise(found["trees"])}
    held = steps.get("held_exclusively")
    assert held is None or (held and locks)  # mentioned only where it leaves out any tree
    expected = {key: number for key, number in helping.items() if number and not is_told(key, helping)}
    if found["cause"] and rules:
        are_aside = any("ounts and rules aside" in one["message"] for one in found["near_misses"])
        counted = {(one["condition"], tuple(one["groups"]), one["value"]): one["trees"] for one in found["near_misses"]}
        assert ({} if are_aside else counted) == expected, (body_of(wanted), found["cause"])


def key_of(condition: Condition) -> tuple[str, tuple[str, ...], str]:
    return condition.kind, condition.groups, condition.value


def conditions_in(found: Any) -> list[Condition]:
    """Return the conditions on single providers and roots that an explanation counts, and whole amounts."""
    steps = [step for demand in found["demands"] for step in demand["steps"]] + found["trees"]
    conditions = [
        Condition(ConditionKind(step["condition"]), tuple(step["groups"]), step["value"])
        for step in steps
        if step["condition"] not in NOT_ALONE
    ]
    amounts = [replace(one, kind=ConditionKind.AMOUNT) for one in conditions if one.kind == ConditionKind.CAPACITY]
    return [*conditions, *amounts]


NOT_ALONE = (
    *("inventory", "empty_group", "every_group", "held_exclusively"),
    *("paths", "device", "count", "same_subtree", "within", "affinity", "exclusive", "distinct"),
)
"""Conditions that cannot be left out alone, and rules."""


def is_told(key: tuple[str, tuple[str, ...], str], helping: dict[tuple[str, tuple[str, ...], str], int]) -> bool:
    """Tell whether a near miss already says that a whole amount is too large."""
    kind, groups, value = key
    numeric = [helping.get((one, groups, value), 0) for one in NUMERIC]
    name = value.partition(":")[0]
    combined = [number for (one, _, of), number in helping.items() if (one, of) == ("combined_capacity", name)]
    return kind == ConditionKind.AMOUNT and any([*numeric, *combined])


def trees_of(wanted: PlannerRequest, cloud: Cloud, locks: dict[str, str], *, without: Condition | None = None) -> int:
    definition = PlanDefinition(wanted, cloud, levels=LEVELS, locks=locks, without=without)
    return sum(any(definition.allowed(node.id)) for node in cloud.values() if node.parent is None)
