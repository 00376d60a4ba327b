"""POST /planner/v1/candidates: a tree of groups, and the same request as hierarchical names."""

from tests.api.conftest import Api
from tests.claims import ask, new_uuid
from tests.planner_hosts import CANDIDATES, hold, names_of, planned, register

PATHS = {
    "Pcie/R0/gpu/gpu0/cards": 1,
    "Pcie/R0/gpu/gpu1/cards": 1,
    "Pcie/R1/gpu/gpu2/cards": 1,
}


def test_seed_000_hierarchical_names_are_placed_in_groups(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    hold(levels, "gpu0", PGPU=1)
    (request,) = ask(levels, "POST", CANDIDATES, body={"paths": PATHS})["allocation_requests"]
    names = names_of(levels)
    assert {prefix: names[uuids[0]] for prefix, uuids in request["mappings"].items()} == {
        "Pcie/R0": "host-pcie0.1",
        "Pcie/R0/gpu/gpu0": "host-gpu2",
        "Pcie/R0/gpu/gpu1": "host-gpu3",
        "Pcie/R1": "host-pcie0.0",
        "Pcie/R1/gpu/gpu2": "host-gpu1",
    }
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": None}
    ask(levels, "PUT", f"/allocations/{new_uuid()}", body={**request, **owner})


def test_a_tree_says_the_same_as_paths(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    gpus = {"gpu0": {"PGPU": 1}, "gpu1": {"PGPU": 1}}
    tree = {"pcie": {"R0": {"gpu": gpus}, "R1": {"gpu": {"gpu2": {"PGPU": 1}}}}}
    assert planned(levels, {"tree": tree}) == planned(levels, {"paths": {n.replace("Pcie", "pcie"): 1 for n in PATHS}})
    assert planned(levels, {"tree": {"pcie": {str(n): {"gpu": gpus} for n in range(5)}}}) == []


def test_groups_of_a_tree_are_apart_only_if_that_is_asked_for(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    tree = {"pcie": {"A": {"gpu": {"0": {"PGPU": 1}}}, "B": {"gpu": {"1": {"PGPU": 1}}}}}
    (shared,), (apart,) = planned(levels, {"tree": tree}), planned(levels, {"tree": tree, "distinct": True})
    assert shared["pcie/A"] == shared["pcie/B"]
    assert apart["pcie/A"] != apart["pcie/B"]
