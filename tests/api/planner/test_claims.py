"""POST /planner/v1/claims: planned and allocated in one step, exactly once, for one consumer or a gang."""

from typing import Any

import pytest

from placement.api.planner.claims import BODY
from tests.api.conftest import Api
from tests.claims import ask, claimed, detail_of, error_of, held, used
from tests.planner_hosts import CLAIMS, consumer, names_of, provider, register, uuid_of

pytestmark = pytest.mark.each_database

TWO = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}}}
EIGHT = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 8}}}
TWELVE = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 12}}}
OWNER = {"project_id": "project", "user_id": "user", "consumer_type": "INSTANCE"}


def refused(api: Api, body: object, status: int = 409) -> str:
    return str(detail_of(api.post(CLAIMS, body), status).splitlines()[-1])


def gpus_of(api: Api, uuid: str) -> list[str]:
    names = names_of(api)
    return sorted(names[provider] for provider, amounts in held(api, uuid).items() if "PGPU" in amounts)


def test_a_claim_answers_with_what_the_consumer_holds_now(api: Api) -> None:
    register(api)
    who = consumer()
    answer = api.post(CLAIMS, {**TWO, "consumer": who})
    assert answer.status_code == 201
    assert answer.headers["location"].endswith(f"/allocations/{who['uuid']}")
    assert answer.json["consumer"] == {**who, "consumer_generation": 1}
    assert {p: one["resources"] for p, one in answer.json["allocations"].items()} == held(api, who["uuid"])
    assert answer.json["mappings"] == {"_GPU": [uuid_of("host-gpu0"), uuid_of("host-gpu1")]}
    shown = ask(api, "GET", f"/allocations/{who['uuid']}")
    assert {key: shown[key] for key in OWNER} == OWNER
    assert shown["consumer_generation"] == 1


def test_the_same_claim_again_gets_the_same_answer_and_another_one_is_refused(api: Api) -> None:
    register(api)
    body = {**TWO, "consumer": consumer()}
    uuid = body["consumer"]["uuid"]
    first, again = api.post(CLAIMS, body), api.post(CLAIMS, body)
    assert (first.status_code, again.status_code, again.json) == (201, 200, first.json)
    assert gpus_of(api, uuid) == ["host-gpu0", "host-gpu1"]
    sentence = f"consumer generation conflict - consumer {uuid} is at generation 1, but not from this claim"
    assert refused(api, {**body, **EIGHT}) == sentence


def test_a_claim_is_not_repeated_once_the_consumer_has_moved_on(api: Api) -> None:
    register(api)
    body = {**TWO, "consumer": consumer()}
    uuid = body["consumer"]["uuid"]
    ask(api, "POST", CLAIMS, body=body)
    entry = {"allocations": {uuid_of("host-gpu7"): {"resources": {"PGPU": 1}}}, "consumer_generation": 1, **OWNER}
    ask(api, "PUT", f"/allocations/{uuid}", body=entry)
    assert "is at generation 2" in refused(api, body)
    ask(api, "DELETE", f"/allocations/{uuid}")
    ask(api, "PUT", f"/allocations/{uuid}", body={**entry, "consumer_generation": None})
    assert "is at generation 1" in refused(api, body)
    ask(api, "DELETE", f"/allocations/{uuid}")
    assert api.post(CLAIMS, body).status_code == 201


def test_a_consumer_that_holds_something_is_not_claimed_for(api: Api) -> None:
    register(api)
    uuid = claimed(api, {uuid_of("host-gpu0"): {"PGPU": 1}})
    assert "not from this claim" in refused(api, {**TWO, "consumer": consumer(uuid=uuid)})
    assert "expected null but got 3" in refused(api, {**TWO, "consumer": consumer(consumer_generation=3)})


def test_without_a_place_nothing_is_written(api: Api) -> None:
    register(api)
    ask(api, "POST", CLAIMS, body={**EIGHT, "consumer": consumer()})
    who = consumer()
    body = {**TWO, "consumer": who}
    assert refused(api, body).startswith("Nothing was allocated. ")
    assert api.post(CLAIMS, body).json["errors"][0]["explanation"]["demands"][0]["resources"] == {"PGPU": 1}
    assert ask(api, "GET", f"/allocations/{who['uuid']}")["allocations"] == {}


@pytest.mark.parametrize("said", [{"explain": False}, {"score": {"explain": False}}])
def test_a_refusal_is_not_explained_to_those_who_do_not_want_it(api: Api, said: dict[str, object]) -> None:
    register(api)
    own, same = {"consumer": consumer(), "request": {**TWELVE, **said}}, {"consumer": consumer(), "request": TWELVE}
    for body in ({**TWELVE, **said, "consumer": consumer()}, {"members": [own]}, {**said, "members": [same]}):
        error = error_of(api.post(CLAIMS, body), 409)
        assert error["code"] == "placement.planner.no_room"
        assert error["detail"].endswith("No place was found, so nothing was allocated.")
        assert "explanation" not in error


def test_a_gang_is_allocated_as_a_whole_or_not_at_all(api: Api) -> None:
    register(api)
    body = {**TWO, "consumer": consumer(), "members": 4}
    answer = api.post(CLAIMS, body)
    assert answer.status_code == 201
    uuids = [member["consumer"]["uuid"] for member in answer.json["members"]]
    assert uuids[0] == body["consumer"]["uuid"]
    taken = [name for uuid in uuids for name in gpus_of(api, uuid)]
    assert sorted(taken) == [f"host-gpu{number}" for number in range(8)]
    assert api.post(CLAIMS, body).json == answer.json
    for uuid in uuids:
        ask(api, "DELETE", f"/allocations/{uuid}")
    assert "all 5 members" in refused(api, {**body, "members": 5})
    assert used(api, uuid_of("host-gpu0"))["PGPU"] == 0


def test_what_a_claim_avoids_all_members_avoid(api: Api) -> None:
    register(api)
    members = [{"consumer": consumer(), "request": TWO}, {"consumer": consumer()}]
    body = {**TWO, "avoid": {"trees": [uuid_of("host")]}, "members": members}
    assert "The trees to avoid were left out" in refused(api, body)
    members[1]["request"] = {**TWO, "avoid": {"trees": [uuid_of("host-gpu0")]}}
    assert "found none beside 1 others" in refused(api, {"members": members})


REQUESTED: dict[str, Any] = {
    **EIGHT,
    "group_policy": "none",
    "same_subtree": [],
    "root_required": ["HW_NUMA_ROOT"],
    **{rule: [] for rule in ("affinity", "within", "exclusive", "containers", "init_containers")},
    "tree": {"VCPU": 1},
    "paths": {"cpu": 1},
    "translate": True,
    "distinct": True,
    "requests": {"nvidia.com/gpu": 1},
    "device_joint_allocate": {"deviceTypes": ["gpu"]},
    "device_allocate_hint": {},
    "pod": {},
    "task": "worker",
    "ignore_unknown": True,
}
OF_ALL = {
    *("members", "avoid", "profile", "score", "explain", "together", "apart", "all_or_nothing", "stream", "replaces"),
    *("dry_run", "fair_share", "limit", "per_tree"),
}
"""The fields that apply to all members; the last two to none, as documented."""


@pytest.mark.any_database
def test_each_field_of_a_claim_applies_to_all_members_or_is_refused(api: Api) -> None:
    assert REQUESTED.keys() | OF_ALL | {"consumer"} == BODY.members.keys()
    register(api)
    for name, value in REQUESTED.items():
        body = {name: value, "members": [{"consumer": consumer(), "request": TWO}]}
        assert (
            refused(api, body, 400)
            == f"{name}: The key applies to no member, because each member has a request of its own."
        )
    body = {"consumer": consumer(), "members": [{"consumer": consumer(), "request": TWO}]}
    assert refused(api, body, 400) == "consumer: Listed members name their own consumers."


def gpu_on(api: Api, root: str, *names: str, **changed: object) -> None:
    switch = provider(api, f"{names[0]}-switch", root, {}, ["CUSTOM_HW_PCIE_SWITCH"])
    for name in names:
        provider(api, name, switch, {"PGPU": {"total": 1, **changed}}, [])


def test_a_member_makes_room_for_another_in_the_same_tree(api: Api) -> None:
    """Alone, the first would get the GPUs on one switch, but only the second needs them there."""
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    root = provider(api, "host", None, {}, [])
    gpu_on(api, root, "a0", "a1")
    gpu_on(api, root, "b0")
    gpu_on(api, root, "c0")
    three = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}, "_MORE": {"resources": {"VCPU": 1}}}}
    provider(api, "cores", root, {"VCPU": {"total": 4}}, [])
    pair = {**TWO, "within": [{"groups": ["_GPU"], "level": "pcie"}]}
    members = [{"consumer": consumer(), "request": request} for request in (three, pair)]
    ask(api, "POST", CLAIMS, body={"members": members})
    assert [gpus_of(api, one["consumer"]["uuid"]) for one in members] == [["b0", "c0"], ["a0", "a1"]]


def test_a_member_moves_to_another_tree_for_one_that_cannot(api: Api) -> None:
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    roots = [provider(api, name, None, {}, []) for name in ("first", "second")]
    gpu_on(api, roots[0], "a0", "a1")
    gpu_on(api, roots[1], "b0", "b1")
    here = {"groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2, "in_tree": roots[0]}}}
    members = [{"consumer": consumer(), "request": request} for request in (TWO, here)]
    answer = ask(api, "POST", CLAIMS, body={"members": members})["members"]
    assert [gpus_of(api, one["consumer"]["uuid"]) for one in answer] == [["b0", "b1"], ["a0", "a1"]]
    assert ask(api, "GET", f"/resource_providers/{roots[0]}/allocations")["allocations"] == {}
    assert used(api, uuid_of("b0")) == {"PGPU": 1}


def test_a_gang_that_fits_nowhere_is_refused_and_leaves_nothing(api: Api) -> None:
    """There are enough GPUs, but no third switch has two."""
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    root = provider(api, "host", None, {}, [])
    for names in (("a0", "a1"), ("b0", "b1"), ("c0",), ("d0",)):
        gpu_on(api, root, *names)
    pair = {**TWO, "within": [{"groups": ["_GPU"], "level": "pcie"}]}
    answer = api.post(CLAIMS, {**pair, "consumer": consumer(), "members": 3})
    assert answer.status_code == 409
    assert "complete" not in answer.json["errors"][0]
    assert {used(api, uuid_of(name))["PGPU"] for name in ("a0", "a1", "b0", "c0")} == {0}
    assert api.post(CLAIMS, {**pair, "consumer": consumer(), "members": 2}).status_code == 201


@pytest.mark.parametrize("alone", [4, 1], ids=["all want one alone", "others take what is left"])
def test_members_keep_out_of_what_others_of_the_gang_hold(api: Api, alone: int) -> None:
    """Two equal hosts whose switches have no lock: only the claim itself knows which ones are held."""
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    switches = []
    for host in "ab":
        root = provider(api, host, None, {}, [])
        switches += [{f"{host}0", f"{host}1"}, {f"{host}2", f"{host}3"}]
        gpu_on(api, root, f"{host}0", f"{host}1")
        gpu_on(api, root, f"{host}2", f"{host}3")
    one = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
    holding = {**one, "exclusive": [{"groups": ["_GPU"], "level": "pcie"}]}
    requests = [holding] * alone + [one] * 2 * (4 - alone)
    members = [{"consumer": consumer(), "request": request} for request in requests]
    assert "No place was found" in refused(api, {"members": [*members, {"consumer": consumer(), "request": holding}]})
    answer = ask(api, "POST", CLAIMS, body={"members": members})["members"]
    taken = [{*gpus_of(api, member["consumer"]["uuid"])} for member in answer]
    beside = [[other for other in taken if other & switch] for switch in switches]
    assert all(len(there) == 1 for there in beside if any(mine in there for mine in taken[:alone]))


def test_a_gang_that_was_not_searched_to_the_end_is_told_so(api: Api) -> None:
    """Four pairs fit on two switches in too many ways to try all of them for the fifth."""
    ask(api, "PUT", "/traits/CUSTOM_HW_PCIE_SWITCH")
    root = provider(api, "host", None, {}, [])
    for names in (("a0", "a1", "a2", "a3"), ("b0", "b1", "b2", "b3"), ("c0",), ("d0",)):
        gpu_on(api, root, *names)
    pair = {**TWO, "within": [{"groups": ["_GPU"], "level": "pcie"}]}
    answer = api.post(CLAIMS, {**pair, "consumer": consumer(), "members": 5})
    assert answer.json["errors"][0]["complete"] is False
    assert "a placement may still exist" in answer.json["errors"][0]["detail"]
