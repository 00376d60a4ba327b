"""POST /planner/v1/candidates: the groups of a request, their places, and many groups."""

from tests.api.conftest import Api
from tests.claims import ask, claimed, detail_of, new_uuid, proposed
from tests.clouds import Provider, provider
from tests.planner_hosts import CANDIDATES, hold, names_of, only, planned, register, uuid_of
from tests.stored_clouds import stored

GPUS = {"resources": {"PGPU": 1}, "count": 4}
NICS = {"resources": {"SRIOV_NET_VF": 1}, "count": "per-subtree"}
JOINT = [{"groups": ["_GPU", "_NIC"], "primary": "_GPU", "level": "pcie"}]


def test_a_candidate_is_put_unchanged(api: Api) -> None:
    register(api)
    groups = {"": {"resources": {"VCPU": 8, "MEMORY_MB": 1024}}, "_GPU": GPUS, "_NIC": NICS}
    body = {"groups": groups, "affinity": JOINT, "exclusive": [{"groups": ["_GPU"], "level": "pcie"}]}
    answer = ask(api, "POST", CANDIDATES, body=body)
    ask(api, "PUT", f"/allocations/{new_uuid()}", body=proposed(answer["allocation_requests"][0]))
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


def test_several_candidates_of_a_tree_come_on_request(api: Api) -> None:
    register(api)
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "per_tree": 3}
    names = [candidate["_GPU"] for candidate in planned(api, body)]
    assert names == [["host-gpu0", "host-gpu1"], ["host-gpu2", "host-gpu3"], ["host-gpu4", "host-gpu5"]]
    assert len(planned(api, {**body, "limit": 2})) == 2


def test_the_best_hosts_come_first_and_the_limit_cuts(api: Api) -> None:
    for name in ("a", "b", "c"):
        register(api, name)
    body = {"groups": {"": {"resources": {"VCPU": 8}}, "_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "limit": 2}
    claimed(api, {uuid_of("a-numa0"): {"VCPU": 32}})
    answer = ask(api, "POST", CANDIDATES, body=body)
    names = names_of(api)
    firsts = [min(names[uuid] for uuid in request["allocations"]) for request in answer["allocation_requests"]]
    assert [name.partition("-")[0] for name in firsts] == ["b", "c"]
    totals = [score["total"] for score in answer["scores"]]
    assert totals == sorted(totals, reverse=True)


def pair_on_switches(number: int) -> Provider:
    """Return a host with two GPUs: on a switch each, or behind risers of one switch on host80."""
    gpus = [provider(f"host{number}-gpu{n}", PGPU=1) for n in range(2)]
    below = [[gpu] for gpu in gpus]
    if number == 80:
        below = [[provider(f"host80-riser{n}", gpu) for n, gpu in enumerate(gpus)], []]
    switches = [provider(f"host{number}-pcie{n}", *of, traits=["CUSTOM_HW_PCIE_SWITCH"]) for n, of in enumerate(below)]
    return provider(f"host{number}", *switches)


def test_the_best_of_many_hosts_is_found_and_some_are_not_looked_into(api: Api) -> None:
    """Only one host has two GPUs on a switch, and they are behind a riser."""
    stored(api.app, *map(pair_on_switches, range(90)))
    body = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}, "limit": 2, "profile": {"compactness": {}}}
    assert planned(api, body) == [{"_GPU": ["host80-gpu0", "host80-gpu1"]}, {"_GPU": ["host0-gpu0", "host0-gpu1"]}]
    assert ask(api, "POST", CANDIDATES, body=body)["searched"] < 90


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


def test_a_request_that_would_take_too_long_is_cut_off(api: Api) -> None:
    """Large amounts whose total exactly fills both nodes, but of which no subset exactly fills one."""
    amounts = [pow(7, number, 170_000_002) for number in range(30, 54)]
    register(api, numa_inventory={"VCPU": {"total": sum(amounts) // 2}})
    groups = {f"_{number}": {"resources": {"VCPU": amount}} for number, amount in enumerate(amounts)}
    assert "limit was reached" in detail_of(api.post(CANDIDATES, {"groups": groups}), 503)


def test_many_isolated_groups_are_served_as_fast_as_one_that_counts(api: Api) -> None:
    register(api, numa_nodes=[[{"gpus": 7, "nics": 0}] * 2])
    groups = {f"_{number}": {"resources": {"PGPU": 1}} for number in range(14)}
    (candidate,) = planned(api, {"groups": groups, "group_policy": "isolate"})
    assert candidate == {f"_{number}": [f"host-gpu{number}"] for number in range(14)}
    assert planned(api, {"groups": {**groups, "_14": {"resources": {"PGPU": 1}}}, "group_policy": "isolate"}) == []


def test_many_devices_each_below_a_switch_of_its_own_are_found_at_once(api: Api) -> None:
    """The switches are not tried one by one: eight for each of six groups would be 262,144 ways."""
    register(api, numa_nodes=[[{"gpus": 1, "nics": 1}] * 4] * 2)
    groups: dict[str, dict] = {}
    for number in range(6):
        groups[f"_S{number}"] = {"required": ["CUSTOM_HW_PCIE_SWITCH"]}
        groups[f"_G{number}"] = {"resources": {"PGPU": 1}}
    ties = [[f"_S{number}", f"_G{number}"] for number in range(6)]
    answer = ask(api, "POST", CANDIDATES, body={"groups": groups, "same_subtree": ties})
    assert answer["complete"]
    (request,) = answer["allocation_requests"]
    assert len({request["mappings"][f"_S{number}"][0] for number in range(6)}) == 6
