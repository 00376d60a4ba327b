"""A worker forgets a state of the cloud with the last request that reads it: it may take many megabytes."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from placement.cloud.columns import CloudColumns
from placement.cloud.providers import ProviderColumns
from tests.api.conftest import Api
from tests.claims import ask, make_provider
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, register, uuid_of

PAIR: dict[str, Any] = {
    "groups": {"": {"resources": {"MEMORY_MB": 1}}, "_G": {"resources": {"PGPU": 1}, "count": 1}},
    "within": [{"groups": ["_G"], "level": "numa", "mode": "preferred"}],
}

TRAITS = "HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE"


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """What is not freed by itself stays: a server's collector looks for cycles rarely."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
def test_only_the_newest_state_stays_in_memory(api: Api) -> None:
    register(api)
    _ask_everything(api)
    before = _alive(CloudColumns)
    for _ in range(5):
        _ask_everything(api)
    assert _alive(CloudColumns) == before


@pytest.mark.usefixtures("_no_collector")
def test_a_trait_that_was_asked_for_once_keeps_no_former_providers(api: Api) -> None:
    register(api)
    ask(api, "GET", "/allocation_candidates?resources=MEMORY_MB:1")
    before = _alive(ProviderColumns)
    for trait in TRAITS:
        ask(api, "GET", f"/allocation_candidates?resources=MEMORY_MB:1&root_required={trait}")
        make_provider(api, VCPU=1)
    ask(api, "GET", "/allocation_candidates?resources=MEMORY_MB:1")
    assert _alive(ProviderColumns) == before


def _ask_everything(api: Api) -> None:
    """Change the cloud, and have each kind of request read it, also as it would be."""
    ask(api, "POST", CLAIMS, body={**PAIR, "consumer": consumer()})
    chosen = ask(api, "GET", "/allocation_candidates?resources=MEMORY_MB:2")["allocation_requests"][0]
    owner = {name: value for name, value in consumer().items() if name != "uuid"}
    holder = consumer()["uuid"]
    ask(api, "PUT", f"/allocations/{holder}", body={**chosen, **owner})
    ask(api, "POST", CANDIDATES, body={**PAIR, "released": [holder], "with": [{"like": uuid_of("host"), "count": 2}]})
    ask(api, "GET", "/planner/v1/explain?resources=PGPU:1000")
    ask(api, "POST", "/planner/v1/headroom", body={"requests": {"one": PAIR, "two": "resources=PGPU:1"}})


def _alive(kind: type) -> int:
    return sum(type(held) is kind for held in gc.get_objects())
