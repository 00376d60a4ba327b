"""Gangs on the fabric: together in a rack, apart on hosts, in groups; and why there is no placement."""

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.clouds import Cloud, Provider, provider
from tests.planner_hosts import CLAIMS, consumer
from tests.stored_clouds import stored

RACKS = {name: f"00000000-0000-0000-0000-0000000000{number}" for number, name in enumerate(("b1", "b2", "b3"), 10)}
PLANNER_YAML = """
aggregates:
  zone: {{z1: [{b1}, {b2}], z2: [{b3}]}}
  rack: {{b1: {b1}, b2: {b2}, b3: {b3}}}
""".format(**RACKS)
GPU = {"groups": {"_GPU": {"resources": {"PGPU": 1}}}}
IN_A_RACK = {"together": {"level": "rack"}}
ON_HOSTS = {"apart": {"level": "host"}}


def host(name: str, rack: str, *, gpus: int, cores: int = 16) -> Provider:
    devices = [provider(f"{name}-gpu{number}", PGPU=1) for number in range(gpus)]
    return provider(name, *devices, aggregates=[rack] if rack else [], VCPU=cores)


def cloud_of(api: Api, *hosts: Provider) -> Cloud:
    return stored(api.app, *hosts, aggregates=RACKS)


def gang(members: int | list[dict[str, Any]], wanted: dict[str, Any], **rules: Any) -> dict[str, Any]:
    body = {**wanted, **rules, "members": members}
    return body if isinstance(members, list) else {**body, "consumer": consumer()}


def placed(api: Api, cloud: Cloud, body: dict[str, Any]) -> list[str]:
    answer = api.post(CLAIMS, body)
    assert answer.status_code in (200, 201), answer.text
    return hosts_in(cloud, answer.json)


def hosts_in(cloud: Cloud, answer: dict[str, Any]) -> list[str]:
    return [cloud.name_of(next(iter(one["allocations"]))).split("-")[0] for one in answer["members"]]


def refused(api: Api, body: dict[str, Any]) -> str:
    answer = api.post(CLAIMS, body)
    assert answer.status_code == 409, answer.text
    assert "complete" not in answer.json["errors"][0]
    return str(answer.json["errors"][0]["detail"].splitlines()[-1])


def test_the_same_gang_again_gets_the_same_answer_and_other_rules_make_another_claim(api: Api) -> None:
    cloud_of(api, host("h1", "b1", gpus=4))
    body = gang(2, GPU, **IN_A_RACK)
    first, again = api.post(CLAIMS, body), api.post(CLAIMS, body)
    assert (first.status_code, again.status_code, again.json) == (201, 200, first.json)
    assert api.post(CLAIMS, {**body, "together": {"level": "zone"}}).status_code == 409


def test_groups_of_a_gang_have_a_rack_each(api: Api) -> None:
    hosts = [host("h1", "b1", gpus=8), host("h2", "b2", gpus=2), host("h3", "b2", gpus=2), host("h4", "b3", gpus=3)]
    cloud = cloud_of(api, *hosts)
    rule = {"together": {"level": "rack", "each": 4}}
    found = placed(api, cloud, gang(8, GPU, dry_run=True, **rule))
    assert (found[:4], sorted(found[4:])) == (["h1"] * 4, ["h2", "h2", "h3", "h3"])
    assert refused(api, gang(12, GPU, **rule)) == (
        "No place was found for all 12 members together, so none of them was allocated. 4 of them are to be in each of "
        "3 racks, and no more than 2 have room for that many."
    )


def test_members_are_apart_on_hosts_or_in_racks(api: Api) -> None:
    hosts = [host("h1", "b1", gpus=8), host("h2", "b2", gpus=2), host("h3", "b2", gpus=2), host("h4", "", gpus=3)]
    cloud = cloud_of(api, *hosts)
    assert sorted(placed(api, cloud, gang(4, GPU, dry_run=True, **ON_HOSTS))) == ["h1", "h2", "h3", "h4"]
    members = placed(api, cloud, gang(2, GPU, dry_run=True, apart={"level": "rack"}))
    assert {*members} in ({"h1", "h2"}, {"h1", "h3"})
    assert refused(api, gang(3, GPU, apart={"level": "rack"})) == (
        "No place was found for all 3 members together, so none of them was allocated. They are to be in different "
        "racks, and no more than 2 have room."
    )


def test_a_gang_is_in_one_rack_and_on_different_hosts(api: Api) -> None:
    hosts = [host("h1", "b1", gpus=8), host("h2", "b2", gpus=2), host("h3", "b2", gpus=2)]
    cloud = cloud_of(api, *hosts)
    both = {**IN_A_RACK, **ON_HOSTS}
    assert sorted(placed(api, cloud, gang(2, GPU, dry_run=True, **both))) == ["h2", "h3"]
    assert refused(api, gang(3, GPU, **both)) == (
        "No place was found for all 3 members together, so none of them was allocated. No rack has room for all of "
        "them: rack b2 has room for 2. They are to be on different hosts."
    )


def test_a_refusal_tells_which_rack_has_most_room(api: Api) -> None:
    cloud_of(api, host("h1", "b1", gpus=4), host("h2", "b2", gpus=3), host("h3", "b2", gpus=2))
    assert refused(api, gang(6, GPU, **IN_A_RACK)) == (
        "No place was found for all 6 members together, so none of them was allocated. No rack has room for all of "
        "them: rack b2 has room for 5."
    )
    assert refused(api, gang(5, GPU, together={"level": "host"})).endswith("them: host h1 has room for 4.")
    assert refused(api, gang(10, GPU, **IN_A_RACK)).endswith("They want 10 PGPU, and 9 are left.")
    assert "VCPU" in refused(api, gang(2, {"groups": {"": {"resources": {"VCPU": 17}}}}, **IN_A_RACK))


def test_a_host_that_is_in_no_rack_is_not_in_a_rack(api: Api) -> None:
    cloud_of(api, host("h1", "", gpus=4))
    assert refused(api, gang(2, GPU, **IN_A_RACK)).endswith(
        "No host that could serve them is in a rack: planner.yaml names racks under aggregates."
    )


def test_what_a_host_does_not_hold_in_spite_of_its_sums_is_found_out(api: Api) -> None:
    """Each member needs both GPUs of a NUMA node, and the first host has three GPUs on three nodes."""
    nodes = [
        provider(f"h1-n{number}", provider(f"h1-n{number}-gpu", PGPU=1), traits=["HW_NUMA_ROOT"]) for number in range(4)
    ]
    pair = [provider(f"h2-n0-gpu{number}", PGPU=1) for number in range(2)]
    other = [provider(f"h2-n1-gpu{number}", PGPU=1) for number in range(2)]
    cloud = cloud_of(
        api,
        provider("h1", *nodes, aggregates=["b1"]),
        provider(
            "h2",
            provider("h2-n0", *pair, traits=["HW_NUMA_ROOT"]),
            provider("h2-n1", *other, traits=["HW_NUMA_ROOT"]),
            aggregates=["b2"],
        ),
    )
    wanted = {
        "groups": {"_GPU": {"resources": {"PGPU": 1}, "count": 2}},
        "within": [{"groups": ["_GPU"], "level": "numa"}],
    }
    assert placed(api, cloud, gang(2, wanted, dry_run=True, **IN_A_RACK)) == ["h2", "h2"]
    assert refused(api, gang(3, wanted, **IN_A_RACK)).endswith("rack b2 has room for 2.")


CAPACITIES = {"h1": ("b1", 2, 4), "h2": ("b1", 1, 6), "h3": ("b2", 3, 3), "h4": ("b2", 0, 8), "h5": ("b3", 2, 2)}
"""Rack, GPUs and cores of each host."""

KINDS = {"gpu": (1, 0), "both": (1, 2), "core": (0, 2), "cores": (0, 5)}


def ways(wanted: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield every way to assign members to hosts that can hold them."""
    for chosen in product(CAPACITIES, repeat=len(wanted)):
        taken = {name: [0, 0] for name in CAPACITIES}
        for kind, name in zip(wanted, chosen, strict=True):
            for at in (0, 1):
                taken[name][at] += KINDS[kind][at]
        if all(amount <= CAPACITIES[name][1 + at] for name, of in taken.items() for at, amount in enumerate(of)):
            yield chosen


def rack_of(name: str) -> str:
    return CAPACITIES[name][0]


def is_apart(chosen: tuple[str, ...], level: str | None) -> bool:
    places = [name if level == "host" else rack_of(name) for name in chosen]
    return level is None or len({*places}) == len(places)


def worth(chosen: tuple[str, ...]) -> tuple[int, int]:
    return len({*map(rack_of, chosen)}), len({*chosen})


def wanted_by(kind: str) -> dict[str, Any]:
    gpus, cores = KINDS[kind]
    groups = {"_GPU": {"resources": {"PGPU": gpus}}} if gpus else {}
    return {"groups": groups | ({"": {"resources": {"VCPU": cores}}} if cores else {})}


def test_gangs_of_all_kinds_lie_as_well_as_they_can(api: Api, request: pytest.FixtureRequest) -> None:
    """Compared with every way to assign the members to hosts."""
    cloud = cloud_of(api, *[host(name, r, gpus=gpus, cores=c) for name, (r, gpus, c) in CAPACITIES.items()])
    chance, found = Random(request.config.getoption("--seed")), 0
    for _ in range(40):
        kinds = chance.sample(sorted(KINDS), chance.choice((1, 2, 2)))
        wanted = [chance.choice(kinds) for _ in range(chance.randint(2, 5))]
        mode = chance.choice(("required", "preferred", None))
        apart = chance.choice((None, None, "host", "rack"))
        if mode == "required" and apart == "rack":
            continue
        rules = ({"together": {"level": "rack", "mode": mode}} if mode else {}) | (
            {"apart": {"level": apart}} if apart else {}
        )
        possible = [one for one in ways(wanted) if is_apart(one, apart) and (mode != "required" or worth(one)[0] == 1)]
        members = [{"consumer": consumer(), "request": wanted_by(kind)} for kind in wanted]
        answer = api.post(CLAIMS, gang(members, {}, dry_run=True, **rules))
        assert answer.status_code == (200 if possible else 409), (wanted, rules, answer.text)
        if possible:
            found += 1
            chosen = tuple(hosts_in(cloud, answer.json))
            assert chosen in possible, (wanted, rules, chosen)
            assert mode is None or worth(chosen) == min(map(worth, possible)), (wanted, rules, chosen)
    assert found > 10
