"""Hierarchical names together with groups, with rules over both."""

from random import Random
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import ask, detail_of
from tests.planner_hosts import CANDIDATES, hold, planned, register, uuid_of

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


@pytest.mark.parametrize(
    ("further", "sentence"),
    [
        ({"translate": True}, "The key is for hierarchical names alone, without groups and rules beside them."),
        ({"containers": [{"cpu": 1}]}, "The key is for hierarchical names alone"),
        ({"distinct": True}, 'Beside groups, write "group_policy": "isolate" instead.'),
        ({"within": [{"groups": ["pcie/R7"], "level": "numa"}]}, "There is no group 'pcie/R7'."),
        ({"groups": {"_N": {"resources": {"CUSTOM_NO": 1}}}}, "groups._N.resources.CUSTOM_NO: There is no"),
    ],
)
def test_what_cannot_stand_beside_groups_is_refused(levels: Api, further: dict, sentence: str) -> None:
    assert sentence in detail_of(levels.post(CANDIDATES, {"paths": TWO_GPUS, "groups": GROUPS, **further}))


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


@pytest.mark.parametrize(
    ("bits", "gpu"),
    [(0b0001, None), (0b0010, "host-gpu3"), (0b0100, "host-gpu3"), (0b0111, "host-gpu3"), (0, "host-gpu0")],
)
def test_of_an_enumeration_one_bit_is_enough(levels: Api, bits: int, gpu: str | None) -> None:
    """As in the Group Allocator's document, a device offers 0b0110."""
    register(levels, gpu_traits=["CUSTOM_GPU"])
    for bit in range(3):
        ask(levels, "PUT", f"/traits/CUSTOM_ENUMTYPE_{bit}")
    offered = {"resource_provider_generation": 2, "traits": ["CUSTOM_GPU", "CUSTOM_ENUMTYPE_1", "CUSTOM_ENUMTYPE_2"]}
    traits = f"/resource_providers/{uuid_of('host-gpu3')}/traits"
    offered["resource_provider_generation"] = ask(levels, "GET", traits)["resource_provider_generation"]
    ask(levels, "PUT", traits, body=offered)
    found = planned(levels, {"paths": {"gpu/0/cards": 1, "gpu/0/enumType": bits}})
    assert [one["gpu/0"] for one in found] == ([[gpu]] if gpu else [])
