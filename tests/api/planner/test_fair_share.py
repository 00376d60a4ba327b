"""/planner/v1/fair-share: the tree, who is next, what each queue would get, and who should give back."""

from dataclasses import replace

import pytest
from flask import Flask

from placement.allocators.fair_share.queues import Queue, QueueCapacity, tree_of
from placement.app import create_app
from placement.settings import PlannerSettings
from placement.settings.planner.values import FairShareSettings
from tests.api.conftest import Api
from tests.api.test_statement_counts import statements
from tests.claims import claimed
from tests.clouds import Cloud, allocate, provider
from tests.stored_clouds import stored

PATH = "/planner/v1/fair-share"
# The first tree of Volcano's design of HDRF: n1 and n2/n22 want GPUs, n2/n21 wants CPUs.
SEED = FairShareSettings(
    classes=("VCPU", "PGPU"),
    queues=tree_of(
        [
            Queue("n/n1", (None, 1), ("p1",)),
            Queue("n/n2/n21", (None, 1, 1), ("p21",)),
            Queue("n/n2/n22", (None, 1, 1), ("p22",)),
        ]
    ),
    keep_s=0,
)
GPU, CPU = {"PGPU": 1}, {"VCPU": 1}


def served(app: Flask, settings: FairShareSettings) -> Api:
    """A client of a server on the same database with this tree."""
    planner = PlannerSettings(fair_share=settings)
    return Api(create_app(replace(app.extensions["placement"].settings, planner=planner)))


@pytest.fixture
def seed(app: Flask) -> Api:
    return served(app, SEED)


@pytest.fixture
def cloud(seed: Api) -> Cloud:
    """Ten CPUs, two of which are reserved but restored by the ratio, and ten GPUs."""
    return stored(
        seed.app,
        provider("cpus", VCPU={"total": 10, "reserved": 2, "allocation_ratio": 1.25}, MEMORY_MB=1000),
        provider("gpus0", PGPU=6, aggregates=["A"]),
        provider("gpus1", PGPU=4),
    )


@pytest.fixture
def used(seed: Api, cloud: Cloud) -> Cloud:
    """The state of the design's figures, just after n22 has released a GPU."""
    take(seed, cloud, "p1", gpus0=3, gpus1=2)
    take(seed, cloud, "p21", cpus=10)
    take(seed, cloud, "p22", gpus0=3)
    take(seed, cloud, "p22", gpus1=1)
    return cloud


def take(api: Api, cloud: Cloud, project: str, *, type_: str = "INSTANCE", **amounts: int) -> str:
    """Claim amounts by provider for a new consumer of a project."""
    shares = {cloud.providers[name]: {"VCPU" if name == "cpus" else "PGPU": of} for name, of in amounts.items()}
    return claimed(api, shares, project_id=project, user_id="u", consumer_type=type_)


def nodes(answer) -> dict[str, dict]:
    assert answer.status_code == 200, answer.text
    return {node["path"]: node for node in answer.json["nodes"]}


def ask(api: Api, what: str, body: object) -> dict:
    answer = api.post(f"{PATH}/{what}", body)
    assert answer.status_code == 200, answer.text
    return answer.json


def pending(**tasks: tuple[dict[str, int], int]) -> list[dict]:
    return [{"project_id": name, "resources": task, "count": count} for name, (task, count) in tasks.items()]


class TestTheTree:
    def test_shows_usage_shares_and_what_is_blocked(self, seed: Api, used: Cloud) -> None:
        answer = seed.get(PATH)
        assert answer.json["totals"] == {"VCPU": 10, "PGPU": 10}
        assert answer.json["free"] == {"VCPU": 0, "PGPU": 1}
        shown = nodes(answer)
        assert list(shown) == [
            "n",
            "n/default",
            "n/n1",
            "n/n1/p1",
            "n/n2",
            "n/n2/n21",
            "n/n2/n21/p21",
            "n/n2/n22",
            "n/n2/n22/p22",
        ]
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
        assert shown["n/n2/n21/p21"]["blocked"]
        assert shown["n/n2/n21/p21"]["project_id"] == "p21"
        assert "project_id" not in shown["n/n2/n21"]

    def test_projects_that_are_not_written_are_in_the_default_queue(self, seed: Api, cloud: Cloud) -> None:
        take(seed, cloud, "some/body", cpus=1)
        shown = nodes(seed.get(PATH))["n/default/some%2Fbody"]
        assert (shown["project_id"], shown["share"]) == ("some/body", 0.1)

    def test_without_a_section_all_projects_are_equal(self, app: Flask, api: Api, cloud: Cloud) -> None:
        take(api, cloud, "a", cpus=4)
        answer = api.get(PATH)
        assert answer.json["classes"] == ["VCPU", "MEMORY_MB"]
        assert nodes(answer)["root/default/a"]["share"] == 0.4

    def test_an_empty_cloud_has_a_tree(self, api: Api) -> None:
        assert list(nodes(api.get(PATH))) == ["root", "root/default"]

    def test_only_the_partition_counts(self, app: Flask, seed: Api, used: Cloud) -> None:
        api = served(app, replace(SEED, partition=used.aggregates["A"]))
        answer = api.get(PATH)
        assert answer.json["totals"] == {"VCPU": 0, "PGPU": 6}
        assert nodes(answer)["n/n1"]["usage"] == {"VCPU": 0, "PGPU": 3}

    def test_leaves_may_be_consumer_types(self, app: Flask, seed: Api, cloud: Cloud) -> None:
        take(seed, cloud, "p", type_="JOB", gpus0=2)
        take(seed, cloud, "q", type_="JOB", gpus0=1)
        allocate(seed.call, cloud.providers["gpus1"], {"PGPU": 1})
        api = served(app, replace(SEED, leaves="consumer_type", queues=tree_of([Queue("n/jobs", (), ("JOB",))])))
        shown = nodes(api.get(PATH))
        assert shown["n/jobs/JOB"]["usage"] == {"VCPU": 0, "PGPU": 3}
        assert shown["n/default/unknown"]["consumer_type"] == "unknown"
        assert (
            ask(api, "order", {"pending": [{"consumer_type": "JOB", "resources": GPU}]})["order"][0]["path"]
            == "n/jobs/JOB"
        )


class TestAge:
    def test_usage_that_follows_the_journal_is_that_of_all_allocations(self, seed: Api, cloud: Cloud) -> None:
        first, second = (take(seed, cloud, project, gpus0=2, cpus=3) for project in ("p1", "p22"))
        take(seed, cloud, "p22", gpus1=1)
        assert nodes(seed.get(PATH))["n/n2/n22/p22"]["usage"] == {"VCPU": 3, "PGPU": 3}
        seed.delete(f"/allocations/{first}")
        take(seed, cloud, "p21", gpus0=1)
        shown = nodes(seed.get(PATH))
        assert shown["n/n1/p1"]["usage"] == {"VCPU": 0, "PGPU": 0}
        assert shown["n/n2/n21/p21"]["usage"] == {"VCPU": 0, "PGPU": 1}
        assert shown["n/n2/n22/p22"]["usage"] == {"VCPU": 3, "PGPU": 3}
        seed.delete(f"/allocations/{second}")
        with statements(seed.app) as sent:
            assert nodes(seed.get(PATH))["n/n2/n22/p22"]["usage"] == {"VCPU": 0, "PGPU": 1}
        of_trees = "allocations.resource_provider_id) IN ("
        assert all(of_trees in sql for sql in sent if "FROM allocations" in sql)

    def test_usage_is_read_once_in_the_time_that_is_configured(self, app: Flask, cloud: Cloud) -> None:
        api = served(app, replace(SEED, keep_s=3600))
        with statements(api.app) as sent:
            first, second = api.get(PATH), api.get(PATH)
        assert len([sql for sql in sent if "FROM allocations" in sql]) == 1
        assert 0 <= first.json["age_s"] <= second.json["age_s"] < 3600

    @pytest.mark.parametrize("projects", [2, 12])
    def test_the_number_of_statements_does_not_depend_on_the_number_of_projects(
        self, seed: Api, cloud: Cloud, projects: int
    ) -> None:
        for number in range(projects // 2):
            take(seed, cloud, f"x{number}", cpus=1)
        seed.get(PATH)
        with statements(seed.app) as sent:
            seed.get(PATH)
        assert len([sql for sql in sent if sql.startswith("SELECT")]) <= 5


class TestOrder:
    def test_the_branch_with_the_blocked_part_is_not_starved(self, seed: Api, used: Cloud) -> None:
        """The design's first case: n2 holds all CPUs, yet it is n22's turn."""
        order = ask(seed, "order", {"pending": pending(p1=(GPU, 1), p21=(CPU, 1), p22=(GPU, 1))})["order"]
        assert [turn["project_id"] for turn in order] == ["p22", "p21", "p1"]
        assert order[0]["behind"] is None
        assert order[1]["lacking"] == ["VCPU"]
        assert order[1]["behind"]["reason"] == "blocked"
        assert order[2]["behind"] == {
            "reason": "share",
            "node": {"path": "n/n1", "weighted_share": 0.5, "blocked": False},
            "other": {"path": "n/n2", "weighted_share": 0.4, "blocked": False},
        }

    def test_without_a_list_everybody_wants_more_of_what_they_use(self, seed: Api, used: Cloud) -> None:
        order = ask(seed, "order", {})["order"]
        assert [turn["project_id"] for turn in order] == ["p22", "p21", "p1"]


class TestFill:
    def test_the_free_resources_are_given_progressively(self, seed: Api, cloud: Cloud) -> None:
        answer = ask(seed, "fill", {"pending": pending(p1=(GPU, 10), p21=(CPU, 10), p22=(GPU, 10))})
        assert answer["complete"]
        assert answer["portions"][0]["given"] == {"PGPU": 5, "VCPU": 0}
        assert len(answer["order"]) == 20
        assert answer["portions"][0]["share"] == 0.5

    def test_nothing_is_changed(self, seed: Api, used: Cloud) -> None:
        before = seed.get(PATH).json["nodes"]
        ask(seed, "fill", {"pending": pending(p1=(GPU, 1))})
        assert seed.get(PATH).json["nodes"] == before


class TestReclaim:
    @pytest.fixture
    def greedy(self, seed: Api, cloud: Cloud) -> list[str]:
        """p1 holds all GPUs, by consumers of 4, 2, 3 and 1."""
        return [
            take(seed, cloud, "p1", gpus0=4),
            take(seed, cloud, "p1", gpus0=2),
            take(seed, cloud, "p1", gpus1=3),
            take(seed, cloud, "p1", gpus1=1),
        ]

    def test_the_fewest_are_given_back(self, seed: Api, greedy: list[str]) -> None:
        answer = ask(seed, "reclaim", {"claimant": {"project_id": "p22", "resources": {"PGPU": 4}}})
        assert (answer["feasible"], answer["complete"], answer["lacking"]) == (True, True, {"PGPU": 4})
        assert answer["give_back"] == [
            {"consumer_uuid": greedy[0], "project_id": "p1", "resources": {"PGPU": 4}, "value": 0}
        ]

    def test_values_and_what_is_kept_decide(self, seed: Api, greedy: list[str]) -> None:
        body = {"claimant": {"project_id": "p22", "resources": {"PGPU": 2}}, "values": {greedy[0]: 5, greedy[1]: 2.5}}
        assert [held["consumer_uuid"] for held in ask(seed, "reclaim", body)["give_back"]] == [greedy[2]]
        answer = ask(seed, "reclaim", body | {"keep": [greedy[2]]})
        assert [(held["consumer_uuid"], held["value"]) for held in answer["give_back"]] == [(greedy[1], 2.5)]
        shouted = body | {"values": {greedy[0].upper(): 5, greedy[1].upper(): 2.5}, "keep": [greedy[2].upper()]}
        assert ask(seed, "reclaim", shouted) == answer

    def test_inside_a_queue_priorities_decide(self, seed: Api, greedy: list[str]) -> None:
        values = dict(zip(greedy, [5, 9, 2, 1], strict=True))
        body = {"claimant": {"project_id": "p1", "resources": {"PGPU": 2}}, "values": values, "priority": 3}
        assert [held["consumer_uuid"] for held in ask(seed, "reclaim", body)["give_back"]] == [greedy[2]]

    def test_what_fits_needs_nothing(self, seed: Api, used: Cloud) -> None:
        answer = ask(seed, "reclaim", {"claimant": {"project_id": "new", "resources": GPU}})
        assert answer == {"feasible": True, "complete": True, "lacking": {}, "give_back": [], "levels": []}

    def test_a_limit_of_the_own_queue_counts_where_the_cloud_has_enough(self, app: Flask, cloud: Cloud) -> None:
        limited = Queue("n/n1", (None, 1), ("p1", "p2"), QueueCapacity(limit={"PGPU": 4}))
        api = served(app, replace(SEED, queues=tree_of([limited])))
        low, high = take(api, cloud, "p1", gpus0=2), take(api, cloud, "p1", gpus1=2)
        body = {"claimant": {"project_id": "p2", "resources": GPU}, "priority": 5, "values": {low: 1, high: 7}}
        answer = ask(api, "reclaim", body)
        assert (answer["feasible"], [held["consumer_uuid"] for held in answer["give_back"]]) == (True, [low])


FAULTS = {
    "no pending": ("fill", {}, "body: 'pending' is a required property"),
    "no project": (
        "order",
        {"pending": [{"resources": GPU}]},
        "pending[0]: 'project_id' is a required property: it identifies the leaves of this server's tree.",
    ),
    "a consumer type": (
        "order",
        {"pending": [{"project_id": "p", "consumer_type": "A", "resources": GPU}]},
        "pending[0].consumer_type: The leaves of this server's tree are identified by 'project_id'.",
    ),
    "too many": (
        "fill",
        {"pending": [{"project_id": "p", "resources": GPU, "count": 10**9}]},
        "pending[0].count: 1000000000 is greater than the maximum of 10000",
    ),
    "an unknown class": (
        "order",
        {"pending": [{"project_id": "p", "resources": {"VCPU": 1, "CUSTOM_X": 1}}]},
        "pending[0].resources.CUSTOM_X: There is no such resource class.",
    ),
    "a class that does not count": (
        "order",
        {"pending": [{"project_id": "p", "resources": {"DISK_GB": 1}}]},
        "pending[0].resources: None of the requested classes counts towards fair shares; VCPU, PGPU do.",
    ),
}


@pytest.mark.parametrize(("what", "body", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_its_path(seed: Api, what: str, body: object, said: str) -> None:
    answer = seed.post(f"{PATH}/{what}", body)
    assert (answer.status_code, answer.json["errors"][0]["detail"].splitlines()[-1]) == (400, said)


class TestWhoMaySeeWhat:
    def test_a_reader_sees_the_way_to_its_own_project(self, seed: Api, used: Cloud) -> None:
        headers = {"x-auth-token": "user:p22", "x-roles": "reader"}
        assert list(nodes(seed.get(PATH, headers=headers))) == ["n", "n/n2", "n/n2/n22", "n/n2/n22/p22"]

    def test_a_reader_of_a_project_that_uses_nothing_sees_its_queue(self, seed: Api, used: Cloud) -> None:
        headers = {"x-auth-token": "user:new", "x-roles": "reader"}
        assert list(nodes(seed.get(PATH, headers=headers))) == ["n", "n/default"]

    def test_a_name_that_begins_like_another_shows_nothing_of_it(self, seed: Api, cloud: Cloud) -> None:
        take(seed, cloud, "p", cpus=1)
        take(seed, cloud, "pp", cpus=1)
        shown = nodes(seed.get(PATH, headers={"x-auth-token": "user:pp", "x-roles": "reader"}))
        assert list(shown) == ["n", "n/default", "n/default/pp"]

    @pytest.mark.parametrize(("roles", "status"), [("service", 200), ("member", 403), ("reader", 200)])
    def test_roles(self, seed: Api, roles: str, status: int) -> None:
        assert seed.get(PATH, headers={"x-auth-token": "user:p1", "x-roles": roles}).status_code == status

    @pytest.mark.parametrize("what", ["order", "fill", "reclaim"])
    def test_what_concerns_others_is_not_for_readers(self, seed: Api, what: str) -> None:
        headers = {"x-auth-token": "user:p1", "x-roles": "reader"}
        assert seed.post(f"{PATH}/{what}", {}, headers=headers).status_code == 403

    def test_a_tree_of_consumer_types_is_not_for_readers(self, app: Flask) -> None:
        api = served(app, replace(SEED, leaves="consumer_type"))
        assert api.get(PATH, headers={"x-auth-token": "user:p1", "x-roles": "reader"}).status_code == 403
