"""The metrics: what is counted, who may see it, that several processes add up, and the headroom of each flavor."""

import dataclasses
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from flask import Flask

from placement import __version__
from placement.api.planner.journal_feed import Following
from placement.errors import ConfigurationError
from placement.settings import HeadroomSettings, MetricsSettings, PlannerSettings
from placement.store.journal.order import Cursor
from placement.store.journal.reading import EntryFilter
from placement.telemetry.record import THREADS, ThreadUse
from placement.telemetry.shared_directory import VARIABLE, shared_directory
from tests.api.conftest import Api, serving, with_limits
from tests.clouds import allocate, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

PORT = 9778
SAMPLES = Path(__file__).parents[2] / "etc"
DASHBOARD = SAMPLES / "grafana/placement.json"
ALERTS = SAMPLES / "prometheus/alerts.yaml"


@pytest.fixture
def start(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Api]]:
    """Start applications with metrics, on a database of each kind."""
    monkeypatch.delenv(VARIABLE, raising=False)

    def begin(flavors: Mapping[str, str] | None = None, headroom: HeadroomSettings | None = None, **options) -> Api:
        metrics = MetricsSettings(enabled=True, directory=str(tmp_path / "metrics"))
        private = frozenset({'a "large" one'} & {*(flavors or {})})
        planner = PlannerSettings(flavors=flavors or {}, private_flavors=private, aggregates=AGGREGATES)
        settings = {"metrics": dataclasses.replace(metrics, **options), "headroom": headroom or HeadroomSettings()}
        return running.enter_context(serving(database_url, planner=planner, **settings))

    with ExitStack() as running:
        yield begin
    os.environ.pop(VARIABLE, None)


@pytest.fixture
def api(start: Callable[..., Api]) -> Api:
    return start()


def shown(api: Api) -> dict[str, float]:
    with api.get("/metrics") as answer:
        lines = answer.text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_requests_are_counted_by_method_route_and_status(api: Api) -> None:
    for path in (f"/resource_providers/{uuid.uuid4()}", f"/resource_providers/{uuid.uuid4()}", "/traits", "/nowhere"):
        api.get(path).close()
    api.request("BREW", "/traits").close()
    found = shown(api)
    name = 'placement_request_seconds_count{method="%s",route="%s",status="%s"}'
    assert found[name % ("GET", "/resource_providers/<uuid>", 404)] == 2
    assert found[name % ("GET", "/traits", 200)] == 1
    assert found[name % ("GET", "none", 404)] == 1
    assert found[name % ("OTHER", "/traits", 405)] == 1
    assert found["placement_sql_statements_total"] >= 3


def test_searches_that_find_nothing_are_counted_by_cause(api: Api) -> None:
    stored(api.app, provider("h1", VCPU=8), provider("h2", VCPU=8))
    queries = ["resources=VCPU:9", "resources=VCPU:10", "resources=PGPU:1", "resources=VCPU:1"]
    for query in queries:
        api.get(f"/allocation_candidates?{query}").close()
    found = shown(api)
    assert found['placement_candidate_search_empty_total{cause="capacity"}'] == 2
    assert found['placement_candidate_search_empty_total{cause="inventory"}'] == 1


def test_the_cause_is_that_of_the_group_that_nobody_can_serve(api: Api) -> None:
    """Other groups can be served; if all can, the cause is that no tree can serve each of them."""
    stored(api.app, provider("h1", VCPU=8), provider("h2", DISK_GB=8))
    both = "/allocation_candidates?resources_A=VCPU:{}&resources_B=DISK_GB:{}&group_policy=none"
    for vcpu, disk in ((1, 9), (9, 9), (1, 1)):
        api.get(both.format(vcpu, disk)).close()
    found = shown(api)
    assert found['placement_candidate_search_empty_total{cause="capacity"}'] == 2
    assert found['placement_candidate_search_empty_total{cause="every_group"}'] == 1


def test_searches_retries_and_connections_are_counted(api: Api) -> None:
    stored(api.app, provider("h1", VCPU=8), provider("h2", VCPU=8))
    for amount in (1, 9):
        api("GET", f"/allocation_candidates?resources=VCPU:{amount}", "1.39")
    api.database.note_retry("deadlock")
    api.database.note_fault("disk full", "No space left on device", kind="write")
    found = shown(api)
    assert found["placement_candidate_search_seconds_count"] == 2
    assert found["placement_candidate_search_candidates_sum"] == 2
    assert found['placement_candidate_search_trees_bucket{le="0.0"}'] == 1
    assert found["placement_candidate_search_budget_hits_total"] == 0
    assert found['placement_transaction_retries_total{reason="deadlock"}'] == 1
    assert found['placement_database_faults_total{cause="disk full"}'] == 1
    assert found['placement_failed_writes_total{cause="disk full"}'] == 1
    assert found["placement_database_connections"] == 0
    assert found["placement_usage_is_kept"] == 1


def test_a_search_that_runs_out_of_steps_is_counted_whatever_it_found(api: Api) -> None:
    stored(api.app, provider("h1", VCPU=8, DISK_GB=9))
    with_limits(api, steps_per_tree=0, steps_per_request=0)
    assert api.get("/allocation_candidates?resources=VCPU:1,DISK_GB:1").status_code == 503
    found = shown(api)
    assert found["placement_candidate_search_budget_hits_total"] == 1
    assert found["placement_candidate_search_seconds_count"] == 1


def test_capacity_has_the_names_of_the_openstack_exporter(api: Api, start: Callable[..., Api]) -> None:
    cloud = stored(api.app, provider('the "host"', VCPU=8))
    allocate(api, cloud.providers['the "host"'], {"VCPU": 3})
    labels = r'{hostname="the \"host\"",resourcetype="VCPU"}'
    found = shown(api)
    assert found["openstack_placement_up"] == 1
    assert {name: found[f"openstack_placement_resource_{name}{labels}"] for name in ("total", "usage")} == {
        "total": 8,
        "usage": 3,
    }
    assert found[f"openstack_placement_resource_allocation_ratio{labels}"] == 1
    assert found[f"openstack_placement_resource_reserved{labels}"] == 0
    assert found[f"openstack_placement_resource_generation{labels}"] == 2
    assert not any(name.startswith("openstack_placement_resource") for name in shown(start(capacity=False)))


def test_what_consumers_hold_is_shown_if_it_is_wanted(start: Callable[..., Api]) -> None:
    api = start(allocations=True)
    host = stored(api.app, provider("h1", VCPU=8, DISK_GB=9)).providers["h1"]
    consumer = allocate(api, host, {"VCPU": 3, "DISK_GB": 2})
    name = f'openstack_placement_resource_provider_allocations{{hostname="h1",uuid="{consumer}",resourcetype="%s"}}'
    found = shown(api)
    assert (found[name % "VCPU"], found[name % "DISK_GB"]) == (3, 2)
    assert "openstack_placement_resource_provider_allocations" not in start().get("/metrics").text


def test_every_line_is_in_the_text_format(api: Api) -> None:
    stored(api.app, provider("h1", VCPU=8))
    line = re.compile(r'(# (HELP|TYPE) [a-z_]+ .*|[a-z_]+(\{([a-z_]+="[^"\n]*",?)+\})? [0-9.e+-]+|)')
    assert [text for text in api.get("/metrics").text.splitlines() if not line.fullmatch(text)] == []
    assert api.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")


def test_only_those_whom_the_policy_lets_in_see_them(api: Api) -> None:
    assert api.get("/metrics", headers={"x-auth-token": "somebody"}).status_code == 403
    assert api.app.test_client().get("/metrics").status_code == 401


def test_a_port_of_their_own_shows_them_to_everybody_and_nothing_else(start: Callable[..., Api]) -> None:
    client = start(listen=f"127.0.0.1:{PORT}").app.test_client()
    own = {"base_url": f"http://localhost:{PORT}"}
    assert b"placement_usage_is_kept" in client.get("/metrics", **own).data
    assert client.get("/readycheck", **own).get_json()["usage"] == "kept"
    assert client.get("/resource_providers", headers={"x-auth-token": "admin"}, **own).status_code == 404
    assert client.get("/metrics", headers={"host": f"localhost:{PORT}"}).status_code == 401


def test_without_metrics_there_is_nothing_to_see(app: Flask) -> None:
    assert Api(app).get("/metrics").status_code == 404


def test_processes_are_summed_up_and_the_dead_hold_no_connections(start: Callable[..., Api], tmp_path: Path) -> None:
    """The directory has files of two processes, this one and one that has exited."""
    api = start()
    api.get("/traits").close()
    dead = 2**22 + 1  # above the largest process id
    for path in (tmp_path / "metrics").iterdir():
        (path.parent / path.name.replace(f"_{os.getpid()}.", f"_{dead}.")).write_bytes(path.read_bytes())
    name = 'placement_request_seconds_count{method="GET",route="/traits",status="200"}'
    assert shown(api)[name] == 2
    assert not list((tmp_path / "metrics").glob(f"gauge_live*_{dead}.db"))


def test_a_directory_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"directory .*/file/below cannot be used"):
        shared_directory(str(tmp_path / "file" / "below"))


def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        MetricsSettings(listen="127.0.0.1")


def shown_after_anything(api: Api) -> set[str]:
    """Return the names of all metrics, once everything that they count has happened."""
    server = api.server
    stored(api.app, provider("h1", VCPU=8))
    api.get("/allocation_candidates?resources=VCPU:1").close()
    server.meters.found_nothing("capacity")
    server.database.note_retry("deadlock")
    server.database.note_drop("triggers")
    server.database.note_fault("disk full", "No space left on device", kind="write")
    return {name.partition("{")[0] for name in shown(api)}


def metrics_in(*expressions: str) -> set[str]:
    return {name for text in expressions for name in re.findall(r"(?:openstack_)?placement_[a-z_]+", text)}


def test_the_dashboard_asks_for_metrics_that_exist(api: Api) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = metrics_in(*[target["expr"] for panel in panels for target in panel["targets"]])
    assert asked <= shown_after_anything(api)


def test_alerts_ask_for_metrics_that_exist_and_say_what_to_do(api: Api) -> None:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    asked = metrics_in(*[rule["expr"] for rule in group["rules"]])
    assert asked - {"placement_standby_is_used"} <= shown_after_anything(api)
    assert all(rule["annotations"]["action"].endswith(".") for rule in group["rules"])


def test_the_work_of_processes_is_shown(api: Api) -> None:
    found = shown(api)
    assert found["placement_requests_in_progress"] == 1, "the one that asks"
    assert found["placement_worker_starts_total"] == 1
    assert found["placement_database_connections_limit"] > 0
    assert found[f'placement_worker_memory_bytes{{pid="{os.getpid()}"}}'] > 2**20
    (built,) = [name for name in found if name.startswith("placement_build_info")]
    assert f'version="{__version__}"' in built
    api.get("/traits").close()
    assert shown(api)["placement_requests_in_progress"] == 1


def test_threads_and_the_queue_are_those_of_the_server(api: Api) -> None:
    api.get("/traits", environ_base={THREADS: ThreadUse(4, lambda: 3)}).close()
    found = shown(api)
    assert (found["placement_threads"], found["placement_requests_waiting"]) == (4, 3)


def test_the_journal_and_its_listeners_are_shown(api: Api) -> None:
    stored(api.app, provider("h1", VCPU=8))
    listeners = api.server.listeners
    listener = listeners.admit(Following(EntryFilter(), 10, Cursor()))
    found = shown(api)
    assert found["placement_journal_rows"] >= 2
    assert 0 <= found["placement_journal_age_seconds"] < 3600
    assert found["placement_journal_lag_seconds"] >= 0
    assert found["placement_journal_listeners"] == 1
    listener.withdraw()
    assert shown(api)["placement_journal_listeners"] == 0


def test_what_the_cache_answers_is_counted(api: Api) -> None:
    stored(api.app, provider("h1", VCPU=8))
    for _ in range(3):
        api.get("/allocation_candidates?resources=VCPU:1&limit=5").close()
    found = shown(api)
    assert 1 <= found["placement_candidate_cache_hits_total"] < found["placement_candidate_search_seconds_count"]
    assert found['placement_caches_read_timestamp_seconds{of="trees"}'] > 1.7e9


FLAVORS = {"small": "resources=VCPU:2", 'a "large" one': "resources=VCPU:6"}
ZONE, RACK = str(uuid.uuid4()), str(uuid.uuid4())
AGGREGATES = {"zone": {'the "first"': (ZONE,)}, "rack": {"r1": (RACK,)}}
SMALL, LARGE = [
    f'openstack_free_capacity_by_flavor_total{{flavor_name="{name}",public="{public}"}}'
    for name, public in (("small", True), (r"a \"large\" one", False))
]


def counted(api: Api) -> dict[str, float]:
    api.get("/metrics").close()
    api.server.meters.headroom.counting.thread.join()
    lines = api.server.meters.headroom.lines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_each_flavor_is_counted_in_the_background(start: Callable[..., Api]) -> None:
    api = start(FLAVORS, HeadroomSettings(seconds=3600))
    cloud = stored(api.app, provider("h1", VCPU=8), provider("h2", VCPU=8))
    assert counted(api) == {SMALL: 8, LARGE: 2}
    allocate(api, cloud.providers["h1"], {"VCPU": 4})
    assert counted(api) == {SMALL: 8, LARGE: 2}, "a count is not repeated before its time"
    text = api.get("/metrics").text
    assert "# TYPE openstack_free_capacity_by_flavor_total gauge\n" + f"{SMALL} 8\n" in text


def test_a_request_may_count_all_flavors_of_the_server_however_many(start: Callable[..., Api]) -> None:
    """The limit on a request's own list is not one on what the operator has."""
    api = start(flavors={f"f{number}": f"resources=VCPU:{number + 1}" for number in range(300)})
    stored(api.app, provider("h1", VCPU=8))
    assert len(api.post("/planner/v1/headroom", {}).json["headroom"]) == 300


def test_hosts_are_told_where_that_is_asked_for(start: Callable[..., Api]) -> None:
    api = start(FLAVORS, HeadroomSettings(seconds=3600, by_hypervisor=True))
    part = provider("part", aggregates=["first"])
    named = {"first": ZONE, "rack": RACK}
    stored(api.app, provider("h1", part, VCPU=8), provider("h2", VCPU=4, aggregates=["rack"]), aggregates=named)
    found = counted(api)
    name = 'openstack_free_capacity_hypervisor_by_flavor{hypervisor="%s",flavor_name="small",az_aggregate="%s",%s}'
    assert found[name % ("h1", r"the \"first\"", 'project_aggregate=""')] == 4
    assert found[name % ("h2", "", 'project_aggregate=""')] == 2


def test_a_flavor_of_what_there_is_not_yet_is_left_out(start: Callable[..., Api]) -> None:
    api = start({"small": "resources=VCPU:2", "odd": "resources=CUSTOM_NOT_YET:1"}, HeadroomSettings(seconds=3600))
    stored(api.app, provider("h1", VCPU=8))
    assert counted(api) == {SMALL: 4}


def test_a_flavor_that_is_no_request_stops_the_start(start: Callable[..., Api]) -> None:
    with pytest.raises(ConfigurationError, match=r"flavors\.odd: "):
        start({"odd": "resources=VCPU"})


def test_the_flavors_of_the_server_are_counted_where_no_requests_are_sent(start: Callable[..., Api]) -> None:
    api = start(FLAVORS)
    stored(api.app, provider("h1", VCPU=8))
    found = api.post("/planner/v1/headroom", {}).get_json()["headroom"]
    assert {name: one["fits"] for name, one in found.items()} == {"small": 4, 'a "large" one': 1}
