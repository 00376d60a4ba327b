"""A profile without flavors learns from requests what work to expect: with its traits, for all workers, for good."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.api.conftest import Api, planner_of, serving, wait_for_background
from tests.claims import proposed
from tests.clouds import provider
from tests.concurrency.together import together
from tests.http_calls import ask
from tests.stored_clouds import stored

GPU, A, B = "CUSTOM_GPU_MILLI", "CUSTOM_GPU_MODEL_A", "CUSTOM_GPU_MODEL_B"
LEARNING = {"devices": GPU, "size": 1000, "kinds": ["CUSTOM_GPU_MODEL_*"], "beside": ["VCPU"]}
OWNER = {"project_id": "p", "user_id": "u"}
HALF = f"resources=VCPU:2&resources_G={GPU}:500"
HALF_OF_A = f"{HALF}&required_G={A}"

Start = Callable[..., Api]


@pytest.fixture
def start(database_url: str) -> Iterator[Start]:
    """Starts a worker on the database: an application of its own."""

    def begin(**changed: object) -> Api:
        profiles = {"packing": {"fragmentation": {**LEARNING, **changed}}}
        planner = planner_of(json.dumps({"profiles": profiles, "default_profile": "packing"}))
        return running.enter_context(serving(database_url, planner=planner))

    with ExitStack() as running:
        yield begin


@pytest.fixture
def worker(start: Start) -> Api:
    """A worker, and a cloud with devices of two models."""
    api = start()
    gpus = [provider(f"gpu{n}", **{GPU: 1000}, traits=[A if n % 2 else B]) for n in range(8)]
    stored(api.app, provider("host", *gpus, VCPU=64))
    return api


def save(api: Api) -> None:
    judge = api.server.fragmentation_judges[api.server.settings.planner.profile_in_force.name]
    judge.refresh(api.database)


def candidates(api: Api, query: str) -> list[Any]:
    found: list[Any] = ask(api, "GET", f"/allocation_candidates?{query}")["allocation_requests"]
    return found


def place(api: Api, query: str) -> str:
    """Ask and take the first candidate, as nova does; return the consumer."""
    return take(api, candidates(api, query)[0])


def take(api: Api, candidate: Any) -> str:
    consumer = str(uuid.uuid4())
    assert api.put(f"/allocations/{consumer}", proposed(candidate)).status_code == 204
    return consumer


def groups_of(query: str) -> dict[str, Any]:
    """Return the body of a planner request for a half of a device."""
    device = {"resources": {GPU: 500}, "required": [A] if query == HALF_OF_A else []}
    return {"groups": {"": {"resources": {"VCPU": 2}}, "_G": device}}


def plan(api: Api, query: str) -> None:
    take(api, ask(api, "POST", "/planner/v1/candidates", body=groups_of(query))["allocation_requests"][0])


def claim(api: Api, query: str) -> None:
    consumer = {"uuid": str(uuid.uuid4()), **OWNER, "consumer_type": "INSTANCE"}
    assert api.post("/planner/v1/claims", {**groups_of(query), "consumer": consumer}).status_code == 201


def learnt(api: Api) -> dict[tuple[str, ...], float]:
    """Return what is shown to be in force: the kinds of halves of devices -> how many."""
    shown = api.get("/planner/v1/profiles").json["learnt"]["packing"]["flavors"].values()
    assert all(one["resources"] == {"VCPU": 2} and (one["devices"], one["share"]) == (1, 500) for one in shown)
    return {tuple(one["kinds"]): one["weight"] for one in shown}


@pytest.mark.parametrize("gets", [place, plan, claim])
def test_work_is_learnt_with_the_models_that_it_insists_on(worker: Api, gets: Callable[[Api, str], object]) -> None:
    for query in (HALF_OF_A, HALF_OF_A, HALF_OF_A, HALF):
        gets(worker, query)
    save(worker)
    assert learnt(worker) == {(A,): 3, (): 1}


def test_neither_retries_nor_refusals_nor_resizes_count(worker: Api) -> None:
    consumer = place(worker, HALF)
    for _ in range(20):
        candidates(worker, f"resources=VCPU:2&resources_G={GPU}:1000&required_G={A}")  # and takes nothing
        assert not candidates(worker, f"{HALF_OF_A}&member_of={uuid.uuid4()}")
    held = worker.get(f"/allocations/{consumer}").json
    assert worker.put(f"/allocations/{consumer}", held).status_code == 204
    save(worker)
    assert learnt(worker) == {(): 1}


def test_what_was_learnt_is_in_force_after_a_restart(worker: Api, start: Start) -> None:
    place(worker, HALF_OF_A)
    save(worker)
    since = worker.get("/planner/v1/profiles").json["learnt"]["packing"]["since"]
    restarted = start()
    assert learnt(restarted) == {(A,): 1}
    candidates(restarted, HALF)
    assert learnt(restarted) == {(A,): 1}
    assert restarted.get("/planner/v1/profiles").json["learnt"]["packing"]["since"] == since is not None


def test_workers_learn_together_though_one_asks_and_another_takes(worker: Api, start: Start) -> None:
    workers = [worker, start(), start(), start()]
    for asking, taking in zip(workers, [*workers[1:], worker], strict=True):
        assert taking.put(f"/allocations/{uuid.uuid4()}", proposed(candidates(asking, HALF_OF_A)[0])).status_code == 204
    together([lambda api=api: save(api) for api in workers])
    for api in workers:
        save(api)
        assert learnt(api) == {(A,): 4}


def test_the_first_work_counts_soon(worker: Api) -> None:
    """After 8 allocations, and each time they have doubled, not only every ``refresh_s`` seconds."""
    in_force = []
    for number in range(16):
        place(worker, HALF_OF_A if number < 8 else HALF)
        worker.get("/")  # begins what is due
        wait_for_background(worker.app)
        in_force.append(learnt(worker))
    assert in_force == [{}] * 7 + [{(A,): 8}] * 8 + [{(A,): 8, (): 8}]


def test_a_mix_of_other_classes_is_not_taken_over(worker: Api, start: Start) -> None:
    place(worker, HALF_OF_A)
    save(worker)
    assert learnt(start(size=2000)) == {}
