"""POST /planner/v1/fair-share/reclaim with a request: who gives back on one host so that the request fits there."""

import random
from fractions import Fraction
from itertools import combinations

import pytest
from flask import Flask

from tests.api.conftest import Api, planner_of, with_settings
from tests.claims import ask, entry, new_uuid
from tests.clouds import provider
from tests.planner_hosts import CANDIDATES, names_of
from tests.stored_clouds import stored
from tests.unit.allocators.fair_share_entitlement_oracle import entitlements

RECLAIM = "/planner/v1/fair-share/reclaim"
SWITCH = "CUSTOM_HW_PCIE_SWITCH"
PLANNER_YAML = """
exclusive: {}
fair_share:
  classes: [PGPU, VCPU]
  keep_s: 0
  tree: {root/a: {projects: [ann]}, root/b: {projects: [bob]}, root/c: {weight: 2, projects: [cat, col]}}
"""
TYPES = """
fair_share:
  classes: [PGPU]
  leaves: consumer_type
  tree: {root/batch: {consumer_types: [BATCH]}, root/web: {consumer_types: [WEB]}}
"""


def host(name: str, *, vcpus: int = 16, switches: int = 2, gpus: int = 2):
    return provider(
        name,
        *[
            provider(
                f"{name}-s{switch}",
                *[provider(f"{name}-s{switch}-g{gpu}", PGPU=1) for gpu in range(gpus)],
                traits=[SWITCH],
            )
            for switch in range(switches)
        ],
        VCPU=vcpus,
    )


def take(api: Api, project: str, taken: dict[str, dict[str, int]]) -> str:
    uuids = {name: uuid for uuid, name in names_of(api).items()}
    consumer = new_uuid()
    body = entry({uuids[name]: resources for name, resources in taken.items()}, project_id=project)
    ask(api, "PUT", f"/allocations/{consumer}", body=body)
    return consumer


def gpu(name: str, vcpus: int = 1) -> dict[str, dict[str, int]]:
    return {name: {"PGPU": 1}, name.partition("-")[0]: {"VCPU": vcpus}}


def pair(count: int = 2, *, vcpus: int = 1, level: str | None = "pcie") -> dict[str, object]:
    """Return a request for GPUs, behind one switch if a level is given."""
    body: dict[str, object] = {
        "groups": {"": {"resources": {"VCPU": vcpus}}, "_G": {"resources": {"PGPU": 1}, "count": count}}
    }
    return body if level is None else {**body, "within": [{"groups": ["_G"], "level": level}]}


def requests(vcpus: int) -> list[tuple[int, dict[str, object]]]:
    """Return requests for GPUs, and how many each is for: all kinds of rules that keep some behind one switch."""

    def of(count: int, *names: str, **rules: object) -> tuple[int, dict[str, object]]:
        groups = {name: {"resources": {"PGPU": 1}, "count": count} for name in names}
        return count * len(names), {"groups": {"": {"resources": {"VCPU": vcpus}}, **groups}, **rules}

    beside = [{"groups": ["_P", "_S"], "primary": "_P", "level": "pcie"}]
    alone = [{"groups": [name], "level": "pcie"} for name in ("_P", "_S")]
    _gpus, tied = of(1, "_G", "_H", same_subtree=[["_T", "_G", "_H"]], group_policy="isolate")
    tied["groups"] = {**tied["groups"], "_T": {"required": [SWITCH]}}
    _gpus, unequal = of(1, "_P", "_S", within=alone)
    unequal["groups"]["_P"]["count"] = 2
    return [
        (2, pair(2, vcpus=vcpus)),
        (2, pair(2, vcpus=vcpus, level=None)),
        (3, unequal),
        of(1, "_P", "_S", within=alone),
        of(1, "_P", "_S", affinity=beside, group_policy="isolate"),
        of(2, "_P", "_S", affinity=beside),
        (2, tied),
    ]


def reclaimed(api: Api, request: object, member: str = "cat", **more: object):
    answer = ask(api, "POST", RECLAIM, body={"claimant": {"project_id": member}, "request": request, **more})
    return answer, {held["consumer_uuid"] for held in answer["give_back"]}


def spread(api: Api, project: str = "ann") -> list[str]:
    """Create two hosts with two switches each, and allocate one of the two GPUs behind each switch."""
    stored(api.app, host("h1"), host("h2"))
    return [take(api, project, gpu(name)) for name in ("h1-s0-g0", "h1-s1-g1", "h2-s0-g0", "h2-s1-g0")]


def test_what_is_advised_is_what_then_comes_first(api: Api) -> None:
    spread(api)
    answer, gone = reclaimed(api, pair())
    assert len(gone) == 1
    assert ask(api, "POST", CANDIDATES, body=pair())["allocation_requests"] == []
    for consumer in gone:
        assert api.delete(f"/allocations/{consumer}").status_code == 204
    first = ask(api, "POST", CANDIDATES, body=pair())["allocation_requests"][0]
    assert answer["candidate"] == first


def test_no_room_is_made_in_trees_to_avoid(api: Api) -> None:
    spread(api)
    uuids = {name: uuid for uuid, name in names_of(api).items()}
    for name in ("h1", "h2"):
        answer, _gone = reclaimed(api, {**pair(), "avoid": {"trees": [uuids[name]]}})
        assert (answer["feasible"], names_of(api)[answer["host"]]) == (True, {"h1": "h2", "h2": "h1"}[name])


def test_what_fits_needs_nobody(api: Api) -> None:
    stored(api.app, host("h1"))
    answer, gone = reclaimed(api, pair())
    assert (answer["feasible"], answer["host"], gone) == (True, None, set())
    assert answer["candidate"]["mappings"]["_G"]


def test_only_what_lies_in_the_partition_counts(app: Flask) -> None:
    """Ann holds all four GPUs; those outside the partition belong to nobody's share and are not reclaimed."""
    inside = new_uuid()
    api = with_settings(app, planner_yaml=f"{PLANNER_YAML}  partition: {inside}\n")
    stored(api.app, provider("h1", PGPU=2, aggregates="A"), provider("h2", PGPU=2), aggregates={"A": inside})
    held = [take(api, "ann", {name: {"PGPU": 1}}) for name in ("h1", "h1", "h2", "h2")]
    values = dict(zip(held, (9, 5, 1, 1), strict=True))
    answer, gone = reclaimed(api, {"groups": {"_G": {"resources": {"PGPU": 1}}}}, values=values)
    assert (answer["feasible"], gone) == (True, {held[1]})
    assert names_of(api)[answer["host"]] == "h1"


def test_consumer_types_share_as_projects_do(app: Flask) -> None:
    api = with_settings(app, planner_yaml=TYPES)
    stored(api.app, provider("h1", PGPU=2))
    (uuid,) = names_of(api)
    consumers = [new_uuid(), new_uuid()]
    for consumer, of in zip(consumers, ("BATCH", "BATCH"), strict=True):
        ask(api, "PUT", f"/allocations/{consumer}", body=entry({uuid: {"PGPU": 1}}, consumer_type=of))
    body = {
        "claimant": {"consumer_type": "WEB"},
        "request": {"groups": {"_G": {"resources": {"PGPU": 1}}}},
        "values": {consumers[0]: 2, consumers[1]: 1},
    }
    answer = ask(api, "POST", RECLAIM, body=body)
    assert [held["consumer_uuid"] for held in answer["give_back"]] == [consumers[1]]


@pytest.mark.parametrize("seed", [*range(10), 27, 65])
def test_no_smaller_nor_cheaper_set_on_one_host_would_do(api: Api, seed: int) -> None:
    """Compared with every set of consumers on one host, on small clouds with switches, several queues and values."""
    rng = random.Random(seed)
    priority = rng.choice([None, None, 2])
    capacity = {f"h{number}": {"PGPU": 4, "VCPU": rng.choice([8, 9])} for number in range(2)}
    stored(api.app, *[host(name, vcpus=of["VCPU"]) for name, of in capacity.items()])
    places = {
        f"h{number}": [f"h{number}-s{switch}-g{g}" for switch in range(2) for g in range(2)] for number in range(2)
    }
    used = {"PGPU": {"ann": 0, "bob": 0, "cat": 0}, "VCPU": {"ann": 0, "bob": 0, "cat": 0}}
    on_host: dict[str, list[str]] = {name: [] for name in places}
    owner, holds, values = {}, {}, {}
    for name, gpus in places.items():
        for place in rng.sample(gpus, rng.randint(2, 4)):
            project = rng.choice(["ann", "ann", "ann", "bob", "cat"] if priority is None else ["ann", "ann", "bob"])
            vcpus = rng.randint(1, 2)
            consumer = take(api, project, gpu(place, vcpus))
            on_host[name].append(consumer)
            owner[consumer], holds[consumer] = project, {"PGPU": 1, "VCPU": vcpus}
            values[consumer] = rng.randint(0, 3)
            used["PGPU"][project] += 1
            used["VCPU"][project] += vcpus
    vcpus = rng.randint(1, 4)
    gpus, body = rng.choice(requests(vcpus))
    task = {"PGPU": gpus, "VCPU": vcpus}
    more = {} if priority is None else {"priority": priority}
    answer, gone = reclaimed(api, body, values=values, **more)

    queue_of = {"ann": "root/a", "bob": "root/b", "cat": "root/c"}
    tree = planner_of(PLANNER_YAML).fair_share.queues
    root = tree.tree([])
    totals = {name: sum(of[name] for of in capacity.values()) for name in task}
    entitled = {
        name: entitlements(
            root,
            totals[name],
            {tree.path_of(project): amount for project, amount in used[name].items()},
            {"root/c/cat": 10**9},
            name,
        )
        for name in task
    }

    def judged(name: str) -> list[str]:
        """Return what is lacking in the cloud or missing on the host, and what the claim is the largest part of."""
        free = {class_: totals[class_] - sum(used[class_].values()) for class_ in task}
        left = {class_: capacity[name][class_] - sum(holds[one][class_] for one in on_host[name]) for class_ in task}
        dominant = max(task, key=lambda class_: (Fraction(task[class_], totals[class_]), class_))
        return [one for one in task if one == dominant or task[one] > free[one] or task[one] > left[one]]

    def is_fair(name: str, consumers) -> bool:
        queues = {queue_of[owner[one]] for one in consumers}
        return all(
            used[class_]["cat"] + task[class_] <= entitled[class_]["root/c"]
            and all(
                sum(used[class_][one] for one, of in queue_of.items() if of == queue)
                - sum(holds[one][class_] for one in consumers if queue_of[owner[one]] == queue)
                >= entitled[class_][queue]
                for queue in queues
            )
            for class_ in judged(name)
        )

    def fits_without(consumers: list[str]) -> bool:
        found = ask(api, "POST", CANDIDATES, body={**body, "released": consumers, "limit": 1})
        return bool(found["allocation_requests"])

    if fits_without([]):
        assert (answer["feasible"], gone) == (True, set())
        return

    def cost(chosen) -> tuple[int, ...]:
        """Return the cost of a choice; with priorities, its highest one comes first."""
        each = [values[one] for one in chosen]
        return (*([] if priority is None else [max(each)]), len(each), sum(each))

    costs = [
        cost(chosen)
        for name, consumers in on_host.items()
        for size in range(1, len(consumers) + 1)
        for chosen in combinations([one for one in consumers if owner[one] != "cat"], size)
        if priority is None or cost(chosen)[0] <= priority
        if is_fair(name, chosen) and fits_without(list(chosen))
    ]
    found = cost(gone) if answer["feasible"] else None
    assert answer["complete"]
    assert found == min(costs, default=None)
