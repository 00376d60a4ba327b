"""Fragmentation in the server: a sample of a published trace is placed as by the library alone."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from placement.allocators.fragmentation.hosts import DeviceTask
from placement.allocators.fragmentation.outlook import Outlook
from placement.cli.simulation import traces
from placement.cli.simulation.packing import FillingHosts
from placement.cli.simulation.traces import Trace
from tests.api.conftest import Api, planner_of, serving, wait_for_background
from tests.bench.packing_cloud import GPU, LearningHosts, claim, names, nodes, profile, query
from tests.bench.rows import write_trees
from tests.bench.work import OWNER

SAMPLE = Path(__file__).parents[1] / "data" / "openb"


@pytest.fixture(params=["default", "gpuspec33", "multigpu40"])
def trace(request: pytest.FixtureRequest) -> Trace:
    return traces.read(SAMPLE, request.param)


@pytest.fixture
def cloud(trace: Trace, database_url: str) -> Iterator[Api]:
    """A server that packs for the workload, on its hosts."""
    with server(trace, database_url) as api:
        yield api


@contextmanager
def server(trace: Trace, url: str, *, beside: dict[str, object] | None = None, **changes: object) -> Iterator[Api]:
    parts = {**profile(trace), **(beside or {})}
    parts["fragmentation"] = {key: of for key, of in {**parts["fragmentation"], **changes}.items() if of is not None}
    planner = planner_of(json.dumps({"profiles": {"packing": parts}, "default_profile": "packing"}))
    with serving(url, planner=planner) as api:
        for path in names(trace):
            api.put(path)
        with api.database.writer.begin() as connection:
            write_trees(connection, nodes(trace))
        yield api


def by_get(api: Api, task: DeviceTask) -> bool:
    """Place a task as nova does: the first candidate."""
    found = api.get(query(task)).json["allocation_requests"]
    if found:
        assert api.put(f"/allocations/{uuid.uuid4()}", {**found[0], **OWNER}).status_code == 204
    return bool(found)


def by_claim(api: Api, task: DeviceTask) -> bool:
    return api.post("/planner/v1/claims", claim(task, {"uuid": str(uuid.uuid4()), **OWNER})).status_code == 201


@pytest.mark.any_database
@pytest.mark.parametrize("place", [by_get, by_claim])
def test_the_server_places_what_the_library_places(
    cloud: Api, trace: Trace, place: Callable[[Api, DeviceTask], bool]
) -> None:
    library = FillingHosts(trace.hosts, Outlook(trace.expected, trace.supply))
    for task in trace.arrivals(42, percent=100):
        assert place(cloud, task) == library.place(task)
    assert free_gpus(cloud) == free_devices(library)


def free_devices(library: FillingHosts) -> list[list[int]]:
    return sorted(sorted(device.free for device in host.devices) for host in library.hosts if host.devices)


@pytest.mark.any_database
@pytest.mark.parametrize("trace", ["gpuspec33"], indirect=True)
def test_a_server_that_learns_places_what_the_learning_library_places(trace: Trace, database_url: str) -> None:
    library = LearningHosts(trace)
    with server(trace, database_url, flavors=None) as api:
        for task in trace.arrivals(42, percent=100):
            assert by_get(api, task) == library.place(task)
            api.get("/")  # begins what is due
            wait_for_background(api.app)
        assert free_gpus(api) == free_devices(library.filling)


def free_gpus(api: Api) -> list[list[int]]:
    """Return the free shares of each host's GPUs."""
    found: dict[str, list[int]] = {}
    for provider in api.get("/resource_providers").json["resource_providers"]:
        if provider["parent_provider_uuid"]:
            used = api.get(f"/resource_providers/{provider['uuid']}/usages").json["usages"][GPU]
            found.setdefault(provider["root_provider_uuid"], []).append(1000 - used)
    return sorted(map(sorted, found.values()))


@pytest.mark.parametrize("trace", ["default"], indirect=True)
def test_the_score_of_the_first_candidate_is_shown_and_is_the_highest(cloud: Api, trace: Trace) -> None:
    task = next(task for task in trace.tasks if task.share == 1000)
    for _ in range(10):
        by_get(cloud, next(task for task in trace.tasks if 0 < task.share < 500))
    found = cloud.get(query(task).replace("limit=1", "limit=100")).json["allocation_requests"]
    scores = cloud.post("/planner/v1/scores", {"allocation_requests": found}).json["scores"]
    assert scores[0]["fragmentation"] == max(score["fragmentation"] for score in scores) > 0
    assert scores[0]["total"] == pytest.approx(scores[0]["fragmentation"])
    planned = cloud.post("/planner/v1/candidates", {k: v for k, v in claim(task, {}).items() if k != "consumer"}).json
    assert planned["scores"][0]["fragmentation"] == pytest.approx(scores[0]["fragmentation"])


@pytest.mark.parametrize("trace", ["default"], indirect=True)
def test_what_hosts_gave_before_says_nothing_of_their_devices(trace: Trace, database_url: str) -> None:
    """Cached proposals are not combined, even if the profile also scores whole hosts."""
    fit = {"weight": 0.001, "resources": {"VCPU": {"type": "LeastAllocated", "weight": 1}}}
    task = next(task for task in trace.tasks if 0 < task.share < 500)
    with server(trace, database_url, beside={"fit": fit}) as api:
        for _ in range(6):
            answers = [api.get(query(task).replace("limit=1", "limit=40")).json for _ in range(3)]
            api.database.cloud_cache = None
            assert answers == [api.get(query(task).replace("limit=1", "limit=40")).json] * 3
            assert by_get(api, task)


@pytest.mark.parametrize("trace", ["default"], indirect=True)
def test_profiles_show_the_part_as_it_can_stand_in_the_file(cloud: Api, trace: Trace) -> None:
    shown = cloud.get("/planner/v1/profiles").json["profiles"]["packing"]
    planner = planner_of(json.dumps({"profiles": {"packing": shown}, "default_profile": "packing"}))
    again = planner.profile_in_force.fragmentation
    assert again is not None
    assert again.devices == GPU
    assert len(again.flavors) == len(trace.expected)
