"""POST /planner/v1/candidates: counts, joint allocation, exclusivity, hierarchical names."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask

from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api
from tests.claims import ask, new_uuid
from tests.planner_hosts import CANDIDATES, EIGHT_SWITCHES, hold, names_of, only, planned, provider, register, uuid_of

GPUS = {"resources": {"PGPU": 1}, "count": 4}
NICS = {"resources": {"SRIOV_NET_VF": 1}, "count": "per-subtree"}
JOINT = [{"groups": ["_GPU", "_NIC"], "primary": "_GPU", "level": "pcie"}]


def refused(api: Api, body: object) -> str:
    """Return the sentence with which a body is refused."""
    answer = api.post(CANDIDATES, body)
    assert answer.status_code == 400, answer.text
    return str(answer.json["errors"][0]["detail"].splitlines()[-1])


def test_seed_004_gpus_and_nics_forced_on_the_same_switches(api: Api) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    body = {
        "requests": {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 1},
        "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"},
    }
    assert only(api, body) == {"_gpu": "gpu0 gpu1 gpu2 gpu3", "_rdma": "nic0 nic1 nic2 nic3"}


def test_seed_004_the_heterogeneous_machine_gives_one_nic(api: Api) -> None:
    """Two NUMA nodes with four switches each, a GPU on each switch, one NIC on each NUMA node."""
    with_nic, without = {"gpus": 1, "nics": 1}, {"gpus": 1, "nics": 0}
    register(api, numa_nodes=[[with_nic, without, without, without]] * 2)
    body = {
        "requests": {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 1},
        "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"]},
    }
    assert only(api, body) == {"_gpu": "gpu0 gpu1 gpu2 gpu3", "_rdma": "nic0"}
    assert (
        planned(api, {**body, "device_joint_allocate": {**body["device_joint_allocate"], "requiredScope": "SamePCIe"}})
        == []
    )


def test_seed_004_exclusively_and_on_the_same_switches(api: Api) -> None:
    register(api, numa_nodes=EIGHT_SWITCHES)
    hold(api, "nic1-vf", SRIOV_NET_VF=1)
    body = {
        "requests": {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 1},
        "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"},
        "device_allocate_hint": {"rdma": {"vfSelector": {}, "exclusivePolicy": "PCIeLevel"}},
    }
    assert only(api, body) == {"_gpu": "gpu4 gpu5 gpu6 gpu7", "_rdma": "nic4-vf nic5-vf nic6-vf nic7-vf"}
    answer = ask(api, "POST", CANDIDATES, body=body)
    taken = answer["allocation_requests"][0]["allocations"]
    switches = [uuid_of(f"host-pcie1.{number}") for number in range(4)]
    assert [taken[switch] for switch in switches] == [{"resources": {"CUSTOM_PCIE_LOCK": 1000}}] * 4
    assert answer["scores"][0]["exclusive"] == dict.fromkeys(switches, "CUSTOM_PCIE_LOCK")


def test_seed_004_all_nics_of_the_machine(api: Api) -> None:
    register(api)
    body = {
        "requests": {"koordinator.sh/rdma": 100},
        "device_allocate_hint": {"rdma": {"allocateStrategy": "ApplyForAll"}},
    }
    assert only(api, body) == {"_rdma": "nic0 nic1 nic2 nic3"}
    hold(api, "nic2", CUSTOM_RDMA_SHARE=1)
    assert planned(api, body) == []


def test_an_unhealthy_device_is_none_of_all(api: Api) -> None:
    """Upstream counts it, and such a pod can never be placed while one device is broken."""
    register(api)
    path = f"/resource_providers/{uuid_of('host-nic2')}/inventories/CUSTOM_RDMA_SHARE"
    generation = ask(api, "GET", path)["resource_provider_generation"]
    ask(api, "PUT", path, body={"resource_provider_generation": generation, "total": 100, "reserved": 100})
    assert only(api, {"groups": {"_NIC": {"resources": {"CUSTOM_RDMA_SHARE": 100}, "count": "all"}}}) == {
        "_NIC": "nic0 nic1 nic3"
    }


def test_seed_004_a_virtual_function_from_each_of_two_nics(api: Api) -> None:
    register(api)
    hint = {"rdma": {"vfSelector": {}, "allocateStrategy": "RequestsAsCount"}}
    body = {"requests": {"koordinator.sh/rdma": 2}, "device_allocate_hint": hint}
    assert only(api, body) == {"_rdma": "nic0-vf nic1-vf"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({"matchLabels": {"type": "fakeW"}}, "nic0 nic1 nic2 nic3", id="DV-17-fakeW"),
        pytest.param({"matchLabels": {"type": "fakeS"}}, "nic4", id="DV-17-fakeS"),
        pytest.param(
            {"matchExpressions": [{"key": "type", "operator": "Exists"}]}, "nic0 nic1 nic2 nic3 nic4", id="DV-17-exists"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "type", "operator": "In", "values": ["fakeS", "fakeX"]}]}, "nic4", id="in"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["fakeW"]}]}, "nic4", id="not-in"
        ),
        pytest.param({"matchLabels": {"type": "fakeX"}}, None, id="DV-17-unmatched"),
    ],
)
def test_dv_17_selectors_are_traits(api: Api, selector, expected) -> None:
    nic = {"gpus": 0, "nics": 1}
    register(api, numa_nodes=[[nic] * 5])
    for trait in ("TYPE", "TYPE_FAKEW", "TYPE_FAKES", "TYPE_FAKEX"):
        ask(api, "PUT", f"/traits/CUSTOM_NIC_LABEL_{trait}")
    for number in range(5):
        path = f"/resource_providers/{uuid_of(f'host-nic{number}')}/traits"
        traits = ["CUSTOM_NIC_LABEL_TYPE", f"CUSTOM_NIC_LABEL_TYPE_{'FAKES' if number == 4 else 'FAKEW'}"]
        generation = ask(api, "GET", path)["resource_provider_generation"]
        ask(api, "PUT", path, body={"resource_provider_generation": generation, "traits": traits})
    hint = {"rdma": {"selector": selector, "allocateStrategy": "ApplyForAll"}}
    body = {"requests": {"rdma": 10}, "device_allocate_hint": hint}
    assert planned(api, body) == ([] if expected is None else [{"_rdma": [f"host-{n}" for n in expected.split()]}])


def test_a_selector_is_about_the_device_of_the_virtual_functions(api: Api) -> None:
    register(api)
    ask(api, "PUT", "/traits/CUSTOM_FAST")
    path = f"/resource_providers/{uuid_of('host-nic3')}/traits"
    body = {
        "resource_provider_generation": ask(api, "GET", path)["resource_provider_generation"],
        "traits": ["CUSTOM_FAST"],
    }
    ask(api, "PUT", path, body=body)
    group = {"resources": {"SRIOV_NET_VF": 2}, "vf_selector": [], "selector": ["CUSTOM_FAST"]}
    assert only(api, {"groups": {"_NIC": group}}) == {"_NIC": "nic3-vf"}
    assert only(api, {"groups": {"_NIC": {**group, "selector": ["!CUSTOM_FAST"]}}}) == {"_NIC": "nic2-vf"}
    assert planned(api, {"groups": {"_NIC": {**group, "vf_selector": ["CUSTOM_FAST"]}}}) == []


def test_a_candidate_is_put_unchanged(api: Api) -> None:
    register(api)
    groups = {"": {"resources": {"VCPU": 8, "MEMORY_MB": 1024}}, "_GPU": GPUS, "_NIC": NICS}
    body = {"groups": groups, "affinity": JOINT, "exclusive": [{"groups": ["_GPU"], "level": "pcie"}]}
    answer = ask(api, "POST", CANDIDATES, body=body)
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": None}
    ask(api, "PUT", f"/allocations/{new_uuid()}", body={**answer["allocation_requests"][0], **owner})
    assert only(api, body)["_GPU"] == "gpu4 gpu5 gpu6 gpu7"


def test_the_answer_has_the_shape_of_candidates_and_scores(api: Api) -> None:
    register(api)
    answer = ask(api, "POST", CANDIDATES, body={"groups": {"_GPU": GPUS, "_NIC": NICS}, "affinity": JOINT})
    assert sorted(answer) == ["allocation_requests", "complete", "provider_summaries", "scores", "searched"]
    assert (answer["complete"], answer["searched"]) == (True, 1)
    (score,) = answer["scores"]
    assert score["touched"] == {"numa": 1, "pcie": 2}
    plain = ask(api, "GET", "/allocation_candidates?resources=VCPU:1")
    assert answer["provider_summaries"] == plain["provider_summaries"]


def test_within_keeps_groups_in_one_place(api: Api) -> None:
    register(api)
    hold(api, "gpu0", PGPU=1)
    body = {
        "groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 4}},
        "within": [{"groups": ["_GPU"], "level": "numa"}],
    }
    assert only(api, body) == {"_GPU": "gpu4 gpu5 gpu6 gpu7"}
    hold(api, "gpu5", PGPU=1)
    assert planned(api, body) == []
    body["within"][0]["mode"] = "preferred"
    assert only(api, body) == {"_GPU": "gpu2 gpu3 gpu6 gpu7"}


def test_a_trait_is_a_level_of_its_own(api: Api) -> None:
    register(api)
    body = {
        "groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}},
        "within": [{"groups": ["_GPU"], "level": "CUSTOM_HW_PCIE_SWITCH"}],
    }
    assert only(api, body) == {"_GPU": "gpu0 gpu1"}
    body["within"][0]["level"] = "CUSTOM_NOWHERE"
    assert planned(api, body) == []


def test_several_candidates_of_a_tree_come_on_request(api: Api) -> None:
    register(api)
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "per_tree": 3}
    names = [candidate["_GPU"] for candidate in planned(api, body)]
    assert names == [["host-gpu0", "host-gpu1"], ["host-gpu2", "host-gpu3"], ["host-gpu4", "host-gpu5"]]
    assert len(planned(api, {**body, "limit": 2})) == 2


def test_same_subtree_and_traits_mean_what_they_mean_in_a_query(api: Api) -> None:
    register(api)
    hold(api, "numa0", VCPU=60)
    groups = {
        "_NUMA": {"required": ["HW_NUMA_ROOT"]},
        "_CPU": {"resources": {"VCPU": 8}},
        "_GPU": {"resources": {"PGPU": 1}, "count": 3},
    }
    body = {"groups": groups, "same_subtree": [["_NUMA", "_CPU", "_GPU"]]}
    assert only(api, body) == {"_NUMA": "numa1", "_CPU": "numa1", "_GPU": "gpu4 gpu5 gpu6"}


def test_the_unsuffixed_group_meets_its_traits_together(api: Api) -> None:
    register(api)
    body = {"groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 1}, "required": ["HW_NUMA_ROOT"]}}}
    assert only(api, body) == {"": "host numa0"}
    body["groups"][""]["required"] = ["HW_NIC_SRIOV"]
    assert planned(api, body) == []


def test_isolated_groups_share_no_provider(api: Api) -> None:
    register(api)
    group = {"resources": {"CUSTOM_RDMA_SHARE": 10}}
    body = {"groups": {"_A": group, "_B": group}, "group_policy": "isolate"}
    assert only(api, body) == {"_A": "nic0", "_B": "nic1"}
    assert only(api, {**body, "group_policy": "none"}) == {"_A": "nic0", "_B": "nic0"}


def test_the_best_hosts_come_first_and_the_limit_cuts(api: Api) -> None:
    for name in ("a", "b", "c"):
        register(api, name)
    body = {"groups": {"": {"resources": {"VCPU": 8}}, "_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "limit": 2}
    hold_of_b = {"allocations": {uuid_of("a-numa0"): {"resources": {"VCPU": 32}}}}
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": None}
    ask(api, "PUT", f"/allocations/{new_uuid()}", body={**hold_of_b, **owner})
    answer = ask(api, "POST", CANDIDATES, body=body)
    names = names_of(api)
    firsts = [min(names[uuid] for uuid in request["allocations"]) for request in answer["allocation_requests"]]
    assert [name.partition("-")[0] for name in firsts] == ["b", "c"]
    totals = [score["total"] for score in answer["scores"]]
    assert totals == sorted(totals, reverse=True)


def test_the_best_of_many_hosts_is_found_and_most_are_not_looked_into(api: Api) -> None:
    """Only one has two GPUs on a switch, and there they stand behind a riser."""
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    for number in range(40):
        root = provider(api, f"host{number}", None, {}, [])
        spots = [provider(api, f"host{number}-pcie{n}", root, {}, ["CUSTOM_HW_PCIE_SWITCH"]) for n in range(2)]
        if number == 30:
            spots = [provider(api, f"host30-riser{n}", spots[0], {}, []) for n in range(2)]
        for n, spot in enumerate(spots):
            provider(api, f"host{number}-gpu{n}", spot, {"PGPU": {"total": 1}}, [])
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "limit": 2}
    assert planned(api, body) == [{"_GPU": ["host30-gpu0", "host30-gpu1"]}, {"_GPU": ["host0-gpu0", "host0-gpu1"]}]
    assert ask(api, "POST", CANDIDATES, body=body)["searched"] < 40


def test_a_trait_may_be_a_level_outside_of_those_of_the_file(api: Api) -> None:
    """A GPU on each of two NUMA nodes of one socket: places lie inside each other in another order than they count."""
    for name in ("SOCKET", "HW_PCIE_SWITCH"):
        ask(api, "PUT", f"/traits/CUSTOM_{name}")
    root = provider(api, "host", None, {}, [])
    for socket in range(2):
        place = provider(api, f"host-socket{socket}", root, {}, ["CUSTOM_SOCKET"])
        for node in range(1 + socket):
            numa = provider(api, f"host-numa{socket}.{node}", place, {}, ["HW_NUMA_ROOT"])
            provider(api, f"host-gpu{socket}.{node}", numa, {"PGPU": {"total": 1}}, [])
    body = {
        "groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}},
        "within": [{"groups": ["_GPU"], "level": "CUSTOM_SOCKET"}],
    }
    assert only(api, body) == {"_GPU": "gpu1.0 gpu1.1"}


PATHS = {
    "Pcie/R0/gpu/gpu0/cards": 1,
    "Pcie/R0/gpu/gpu1/cards": 1,
    "Pcie/R1/gpu/gpu2/cards": 1,
}


@pytest.fixture
def levels(app: Flask) -> Api:
    """A server that calls GPUs a level."""
    settings = app.extensions["placement"].settings
    planner = replace(PlannerSettings(), levels={**PlannerSettings().levels, "gpu": "CUSTOM_GPU"})
    return Api(create_app(replace(settings, planner=planner)))


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


A = {"_A": {"resources": {"PGPU": 1}}}
GPU_HINT = "device_allocate_hint.gpu"


def group(**changed: object) -> dict[str, object]:
    return {"groups": {"_A": {**A["_A"], **changed}}}


def hint(**said: object) -> dict[str, object]:
    return {"requests": {"gpu": 1}, "device_allocate_hint": {"gpu": said}}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "body: There must be groups, a tree, paths, or requests of devices."),
        (group(resources={"PGPU": 0}), "groups._A.resources.PGPU: 0 is less than the minimum of 1"),
        (group(resources={"PGPU": True}), "groups._A.resources.PGPU: True is not of type 'integer'"),
        (group(resources={"CUSTOM_NO": 1}), "groups._A.resources.CUSTOM_NO: There is no resource class CUSTOM_NO."),
        (group(required=["CUSTOM_NO"]), "groups._A.required: There is no trait CUSTOM_NO."),
        ({"groups": A, "root_required": ["CUSTOM_NO"]}, "root_required: There is no trait CUSTOM_NO."),
        (group(count=0), 'groups._A.count: 0 is not a number from 1 to 1000, "all" or "per-subtree"'),
        (
            group(count="per-subtree"),
            'groups._A.count: "per-subtree" is for a group that one affinity has beside its primary.',
        ),
        (
            {"groups": A, "within": [{"groups": ["_B"], "level": "numa"}]},
            "within[0].groups: There is no group '_B'.",
        ),
        (
            {"groups": A, "within": [{"groups": ["_A"], "level": "rack"}]},
            "within[0].level: There is no level 'rack'; there are numa, pcie, and traits.",
        ),
        ({"groups": A, "profile": "no"}, "profile: There is no profile 'no'; there are default."),
        (
            {"requests": {"koordinator.sh/rdma": 150}},
            "requests: More than one device of the type rdma is requested in multiples of 100, not 150.",
        ),
        ({"requests": {"tpu": 1}}, "requests.tpu: This is neither a resource of a device type nor a resource class."),
        (
            {"requests": {"gpu": 1}, "device_allocate_hint": {"tpu": {}}},
            "device_allocate_hint.tpu: There is no device type 'tpu'; there are gpu, rdma, fpga.",
        ),
        (hint(vfSelector={}), f"{GPU_HINT}.vfSelector: The device type gpu has no virtual functions."),
        (
            hint(exclusivePolicy="Both"),
            f"{GPU_HINT}.exclusivePolicy: 'Both' is not one of ['DeviceLevel', 'PCIeLevel']",
        ),
        (
            {"paths": {"rack/0/gpu/0/cards": 1}},
            "paths.rack/0/gpu/0/cards: There is no level 'rack'; there are numa, pcie.",
        ),
        ({"tree": {"numa": {"A": 1}}}, "tree: 'numa/A': 1 is not of type 'object'"),
        ({"groups": A, "limit": 0}, "limit: 0 is less than the minimum of 1"),
        (
            {"groups": A, "colour": 1},
            "body: Additional properties are not allowed ('colour' was unexpected)",
        ),
    ],
)
def test_bad_requests_are_refused_with_the_path_of_the_fault(api: Api, body, sentence) -> None:
    assert refused(api, body) == sentence


def test_an_explanation_comes_on_request(api: Api) -> None:
    answer = ask(api, "POST", CANDIDATES, body={"groups": A, "explain": True})
    assert answer["allocation_requests"] == []
    assert answer["explanation"]["trees_with_candidates"] == 0
    assert "explanation" not in ask(api, "POST", CANDIDATES, body={"groups": A})


def documented() -> list[dict]:
    """Return the bodies that the documentation shows for candidates."""
    blocks = re.findall(
        r"(?m)^    \{(?:.*\n(?:    .*\n)*)", (Path(__file__).parents[3] / "docs/planner.md").read_text()
    )
    return [json.loads(line) for block in blocks for line in documents(block)]


def documents(block: str) -> list[str]:
    """Return the documents of a block: one, or one in each line."""
    lines = block.splitlines()
    return lines if all(line.endswith("}") for line in lines) else [block]


def test_what_the_documentation_shows_is_understood(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU", "CUSTOM_GPU_A100"])
    ask(levels, "PUT", "/traits/CUSTOM_GPU_H100")
    bodies = [body for body in documented() if "consumer" not in body]
    assert len(bodies) == 4
    for body in bodies:
        assert ask(levels, "POST", CANDIDATES, body=body)["allocation_requests"], body


def test_a_request_that_would_take_too_long_is_cut_off(api: Api) -> None:
    """Multiples of six, which would have to fill both nodes better than multiples of six can."""
    register(api, numa_inventory={"VCPU": {"total": 317}})
    groups = {f"_{number}": {"resources": {"VCPU": 6 * number}} for number in range(1, 15)}
    answer = api.post(CANDIDATES, {"groups": groups})
    assert answer.status_code == 503
    assert "cut off" in answer.json["errors"][0]["detail"]


def test_many_different_groups_have_an_answer_that_may_not_be_the_best(api: Api) -> None:
    """Fifteen groups fit the same two providers, in thousands of ways."""
    register(api)
    groups = {f"_{number}": {"resources": {"VCPU": number}} for number in range(1, 16)}
    answer = ask(api, "POST", CANDIDATES, body={"groups": groups})
    assert answer["complete"] is False
    (request,) = answer["allocation_requests"]
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": None}
    ask(api, "PUT", f"/allocations/{new_uuid()}", body={**request, **owner})


def test_many_isolated_groups_are_served_as_fast_as_one_that_counts(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 7, "nics": 0}] * 2])
    groups = {f"_{number}": {"resources": {"PGPU": 1}} for number in range(14)}
    (candidate,) = planned(api, {"groups": groups, "group_policy": "isolate"})
    assert candidate == {f"_{number}": [f"host-gpu{number}"] for number in range(14)}
    assert planned(api, {"groups": {**groups, "_14": {"resources": {"PGPU": 1}}}, "group_policy": "isolate"}) == []


def test_many_groups_that_may_share_a_provider_are_served_as_one(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 1, "nics": 1}]] * 2)
    vcpus = {uuid: names_of(api)[uuid] for uuid in names_of(api) if "numa" in names_of(api)[uuid]}
    groups = {f"_{number}": {"resources": {"VCPU": 2}} for number in range(24)}
    (candidate,) = planned(api, {"groups": groups})
    assert len(candidate) == 24
    assert {name for names in candidate.values() for name in names} <= set(vcpus.values())
