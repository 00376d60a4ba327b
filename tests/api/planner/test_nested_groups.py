"""Groups within groups: hierarchical names and trees of names, and the rules of amounts where they share a provider."""

import json
import re
from pathlib import Path

import pytest

from tests.api.conftest import Api
from tests.claims import ask, new_uuid, proposed
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, hold, names_of, planned, provider, register, uuid_of

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
    ask(levels, "PUT", f"/allocations/{new_uuid()}", body=proposed(request))


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
    """Return the documents in a block: one, or one per line."""
    lines = block.splitlines()
    return lines if all(line.endswith("}") for line in lines) else [block]


def test_what_the_documentation_shows_is_understood(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU", "CUSTOM_GPU_A100"])
    bodies = [body for body in documented() if "consumer" not in body]
    assert len(bodies) == 5
    for body in bodies:
        assert ask(levels, "POST", CANDIDATES, body=body)["allocation_requests"], body
