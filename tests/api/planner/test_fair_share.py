"""/planner/v1/fair-share: the tree, who is next, what each queue would get, and who should give back.

tests/unit/allocators has the numbers, shares.yaml those of the design.
"""

import pytest
from flask import Flask

from tests.api.conftest import Api, with_settings
from tests.api.test_statement_counts import statements
from tests.claims import ask, claimed
from tests.clouds import Cloud, allocate, provider
from tests.stored_clouds import stored

PATH = "/planner/v1/fair-share"
# The first tree of Volcano's design of HDRF: n1 and n2/n22 want GPUs, n2/n21 wants CPUs.
PLANNER_YAML = """
fair_share:
  classes: [VCPU, PGPU]
  keep_s: 0
  tree: {n/n1: {projects: [p1]}, n/n2/n21: {projects: [p21]}, n/n2/n22: {projects: [p22]}}
"""
GPU, CPU = {"PGPU": 1}, {"VCPU": 1}


@pytest.fixture
def cloud(app: Flask) -> Cloud:
    """Ten CPUs, two of which are reserved but restored by the ratio, and ten GPUs."""
    return stored(
        app,
        provider("cpus", VCPU={"total": 10, "reserved": 2, "allocation_ratio": 1.25}, MEMORY_MB=1000),
        provider("gpus0", PGPU=6, aggregates=["A"]),
        provider("gpus1", PGPU=4),
    )


@pytest.fixture
def used(api: Api, cloud: Cloud) -> Cloud:
    """The state of the design's figures, just after n22 has released a GPU."""
    take(api, cloud, "p1", gpus0=3, gpus1=2)
    take(api, cloud, "p21", cpus=10)
    take(api, cloud, "p22", gpus0=3)
    take(api, cloud, "p22", gpus1=1)
    return cloud


def take(api: Api, cloud: Cloud, project: str, *, type_: str = "INSTANCE", **amounts: int) -> str:
    """Claim amounts by provider for a new consumer of a project."""
    shares = {cloud.providers[name]: {"VCPU" if name == "cpus" else "PGPU": of} for name, of in amounts.items()}
    return claimed(api, shares, project_id=project, user_id="u", consumer_type=type_)


def nodes(api: Api) -> dict[str, dict]:
    return {node["path"]: node for node in ask(api, "GET", PATH)["nodes"]}


def post(api: Api, what: str, body: object) -> dict:
    return ask(api, "POST", f"{PATH}/{what}", body=body)


def pending(**tasks: tuple[dict[str, int], int]) -> list[dict]:
    return [{"project_id": name, "resources": task, "count": count} for name, (task, count) in tasks.items()]


def test_the_tree_shows_usage_shares_and_what_is_blocked(api: Api, used: Cloud) -> None:
    answer = ask(api, "GET", PATH)
    assert (answer["totals"], answer["free"]) == ({"VCPU": 10, "PGPU": 10}, {"VCPU": 0, "PGPU": 1})
    shown = nodes(api)
    inner = ["n", "n/default", "n/n1", "n/n1/p1", "n/n2", "n/n2/n21", "n/n2/n21/p21", "n/n2/n22", "n/n2/n22/p22"]
    assert list(shown) == inner
    assert shown["n/n2"] == {
        "path": "n/n2",
        "weight": 1,
        "usage": {"VCPU": 10, "PGPU": 4},
        "held": 1,
        "entitled": {"VCPU": 10, "PGPU": 5},
        "over": {},
        "under": {"PGPU": 1},
        "gives": {},
        "vector": {"VCPU": 10, "PGPU": 4},
        "share": 0.4,
        "weighted_share": 0.4,
        "dominant": "PGPU",
        "blocked": False,
    }
    assert (shown["n/n2/n21/p21"]["blocked"], shown["n/n2/n21/p21"]["project_id"]) == (True, "p21")
    assert "project_id" not in shown["n/n2/n21"]


def test_projects_that_are_not_written_are_in_the_default_queue(api: Api, cloud: Cloud) -> None:
    take(api, cloud, "some/body", cpus=1)
    shown = nodes(api)["n/default/some%2Fbody"]
    assert (shown["project_id"], shown["share"]) == ("some/body", 0.1)


def test_without_a_section_all_projects_are_equal(app: Flask) -> None:
    api = with_settings(app, planner_yaml="")
    cpus = stored(api.app, provider("cpus", VCPU=10, MEMORY_MB=1000)).providers["cpus"]
    allocate(api, cpus, {"VCPU": 4}, project="a")
    assert ask(api, "GET", PATH)["classes"] == ["VCPU", "MEMORY_MB"]
    assert nodes(api)["root/default/a"]["share"] == 0.4


def test_an_empty_cloud_has_a_tree(api: Api) -> None:
    assert [*nodes(api)][:2] == ["n", "n/default"]


def test_only_the_partition_counts(app: Flask, used: Cloud) -> None:
    api = with_settings(app, planner_yaml=f"{PLANNER_YAML}  partition: {used.aggregates['A']}\n")
    assert ask(api, "GET", PATH)["totals"] == {"VCPU": 0, "PGPU": 6}
    assert nodes(api)["n/n1"]["usage"] == {"VCPU": 0, "PGPU": 3}


def test_leaves_may_be_consumer_types(app: Flask, api: Api, cloud: Cloud) -> None:
    take(api, cloud, "p", type_="JOB", gpus0=2)
    take(api, cloud, "q", type_="JOB", gpus0=1)
    allocate(api, cloud.providers["gpus1"], {"PGPU": 1})
    types = "classes: [VCPU, PGPU], leaves: consumer_type, tree: {n/jobs: {consumer_types: [JOB]}}"
    api = with_settings(app, planner_yaml=f"fair_share: {{{types}}}")
    shown = nodes(api)
    assert shown["n/jobs/JOB"]["usage"] == {"VCPU": 0, "PGPU": 3}
    assert shown["n/default/unknown"]["consumer_type"] == "unknown"
    order = post(api, "order", {"pending": [{"consumer_type": "JOB", "resources": GPU}]})["order"]
    assert order[0]["path"] == "n/jobs/JOB"
    assert api.get(PATH, headers={"x-auth-token": "user:p1", "x-roles": "reader"}).status_code == 403


def test_usage_that_follows_the_journal_is_that_of_all_allocations(api: Api, cloud: Cloud) -> None:
    first, second = (take(api, cloud, project, gpus0=2, cpus=3) for project in ("p1", "p22"))
    take(api, cloud, "p22", gpus1=1)
    assert nodes(api)["n/n2/n22/p22"]["usage"] == {"VCPU": 3, "PGPU": 3}
    api.delete(f"/allocations/{first}")
    take(api, cloud, "p21", gpus0=1)
    shown, paths = nodes(api), ("n/n1/p1", "n/n2/n21/p21", "n/n2/n22/p22")
    usages = [{"VCPU": 0, "PGPU": 0}, {"VCPU": 0, "PGPU": 1}, {"VCPU": 3, "PGPU": 3}]
    assert [shown[path]["usage"] for path in paths] == usages
    api.delete(f"/allocations/{second}")
    with statements(api.app) as sent:
        assert nodes(api)["n/n2/n22/p22"]["usage"] == {"VCPU": 0, "PGPU": 1}
    of_trees = "allocations.resource_provider_id) IN ("
    assert all(of_trees in sql for sql in sent if "FROM allocations" in sql)


def test_usage_is_read_once_in_the_time_that_is_configured(app: Flask, cloud: Cloud) -> None:
    api = with_settings(app, planner_yaml=PLANNER_YAML.replace("keep_s: 0", "keep_s: 3600"))
    with statements(api.app) as sent:
        first, second = ask(api, "GET", PATH), ask(api, "GET", PATH)
    assert len([sql for sql in sent if "FROM allocations" in sql]) == 1
    assert 0 <= first["age_s"] <= second["age_s"] < 3600


def test_the_order_tells_what_each_is_behind(api: Api, used: Cloud) -> None:
    """The design's first case: n2 holds all CPUs, yet it is n22's turn."""
    order = post(api, "order", {"pending": pending(p1=(GPU, 1), p21=(CPU, 1), p22=(GPU, 1))})["order"]
    assert [turn["project_id"] for turn in order] == ["p22", "p21", "p1"]
    assert (order[0]["behind"], order[1]["lacking"], order[1]["behind"]["reason"]) == (None, ["VCPU"], "blocked")
    assert order[2]["behind"] == {
        "reason": "share",
        "node": {"path": "n/n1", "weighted_share": 0.5, "blocked": False},
        "other": {"path": "n/n2", "weighted_share": 0.4, "blocked": False},
    }
    everybody_wants_more = post(api, "order", {})["order"]
    assert [turn["project_id"] for turn in everybody_wants_more] == ["p22", "p21", "p1"]


def test_filling_gives_the_free_resources_progressively_and_changes_nothing(api: Api, cloud: Cloud) -> None:
    before = nodes(api)
    answer = post(api, "fill", {"pending": pending(p1=(GPU, 10), p21=(CPU, 10), p22=(GPU, 10))})
    assert (answer["complete"], len(answer["order"])) == (True, 20)
    assert (answer["portions"][0]["given"], answer["portions"][0]["share"]) == ({"PGPU": 5, "VCPU": 0}, 0.5)
    assert nodes(api) == before


def test_the_fewest_and_the_cheapest_give_back(api: Api, cloud: Cloud) -> None:
    """p1 holds all GPUs, by consumers of 4, 2, 3 and 1."""
    greedy = [take(api, cloud, "p1", **{name: gpus}) for name, gpus in (("gpus0", 4), ("gpus0", 2), ("gpus1", 3))]
    last = take(api, cloud, "p1", gpus1=1)
    answer = post(api, "reclaim", {"claimant": {"project_id": "p22", "resources": {"PGPU": 4}}})
    assert (answer["feasible"], answer["complete"], answer["lacking"]) == (True, True, {"PGPU": 4})
    first = {"consumer_uuid": greedy[0], "project_id": "p1", "resources": {"PGPU": 4}, "value": 0}
    assert answer["give_back"] == [first]
    body = {"claimant": {"project_id": "p22", "resources": {"PGPU": 2}}, "values": {greedy[0]: 5, greedy[1]: 2.5}}
    assert [held["consumer_uuid"] for held in post(api, "reclaim", body)["give_back"]] == [greedy[2]]
    answer = post(api, "reclaim", body | {"keep": [greedy[2]]})
    assert [(held["consumer_uuid"], held["value"]) for held in answer["give_back"]] == [(greedy[1], 2.5)]
    shouted = body | {"values": {greedy[0].upper(): 5, greedy[1].upper(): 2.5}, "keep": [greedy[2].upper()]}
    assert post(api, "reclaim", shouted) == answer
    values = dict(zip(greedy, (5, 9, 2), strict=True))
    body = {"claimant": {"project_id": "p1", "resources": {"PGPU": 2}}, "values": {**values, last: 1}, "priority": 3}
    inside_its_queue = post(api, "reclaim", body)["give_back"]
    assert [held["consumer_uuid"] for held in inside_its_queue] == [greedy[2]]
    fits = post(api, "reclaim", {"claimant": {"project_id": "new", "resources": CPU}})
    assert fits == {"feasible": True, "complete": True, "lacking": {}, "give_back": [], "levels": []}


@pytest.mark.parametrize(
    ("project", "shown"),
    [
        ("p22", ["n", "n/n2", "n/n2/n22", "n/n2/n22/p22"]),
        ("new", ["n", "n/default"]),
        ("pp", ["n", "n/default", "n/default/pp"]),
    ],
)
def test_a_reader_sees_the_way_to_its_own_project(api: Api, cloud: Cloud, project: str, shown: list[str]) -> None:
    """A name that begins like another shows nothing of it."""
    for name in ("p", "pp", "p22"):
        take(api, cloud, name, cpus=1)
    answer = api.get(PATH, headers={"x-auth-token": f"user:{project}", "x-roles": "reader"})
    assert [node["path"] for node in answer.json["nodes"]] == shown


@pytest.mark.parametrize(("roles", "status"), [("service", 200), ("reader", 200), ("member", 403)])
def test_the_tree_is_for_readers_but_not_what_concerns_others(api: Api, roles: str, status: int) -> None:
    headers = {"x-auth-token": "user:p1", "x-roles": roles}
    assert api.get(PATH, headers=headers).status_code == status
    for what in ("order", "fill", "reclaim"):
        assert (api.post(f"{PATH}/{what}", {}, headers=headers).status_code == 403) == (roles != "service")
