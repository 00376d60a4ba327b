"""``[fair_share] enforce = plain``: PUT and POST /allocations are refused if unfair, with the numbers."""

import pytest
from flask import Flask

from placement.settings.values import FairnessSettings
from tests.api.conftest import Api, with_settings
from tests.claims import claimed, consumer_generation, entry, held, make_provider, new_uuid, old_entry, used

pytestmark = pytest.mark.any_database

CODE = "placement.unfair_allocation"
AGGREGATE = "0c6f8b1f-0f3a-4a01-9c2e-4f0a59d44c38"
FAIR = """
fair_share:
  classes: [PGPU, VCPU]
  tree:
    root/eng: {projects: [ann, eve]}
    root/sci: {projects: [bob]}
    root/ops: {projects: [pat], limit: {PGPU: 3}}
"""
TYPES = """
fair_share:
  classes: [PGPU]
  leaves: consumer_type
  tree: {root/vm: {consumer_types: [INSTANCE]}, root/job: {consumer_types: [JOB]}}
"""
ENFORCED = FairnessSettings("plain", ("INSTANCE",))


def serving(app: Flask, fair: str = FAIR, fairness: FairnessSettings = ENFORCED) -> Api:
    """Return a client of a server with the gate."""
    return with_settings(app, planner_yaml=fair, fairness=fairness)


@pytest.fixture
def fair(app: Flask) -> Api:
    return serving(app)


@pytest.fixture
def gpus(fair: Api) -> str:
    """A provider with ten GPUs, of which bob holds one."""
    provider = make_provider(fair, PGPU=10, VCPU=100, DISK_GB=1000)
    claimed(fair, {provider: {"PGPU": 1}}, project_id="bob")
    return provider


def put(api: Api, consumer: str, provider: str, gpus: int, generation: int | None = None, **owner: str):
    owner = {"project_id": "ann", **owner}
    return api.put(f"/allocations/{consumer}", entry({provider: {"PGPU": gpus}}, generation, **owner))


def refusal(answer) -> str:
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"]) == (409, CODE)
    return str(error["detail"].splitlines()[-1])


def test_more_than_its_part_is_refused_with_the_numbers_and_nothing_is_written(fair: Api, gpus: str) -> None:
    consumer = new_uuid()
    assert refusal(put(fair, consumer, gpus, 6)) == (
        "With this, root/eng would hold 6 PGPU and is entitled to 5. Of PGPU, 3 would be left, and others lack 4 of "
        "what they are entitled to."
    )
    assert used(fair, gpus)["PGPU"] == 1
    assert held(fair, consumer) == {}
    assert put(fair, consumer, gpus, 5).status_code == 204


def test_it_is_off_unless_it_is_configured(app: Flask) -> None:
    plain = serving(app, fairness=FairnessSettings())
    provider = make_provider(plain, PGPU=10)
    claimed(plain, {provider: {"PGPU": 1}}, project_id="bob")
    assert put(plain, new_uuid(), provider, 9).status_code == 204


def test_only_what_is_taken_on_top_counts(fair: Api, gpus: str) -> None:
    consumer = claimed(fair, {gpus: {"PGPU": 5}}, project_id="ann")
    assert "would hold 6 PGPU" in refusal(put(fair, consumer, gpus, 6, 1))
    assert put(fair, consumer, gpus, 5, 1).status_code == 204
    assert put(fair, consumer, gpus, 2, 2).status_code == 204
    assert put(fair, consumer, gpus, 5, 3).status_code == 204
    assert fair.delete(f"/allocations/{consumer}").status_code == 204


def test_who_has_too_much_may_shrink_and_move(app: Flask, fair: Api, gpus: str) -> None:
    """The rule was introduced after the allocations."""
    consumer = claimed(serving(app, fairness=FairnessSettings()), {gpus: {"PGPU": 9}}, project_id="ann")
    other = make_provider(fair, PGPU=10)
    claimed(fair, {other: {"PGPU": 9}}, project_id="bob")
    assert put(fair, consumer, other, 1, 1).status_code == 204
    assert put(fair, consumer, gpus, 1, 2).status_code == 204


def test_a_move_by_way_of_a_consumer_of_another_type_is_not_refused(fair: Api, gpus: str) -> None:
    """As nova moves an instance: the migration takes over its allocations, and the instance claims elsewhere."""
    consumer, migration = claimed(fair, {gpus: {"PGPU": 5}}, project_id="ann"), new_uuid()
    handed_over = {
        consumer: entry({}, 1, project_id="ann"),
        migration: entry({gpus: {"PGPU": 5}}, project_id="ann", consumer_type="MIGRATION"),
    }
    assert fair.post("/allocations", handed_over).status_code == 204
    claimed(fair, {make_provider(fair, PGPU=10): {"PGPU": 1}}, project_id="bob")
    assert put(fair, consumer, make_provider(fair, PGPU=10), 5).status_code == 204


def test_clients_that_name_no_type_are_unknown(app: Flask) -> None:
    fair = serving(app, fairness=FairnessSettings("plain", ("unknown",)))
    provider = make_provider(fair, PGPU=10)

    def claim(project: str, gpus: int):
        return fair.put(
            f"/allocations/{new_uuid()}", old_entry({provider: {"PGPU": gpus}}, project_id=project), version="1.27"
        )

    assert claim("bob", 1).status_code == 204
    assert "root/eng would hold 6 PGPU" in refusal(claim("ann", 6))
    assert claim("ann", 5).status_code == 204


def test_a_type_that_is_not_named_again_stays(fair: Api, gpus: str) -> None:
    consumer = claimed(fair, {gpus: {"PGPU": 5}}, project_id="ann")
    body = {**old_entry({gpus: {"PGPU": 6}}, project_id="ann"), "consumer_generation": 1}
    assert "would hold 6 PGPU" in refusal(fair.put(f"/allocations/{consumer}", body, version="1.28"))


@pytest.mark.parametrize(
    ("taken", "consumer_type", "refused"),
    [
        ({"PGPU": 9}, "VOLUME", ""),
        ({"DISK_GB": 900}, "INSTANCE", ""),
        ({"PGPU": 1, "VCPU": 60}, "INSTANCE", "root/eng would hold 60 VCPU"),
    ],
    ids=["another type", "a class that does not count", "each class that counts"],
)
def test_classes_and_types_that_count_are_asked_about(
    fair: Api, gpus: str, taken: dict[str, int], consumer_type: str, refused: str
) -> None:
    claimed(fair, {gpus: {"VCPU": 1, "DISK_GB": 1}}, project_id="bob")
    body = entry({gpus: taken}, project_id="ann", consumer_type=consumer_type)
    answer = fair.put(f"/allocations/{new_uuid()}", body)
    assert refused in refusal(answer) if refused else answer.status_code == 204


def test_several_consumers_count_together(fair: Api, gpus: str) -> None:
    def body(each: int):
        return {new_uuid(): entry({gpus: {"PGPU": each}}, project_id=project) for project in ("ann", "eve")}

    assert "root/eng would hold 6 PGPU" in refusal(fair.post("/allocations", body(3)))
    assert fair.post("/allocations", body(2)).status_code == 204


def test_what_one_gives_up_in_the_same_request_may_be_taken(fair: Api, gpus: str) -> None:
    consumer, other = claimed(fair, {gpus: {"PGPU": 5}}, project_id="ann"), new_uuid()
    body = {
        consumer: entry({}, consumer_generation(fair, consumer), project_id="ann"),
        other: entry({gpus: {"PGPU": 5}}, project_id="ann"),
    }
    assert fair.post("/allocations", body).status_code == 204


def test_a_limit_is_never_exceeded(fair: Api, gpus: str) -> None:
    assert refusal(put(fair, new_uuid(), gpus, 4, project_id="pat")) == (
        "With this, root/ops would hold 4 PGPU; its limit is 3."
    )
    assert put(fair, new_uuid(), gpus, 3, project_id="pat").status_code == 204


def test_only_the_providers_of_the_partition_count(app: Flask) -> None:
    fair = serving(app, f"{FAIR}  partition: {AGGREGATE}\n")
    inside, outside = make_provider(fair, PGPU=10), make_provider(fair, PGPU=10)
    body = {"aggregates": [AGGREGATE], "resource_provider_generation": 1}
    assert fair.put(f"/resource_providers/{inside}/aggregates", body).status_code == 200
    for provider in (inside, outside):
        claimed(fair, {provider: {"PGPU": 1}}, project_id="bob")
    assert put(fair, new_uuid(), outside, 9).status_code == 204
    assert "root/eng would hold 6 PGPU" in refusal(put(fair, new_uuid(), inside, 6))


def test_a_tree_of_consumer_types(app: Flask) -> None:
    fair = serving(app, TYPES, FairnessSettings("plain", ("INSTANCE", "JOB")))
    provider = make_provider(fair, PGPU=10)
    claimed(fair, {provider: {"PGPU": 1}}, consumer_type="JOB")
    assert "root/vm would hold 6 PGPU" in refusal(put(fair, new_uuid(), provider, 6))


def test_the_generation_of_a_consumer_is_asked_about_first(fair: Api, gpus: str) -> None:
    answer = put(fair, new_uuid(), gpus, 6, 3)
    assert (answer.status_code, answer.json["errors"][0]["code"]) == (409, "placement.concurrent_update")


def test_what_does_not_fit_at_all_is_told_so(fair: Api, gpus: str) -> None:
    answer = put(fair, new_uuid(), gpus, 11)
    assert "exceed the capacity" in answer.json["errors"][0]["detail"]
