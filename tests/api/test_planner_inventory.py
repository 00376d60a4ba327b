"""GET /planner/v1/inventory returns what all single reads return, in one answer and a few statements."""

import uuid
from typing import Any

import pytest

from placement.api.planner.bulk_read import PROVIDERS_AT_ONCE
from tests.api.conftest import Api
from tests.clouds import SHARES, allocate, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

AGGREGATES = {"A": str(uuid.uuid4()), "B": str(uuid.uuid4())}
PATH = "/planner/v1/inventory"


@pytest.fixture
def cloud(api: Api) -> dict[str, str]:
    """Hosts of two sizes, one with a device below it, and a pool."""
    built = stored(
        api.app,
        provider("h1", provider("h1-gpu", VGPU=4, traits=["HW_GPU_API_VULKAN"]), VCPU=8, aggregates=["A", "B"]),
        provider("h2", VCPU=2, MEMORY_MB=512),
        provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["A"]),
        provider("bare"),
        aggregates=AGGREGATES,
    )
    allocate(api, built.providers["h1"], {"VCPU": 3})
    return dict(built.providers)


def listed(api: Api, query: str = "") -> list[dict[str, Any]]:
    answer = api.get(PATH + query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["providers"]
    return found


def single_reads(api: Api, one: dict[str, Any]) -> dict[str, Any]:
    """Request the same from the plain API."""
    path = f"/resource_providers/{one['uuid']}"
    shown = {name: value for name, value in one.items() if name != "links"}
    for what in ("inventories", "usages", "traits", "aggregates"):
        value = api.get(f"{path}/{what}").get_json()[what]
        shown[what] = sorted(value) if isinstance(value, list) else value
    return shown


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?name=h2",
        "?in_tree={h1-gpu}",
        "?uuid={pool}",
        "?resources=VCPU:4",
        "?required=HW_GPU_API_VULKAN",
        "?required=!HW_GPU_API_VULKAN&member_of=!{A}",
        "?member_of=in:{A},{B}&member_of={B}",
        "?name=nobody",
    ],
)
def test_it_says_what_the_single_reads_say(api: Api, cloud: dict[str, str], query: str) -> None:
    asked = query.format(**cloud, **AGGREGATES)
    plain = api.get("/resource_providers" + asked).get_json()["resource_providers"]
    assert listed(api, asked) == [single_reads(api, one) for one in plain]


def test_many_providers_come_in_several_portions(api: Api) -> None:
    made = stored(api.app, *[provider(f"host{number}") for number in range(2 * PROVIDERS_AT_ONCE + 1)])
    assert {one["name"] for one in listed(api)} == {*made.providers}
    assert api.get(PATH).is_streamed
