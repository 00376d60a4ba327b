"""POST /planner/v1/candidates: the places of groups."""

from tests.api.conftest import Api
from tests.claims import ask
from tests.planner_hosts import hold, only, planned, provider, register


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


def test_a_trait_may_be_a_level_outside_of_those_of_the_file(api: Api) -> None:
    """A GPU on each of two NUMA nodes of one socket: places may be nested in another order than that of the levels."""
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
