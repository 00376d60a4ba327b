"""Virtual functions in the planner: groups count NICs, and use all of a NIC's providers of functions."""

import pytest

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, planned, provider, register, uuid_of

FUNCTION = {"resources": {"SRIOV_NET_VF": 1}, "vf_selector": []}
SWITCH = "CUSTOM_HW_PCIE_SWITCH"
ONE_SWITCH = [[{"gpus": 1, "nics": 1}]]


@pytest.fixture
def host(api: Api) -> Api:
    """A host with a NIC that has two providers of virtual functions, one with room for one, one with room for two."""
    register(api, numa_nodes=ONE_SWITCH, virtual_functions=1)
    provider(api, "host-nic0-more", uuid_of("host-nic0"), {"SRIOV_NET_VF": {"total": 2}}, [])
    return api


def functions(api: Api, body: dict) -> dict[str, str] | None:
    """Return the providers of the best candidate without the NIC's name, or None if there is none."""
    found = planned(api, body)
    return (
        {suffix: " ".join(n.removeprefix("host-nic0-") for n in names) for suffix, names in found[0].items()}
        if found
        else None
    )


def test_two_groups_share_a_nic_that_they_have_for_themselves(host: Api) -> None:
    """Nobody else gets any function of the NIC, not from its second provider either."""
    body = {
        "groups": {"_A": {**FUNCTION, "resources": {"SRIOV_NET_VF": 2}}, "_B": FUNCTION},
        "group_policy": "none",
        "exclusive": [{"groups": ["_A", "_B"], "level": "device"}],
    }
    assert functions(host, body) == {"_A": "more", "_B": "vf"}
    claimed = host.post(CLAIMS, {**body, "consumer": consumer()})
    assert claimed.status_code == 201, claimed.text
    assert {uuid_of("host-nic0-more"), uuid_of("host-nic0-vf")} < set(claimed.json["allocations"])
    assert functions(host, {"groups": {"_A": FUNCTION}, "exclusive": [{"groups": ["_A"], "level": "device"}]}) is None


def test_the_best_fitting_provider_of_a_nic_is_taken(host: Api) -> None:
    assert functions(host, {"groups": {"_A": FUNCTION}}) == {"_A": "vf"}
    ask(host, "PUT", "/traits/CUSTOM_NIC_LABEL_FAST")
    path = f"/resource_providers/{uuid_of('host-nic0-more')}/traits"
    body = {"resource_provider_generation": 1, "traits": ["CUSTOM_NIC_LABEL_FAST"]}
    ask(host, "PUT", path, body=body)
    labelled = {"groups": {"_A": {**FUNCTION, "vf_selector": ["CUSTOM_NIC_LABEL_FAST"]}}}
    assert functions(host, labelled) == {"_A": "more"}


def test_of_a_card_with_functions_in_different_places_those_of_one_place_serve(api: Api) -> None:
    """Each of two cards has functions behind two switches."""
    register(api, numa_nodes=[[{"gpus": 1, "nics": 0}]])
    for card in "ab":
        provider(api, f"host-{card}", uuid_of("host"), {}, ["HW_NIC_SRIOV"])
        for place in "01":
            place_of_card = f"host-{card}{place}"
            provider(api, place_of_card, uuid_of(f"host-{card}"), {"SRIOV_NET_VF": {"total": 4}}, [SWITCH])
    answer = ask(api, "POST", CANDIDATES, body={"groups": {"_VF": {**FUNCTION, "count": 2}}})
    (pair,) = [candidate["mappings"]["_VF"] for candidate in answer["allocation_requests"]]
    assert (pair, answer["complete"]) == ([uuid_of("host-a0"), uuid_of("host-b0")], False)
    assert planned(api, {"groups": {"_VF": {**FUNCTION, "count": 3}}}) == []
