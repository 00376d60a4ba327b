"""The headroom of each flavor, among the metrics."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from placement.app import create_app
from placement.errors import ConfigurationError
from placement.settings import DatabaseSettings, HeadroomSettings, MetricsSettings, PlannerSettings, Settings
from placement.telemetry.shared_directory import VARIABLE
from tests.api.conftest import Api
from tests.clouds import allocate, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

FLAVORS = {"small": "resources=VCPU:2", 'a "large" one': "resources=VCPU:6"}
ZONE, RACK = str(uuid.uuid4()), str(uuid.uuid4())
AGGREGATES = {"zone": {'the "first"': (ZONE,)}, "rack": {"r1": (RACK,)}}
SMALL, LARGE = [
    f'openstack_free_capacity_by_flavor_total{{flavor_name="{name}",public="{public}"}}'
    for name, public in (("small", True), (r"a \"large\" one", False))
]


@pytest.fixture
def start(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Api]]:
    """Start applications with metrics and flavors, on a database of each kind."""
    monkeypatch.delenv(VARIABLE, raising=False)
    started: list[Api] = []

    def begin(flavors=FLAVORS, **options: object) -> Api:
        settings = Settings(
            database=DatabaseSettings(connection=database_url),
            auth_strategy="noauth2",
            metrics=MetricsSettings(enabled=True, directory=str(tmp_path / "metrics")),
            headroom=HeadroomSettings(**options),
            planner=PlannerSettings(
                flavors=flavors, private_flavors=frozenset({'a "large" one'}), aggregates=AGGREGATES
            ),
        )
        started.append(Api(create_app(settings)))
        return started[-1]

    yield begin
    for api in started:
        api.app.extensions["placement"].database.dispose()
    os.environ.pop(VARIABLE, None)


def counted(api: Api) -> dict[str, float]:
    """Return the metrics once background counting is done."""
    api.get("/metrics").close()
    api.app.extensions["placement"].meters.headroom.counting.thread.join()
    lines = api.app.extensions["placement"].meters.headroom.lines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_each_flavor_is_counted_in_the_background(start: Callable[..., Api]) -> None:
    api = start(seconds=3600)
    cloud = stored(api.app, provider("h1", VCPU=8), provider("h2", VCPU=8))
    assert counted(api) == {SMALL: 8, LARGE: 2}
    allocate(api.call, cloud.providers["h1"], {"VCPU": 4})
    assert counted(api) == {SMALL: 8, LARGE: 2}, "a count is not repeated before its time"
    text = api.get("/metrics").text
    assert "# TYPE openstack_free_capacity_by_flavor_total gauge\n" + f"{SMALL} 8\n" in text


def test_a_request_may_count_all_flavors_of_the_server_however_many(start: Callable[..., Api]) -> None:
    """The limit on a request's own list is not one on what the operator has."""
    api = start(flavors={f"f{number}": f"resources=VCPU:{number + 1}" for number in range(300)})
    stored(api.app, provider("h1", VCPU=8))
    assert len(api.post("/planner/v1/headroom", {}).json["headroom"]) == 300


def test_hosts_are_told_where_that_is_asked_for(start: Callable[..., Api]) -> None:
    api = start(seconds=3600, by_hypervisor=True)
    part = provider("part", aggregates=["first"])
    named = {"first": ZONE, "rack": RACK}
    stored(api.app, provider("h1", part, VCPU=8), provider("h2", VCPU=4, aggregates=["rack"]), aggregates=named)
    found = counted(api)
    name = 'openstack_free_capacity_hypervisor_by_flavor{hypervisor="%s",flavor_name="small",az_aggregate="%s",%s}'
    assert found[name % ("h1", r"the \"first\"", 'project_aggregate=""')] == 4
    assert found[name % ("h2", "", 'project_aggregate=""')] == 2


def test_a_flavor_of_what_there_is_not_yet_is_left_out(start: Callable[..., Api]) -> None:
    api = start({"small": "resources=VCPU:2", "odd": "resources=CUSTOM_NOT_YET:1"}, seconds=3600)
    stored(api.app, provider("h1", VCPU=8))
    assert counted(api) == {SMALL: 4}


def test_a_flavor_that_is_no_request_stops_the_start(start: Callable[..., Api]) -> None:
    with pytest.raises(ConfigurationError, match=r"flavors\.odd: "):
        start({"odd": "resources=VCPU"})


def test_the_flavors_of_the_server_are_counted_where_no_requests_are_sent(start: Callable[..., Api]) -> None:
    api = start()
    stored(api.app, provider("h1", VCPU=8))
    found = api.post("/planner/v1/headroom", {}).get_json()["headroom"]
    assert {name: one["fits"] for name, one in found.items()} == {"small": 4, 'a "large" one': 1}
