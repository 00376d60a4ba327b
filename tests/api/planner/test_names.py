"""Hierarchical names and trees of names, alone and together with groups."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, hold, planned, provider, register, uuid_of
from tests.small_clouds import Inventory, Node, load

PATHS = {"Pcie/R0/gpu/gpu0/cards": 1, "Pcie/R0/gpu/gpu1/cards": 1, "Pcie/R1/gpu/gpu2/cards": 1}


def test_a_tree_says_the_same_as_paths(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    gpus = {"gpu0": {"PGPU": 1}, "gpu1": {"PGPU": 1}}
    tree = {"pcie": {"R0": {"gpu": gpus}, "R1": {"gpu": {"gpu2": {"PGPU": 1}}}}}
    assert planned(levels, {"tree": tree}) == planned(levels, {"paths": {n.replace("Pcie", "pcie"): 1 for n in PATHS}})
    assert planned(levels, {"tree": {"pcie": {str(n): {"gpu": gpus} for n in range(5)}}}) == []


def test_a_tree_nested_too_deep_is_left_out_and_the_answer_says_so(api: Api) -> None:
    """A deep tree does not make the planner run out of stack."""
    room, node = {"VCPU": Inventory(8)}, frozenset({"HW_NUMA_ROOT"})
    deep = {id_: Node(id_, id_ - 1 or None, 1, room, node) for id_ in range(1, 1501)}
    shallow = {id_: Node(id_, 1501 if id_ > 1501 else None, 1501, room, node) for id_ in (1501, 1502)}
    load(api.database, deep | shallow)
    answer = ask(api, "POST", CANDIDATES, body={"paths": {"numa/0/VCPU": 2}, "limit": 10})
    served = [[*request["allocations"]] for request in answer["allocation_requests"]]
    assert (served, answer["complete"]) == ([[shallow[1502].uuid]], False)


@pytest.fixture
def switch(levels: Api) -> Api:
    """A server on which GPUs form a level, with an empty host."""
    register(levels, numa_nodes=[[{"gpus": 0, "nics": 0}]], gpu_traits=["CUSTOM_GPU"])
    return levels


def gpu(api: Api, name: str, **rules: int) -> None:
    provider(api, name, uuid_of("host-pcie0.0"), {"VGPU": {"total": 8, **rules}}, ["CUSTOM_GPU"])


def tree(*amounts: int) -> dict:
    return {"tree": {"gpu": {str(number): {"VGPU": amount} for number, amount in enumerate(amounts)}}}


def status_of_claim(api: Api, body: dict) -> int:
    return int(api.post(CLAIMS, {**body, "consumer": consumer()}).status_code)


def test_what_meets_on_a_provider_is_no_more_than_max_unit(switch: Api) -> None:
    gpu(switch, "gpu0", max_unit=3)
    gpu(switch, "gpu1", max_unit=3)
    (found,) = planned(switch, tree(2, 1, 2))
    assert found["gpu/0"] != found["gpu/2"]
    assert status_of_claim(switch, tree(2, 1, 2)) == 201
    assert planned(switch, tree(2, 2, 2)) == []


@pytest.mark.parametrize(
    "rules", [{"max_unit": 2}, {"step_size": 2}, {"min_unit": 4}], ids=["max_unit", "step_size", "min_unit"]
)
def test_an_amount_goes_where_it_keeps_the_rules(switch: Api, rules: dict[str, int]) -> None:
    gpu(switch, "gpu0", **rules)
    gpu(switch, "gpu1")
    assert planned(switch, tree(3)) == [{"gpu/0": ["gpu1"]}]
    assert status_of_claim(switch, tree(3)) == 201


def documented() -> list[dict]:
    """Return the bodies that the documentation shows for candidates."""
    reference = Path(__file__).parents[3] / "docs" / "reference"
    text = "".join([(reference / f"{page}.md").read_text() for page in ("planner-requests", "nested-groups", "pods")])
    blocks = re.findall(r"(?m)^    \{(?:.*\n(?:    .*\n)*)", text)
    return [json.loads(line) for block in blocks for line in documents(block)]


def documents(block: str) -> list[str]:
    lines = block.splitlines()
    return lines if all(line.endswith("}") for line in lines) else [block]


def test_what_the_documentation_shows_is_understood(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU", "CUSTOM_GPU_A100"])
    bodies = [body for body in documented() if "consumer" not in body]
    assert len(bodies) == 5
    for body in bodies:
        assert ask(levels, "POST", CANDIDATES, body=body)["allocation_requests"], body


pytestmark = pytest.mark.any_database

TWO_GPUS = {"pcie/R0/gpu/a/cards": 1, "pcie/R0/gpu/b/cards": 1}
A, B, NIC = "pcie/R0/gpu/a", "pcie/R0/gpu/b", "_NIC"
GROUPS = {NIC: {"resources": {"SRIOV_NET_VF": 1}}}


def of_both(api: Api, **rules: Any) -> dict[str, str] | None:
    """Return who serves what in the best candidate for two GPUs on one switch and a NIC."""
    found = planned(api, {"paths": TWO_GPUS, "groups": GROUPS, **rules})
    return {suffix: names[0] for suffix, names in found[0].items()} if found else None


def test_rules_are_about_names_and_groups(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    affinity = {"affinity": [{"groups": [A, NIC], "level": "pcie"}]}
    assert of_both(levels, **affinity) == {A: "host-gpu0", B: "host-gpu1", NIC: "host-nic0-vf"}
    hold(levels, "gpu0", PGPU=1)
    assert of_both(levels, **affinity) == {A: "host-gpu2", B: "host-gpu3", NIC: "host-nic1-vf"}


def test_a_beginning_of_names_stands_for_all_of_them(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    hold(levels, "gpu1", PGPU=1)
    found = of_both(
        levels,
        exclusive=[{"groups": ["pcie/R0"], "level": "pcie"}],
        within=[{"groups": ["pcie/R0", NIC], "level": "numa"}],
    )
    assert found == {A: "host-gpu2", B: "host-gpu3", NIC: "host-nic1-vf"}


def test_what_stands_outside_of_groups_adds_to_the_unsuffixed_group(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    body = {"paths": {"cpu": 2, "gpu/0/cards": 1}, "groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 512}}}}
    (candidate,) = levels.post(CANDIDATES, body).json["allocation_requests"]
    taken = [amounts["resources"] for amounts in candidate["allocations"].values()]
    assert sum(one.get("VCPU", 0) for one in taken) == 3


@pytest.mark.parametrize("seed", range(8))
def test_names_find_beside_a_group_what_they_find_alone(levels: Api, seed: int) -> None:
    """The group requests something every host has."""
    chance = Random(seed)
    register(levels, gpu_traits=["CUSTOM_GPU"])
    for gpu in chance.sample(range(8), chance.randint(0, 4)):
        hold(levels, f"gpu{gpu}", PGPU=1)
    outcomes = []
    for _ in range(8):
        paths = dict(random_names(chance))
        alone = planned(levels, {"paths": paths})
        beside = planned(levels, {"paths": paths, "groups": {"": {"resources": {"MEMORY_MB": 1}}}})
        assert bool(alone) == bool(beside), paths
        outcomes.append(bool(alone))
    assert any(outcomes)


def random_names(chance: Random) -> list[tuple[str, int]]:
    """Return names of up to six GPUs in groups of NUMA nodes, of switches, of both or of neither."""
    names = []
    for gpu in range(chance.randint(1, 6)):
        numa = f"numa/{chance.choice('AB')}/" if chance.random() < 0.5 else ""
        switch = f"pcie/{chance.choice('RST')}/" if chance.random() < 0.6 else ""
        names.append((f"{numa}{switch}gpu/{gpu}/cards", 1))
    return names
