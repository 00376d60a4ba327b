"""Requests from the Group Allocator's document, pasted into POST /planner/v1/candidates."""

from dataclasses import replace

import pytest
from flask import Flask

from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, names_of, planned, register
from tests.stored_providers import StoredProvider, store_providers

pytestmark = pytest.mark.any_database

PREFIX = "alpha.kubernetes.io/group-resource/"
TWO_GPUS = {
    "cpu": 2,
    "memory": "1GiB",
    "gpu/0/cards": 1,
    "gpu/0/memory": "1GiB",
    "gpu/1/cards": 1,
    "gpu/1/memory": "2GiB",
}
SIX_GPUS = {
    "Gpugrp1/R0/Gpugrp0/RA/gpu/gpu0/cards": 1,
    "Gpugrp1/R0/Gpugrp0/RA/gpu/gpu1/cards": 1,
    "Gpugrp1/R1/Gpugrp0/RA/gpu/gpu2/cards": 1,
    "Gpugrp1/R1/Gpugrp0/RA/gpu/gpu3/cards": 1,
    "Gpugrp1/R1/Gpugrp0/RB/gpu/gpu4/cards": 1,
    "Gpugrp1/R1/Gpugrp0/RB/gpu/gpu5/cards": 1,
}
GROUP_LEVELS = {"gpugrp1": "CUSTOM_GPUGRP1", "gpugrp0": "CUSTOM_GPUGRP0", "gpu": "CUSTOM_GPU"}


@pytest.fixture
def grouped(app: Flask) -> Api:
    """A server that knows the document's groups of GPUs."""
    settings = app.extensions["placement"].settings
    planner = replace(PlannerSettings(), levels={**PlannerSettings().levels, **GROUP_LEVELS})
    return Api(create_app(replace(settings, planner=planner)))


def store(api: Api, *providers: tuple[str, str | None, dict, list[str]]) -> None:
    """Create a tree from (name, parent, inventory, traits), parents first; names are short forms of uuids."""
    for name in {one for *_rest, inventory, _traits in providers for one in inventory if one.startswith("CUSTOM_")}:
        ask(api, "PUT", f"/resource_classes/{name}")
    for trait in {one for *_rest, traits in providers for one in traits if one.startswith("CUSTOM_")}:
        ask(api, "PUT", f"/traits/{trait}")
    made = [StoredProvider(uuid(name), name, uuid(parent) if parent else None) for name, parent, *_rest in providers]
    for one, (_name, _parent, inventory, traits) in zip(made, providers, strict=True):
        one.inventories = {resource_class: {"total": total} for resource_class, total in inventory.items()}
        one.traits = traits
    store_providers(api.app.extensions["placement"].database, made)


def uuid(name: str) -> str:
    return f"00000000-0000-4000-8000-{name.encode().hex().rjust(12, '0')[-12:]}"


def four_gpus(api: Api) -> None:
    """The document's location 1: four GPUs of 1, 3, 2 and 4 GiB; CPUs and memory belong to the host."""
    gpus = [
        (f"dev{number}", "host", {"PGPU": 1, "CUSTOM_GPU_MEMORY_MB": gib * 1024}, ["CUSTOM_GPU"])
        for number, gib in enumerate([1, 3, 2, 4])
    ]
    store(api, ("host", None, {"VCPU": 4, "MEMORY_MB": 2048}, []), *gpus)


def eight_gpus(api: Api) -> None:
    """Figure 2: pairs of GPUs on fast links, pairs of pairs on slower ones."""
    pairs = [(f"p{pair}", f"q{pair // 2}", {}, ["CUSTOM_GPUGRP0"]) for pair in range(4)]
    gpus = [(f"dev{number}", f"p{number // 2}", {"PGPU": 1}, ["CUSTOM_GPU"]) for number in range(8)]
    outer = [(f"q{number}", "host", {}, ["CUSTOM_GPUGRP1"]) for number in range(2)]
    store(api, ("host", None, {"VCPU": 8}, []), *outer, *pairs, *gpus)


def mapped(api: Api, body: dict) -> dict[str, str]:
    """Return the best candidate: the providers that serve each group, by name."""
    candidate = planned(api, {**body, "limit": 1})[0]
    return {prefix: " ".join(names) for prefix, names in candidate.items()}


def test_seed_000_two_gpus_of_different_memory(grouped: Api) -> None:
    """Part II, as written: the request contains units, the answer is the document's mapping."""
    four_gpus(grouped)
    assert mapped(grouped, {"paths": TWO_GPUS}) == {"": "host", "gpu/0": "dev0", "gpu/1": "dev2"}
    answer = ask(grouped, "POST", CANDIDATES, body={"paths": TWO_GPUS})
    taken = answer["allocation_requests"][0]["allocations"]
    assert taken[uuid("host")]["resources"] == {"VCPU": 2, "MEMORY_MB": 1024}
    assert taken[uuid("dev2")]["resources"] == {"PGPU": 1, "CUSTOM_GPU_MEMORY_MB": 2048}
    # (2/4 + 1/2 + 2 devices of 1/1 + 1/1 and 1/1 + 2/2) / 10 resources
    assert answer["scores"][0]["group"] == pytest.approx(0.5)
    assert answer["scores"][0]["s_l"] == pytest.approx(5)


def test_the_prefix_of_the_document_may_stand_before_each_name(grouped: Api) -> None:
    four_gpus(grouped)
    prefixed = {f"{PREFIX}{name}": amount for name, amount in TWO_GPUS.items() if "/" in name}
    assert mapped(grouped, {"paths": {**prefixed, "cpu": "2", "memory": "1Gi"}})["gpu/1"] == "dev2"


def test_seed_000_six_gpus_in_groups(grouped: Api) -> None:
    eight_gpus(grouped)
    found = mapped(grouped, {"paths": SIX_GPUS, "distinct": True})
    assert {found["Gpugrp1/R0"], found["Gpugrp1/R1"]} == {"q0", "q1"}
    pairs = {found[f"Gpugrp1/R1/Gpugrp0/{label}"] for label in ("RA", "RB")}
    assert pairs == ({"p0", "p1"} if found["Gpugrp1/R1"] == "q0" else {"p2", "p3"})


def test_seed_000_upper_groups_that_are_left_out_are_filled_in(grouped: Api) -> None:
    """Part V: a different Gpugrp1 for each different Gpugrp0."""
    eight_gpus(grouped)
    one = {"Gpugrp0/RA/gpu/gpu0/cards": 1, "Gpugrp0/RA/gpu/gpu1/cards": 1}
    both = {**one, "Gpugrp0/RB/gpu/gpu2/cards": 1, "Gpugrp0/RB/gpu/gpu3/cards": 1}
    assert mapped(grouped, {"paths": one, "translate": True})["Gpugrp0/RA"] == "p0"
    near, far = mapped(grouped, {"paths": both, "distinct": True}), mapped(grouped, {"paths": both, "translate": True})
    assert (near["Gpugrp0/RA"], near["Gpugrp0/RB"]) == ("p0", "p1")
    assert (far["Gpugrp0/RA"], far["Gpugrp0/RB"]) == ("p0", "p2")
    third = {**both, "Gpugrp0/RC/gpu/gpu4/cards": 1}
    assert planned(grouped, {"paths": third, "translate": True}) == []


def test_what_stands_outside_of_groups_is_found_anywhere_in_the_tree(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    body = {"paths": {"cpu": 2, "memory": "4Gi", "gpu/0/cards": 1}}
    assert mapped(levels, body) == {"": "host host-numa0", "gpu/0": "host-gpu0"}
    assert planned(levels, {"paths": {"cpu": 65, "gpu/0/cards": 1}}) == []


def test_containers_add_up_and_those_before_them_count_by_their_most(levels: Api) -> None:
    """Equations 19 to 25."""
    register(levels, numa_nodes=[[{"gpus": 2, "nics": 0}]], gpu_traits=["CUSTOM_GPU"])
    body = {
        "containers": [{"cpu": 20, "gpu/0/cards": 1}, {"cpu": 20, "gpu/0/cards": 1}],
        "init_containers": [{"cpu": 50}, {"cpu": 30, "gpu/0/cards": 1}],
    }
    answer = ask(levels, "POST", CLAIMS, body={**body, "consumer": consumer()})
    names = names_of(levels)
    taken = {names[uuid]: one["resources"] for uuid, one in answer["allocations"].items()}
    assert taken["host-numa0"] == {"VCPU": 50}
    assert sorted(name for name in taken if "gpu" in name) == ["host-gpu0", "host-gpu1"]
    assert set(answer["mappings"]) >= {"gpu/0", "containers/1/gpu/0", "init_containers/1/gpu/0"}


def test_nothing_of_a_resource_is_not_asked_for(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    assert mapped(levels, {"paths": {"gpu/0/cards": 1, "gpu/1/cards": 0, "cpu": "0"}}) == {"gpu/0": "host-gpu0"}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"paths": {"cpu": "1GiB"}}, "VCPU is not counted in bytes; write a whole number instead of 1GiB."),
        ({"paths": {"cpu": "0.5"}}, "VCPU is counted in whole units; write 1 instead of 0.5."),
        ({"paths": {"memory": "1 GiB"}}, "write a whole number, or bytes such as 8Gi"),
        ({"paths": {"Gpugrp7/A/gpu/0/cards": 1}}, "gpugrp7: CUSTOM_..."),
        ({"init_containers": [{"cpu": 1}]}, "there must be containers or paths, too."),
    ],
)
def test_what_is_refused_says_what_to_type(levels: Api, body: dict, sentence: str) -> None:
    answer = levels.post(CANDIDATES, body)
    assert answer.status_code == 400
    assert sentence in answer.json["errors"][0]["detail"]
