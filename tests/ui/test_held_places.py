"""Places that somebody holds exclusively have room for nobody else: on the map, and for those who leave a host."""

from urllib.parse import quote

import pytest
from flask import Flask

from placement.settings import DatabaseSettings, PlannerSettings, Settings
from tests import clouds
from tests.api.conftest import Api
from tests.clouds import provider
from tests.stored_clouds import stored
from tests.ui.visitor import Visitor

SWITCH, LOCK = "CUSTOM_HW_PCIE_SWITCH", "CUSTOM_PCIE_LOCK"
ONE_GPU = quote("resources=PGPU:1")


@pytest.fixture
def settings(sqlite_url: str) -> Settings:
    """A planner file whose switches have a lock."""
    planner = PlannerSettings(levels={"pcie": SWITCH}, exclusive={"pcie": LOCK})
    return Settings(database=DatabaseSettings(connection=sqlite_url), auth_strategy="noauth2", planner=planner)


def host(name: str) -> clouds.Provider:
    gpu = provider(f"{name}-gpu0", PGPU=1)
    return provider(name, provider(f"{name}-switch0", gpu, traits=(SWITCH,), CUSTOM_PCIE_LOCK=10), VCPU=8)


@pytest.fixture
def providers(app: Flask) -> dict[str, str]:
    """Two hosts with a GPU each: one consumer holds a switch exclusively, another uses the other host's GPU."""
    made = stored(app, host("held"), host("used"))
    clouds.allocate(Api(app), made.providers["held-switch0"], {LOCK: 10})
    clouds.allocate(Api(app), made.providers["used-gpu0"], {"PGPU": 1})
    return made.providers


def test_the_map_counts_nothing_that_is_held_exclusively(providers: dict[str, str], visitor: Visitor):
    page = visitor.page(f"/ui/map?query={ONE_GPU}")
    assert "0 fit 0 of 2 hosts have room 0 PGPU free" in page.text
    told = visitor.page(f"/ui/map/host?host={providers['held']}&query={ONE_GPU}").text
    assert "One more fits here." not in told
    assert "Only one condition prevents one more: places that nobody else holds exclusively" in told


def test_nobody_who_leaves_a_host_is_sent_to_a_place_that_is_held(providers: dict[str, str], visitor: Visitor):
    page = visitor.page(f"/ui/providers/{providers['used']}/maintenance")
    assert [row[-1] for row in page.cells("Consumers to move, and where to")] == ["nowhere"]
