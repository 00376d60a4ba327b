"""The Group Allocator's document: groups.yaml says what each of its requests gets, pasted as it stands."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask

from placement.app import create_app
from placement.settings import PlannerSettings
from tests.api.conftest import Api
from tests.claims import ask, new_uuid
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, names_of, planned, register
from tests.stored_providers import StoredProvider, store_providers

pytestmark = pytest.mark.any_database

TABLE = yaml.safe_load(Path(__file__).with_name("groups.yaml").read_text(encoding="utf-8"))
TRAITS = {
    "numa": "HW_NUMA_ROOT",
    "gpugrp1": "CUSTOM_GPUGRP1",
    "gpugrp0": "CUSTOM_GPUGRP0",
    "gpu": "CUSTOM_GPU",
}


@pytest.fixture
def grouped(app: Flask) -> Api:
    """A server that knows the document's groups of GPUs."""
    settings = app.extensions["placement"].settings
    api = Api(create_app(replace(settings, planner=replace(PlannerSettings(), levels=TRAITS))))
    for name in ("CUSTOM_GPU_MEMORY_MB", "CUSTOM_SHARE"):
        ask(api, "PUT", f"/resource_classes/{name}")
    for trait in (*TRAITS.values(), *[f"CUSTOM_ENUMTYPE_{bit}" for bit in range(3)]):
        if trait.startswith("CUSTOM_"):
            ask(api, "PUT", f"/traits/{trait}")
    return api


def providers(tree: Mapping[str, Any], parent: str | None = None) -> Iterator[StoredProvider]:
    """Yield the providers of a host of the table, parents first."""
    for own_name, said in tree.items():
        has = said.get("has", {}).items()
        inventories = {name: of_class if isinstance(of_class, dict) else {"total": of_class} for name, of_class in has}
        own = [TRAITS[said["level"]]] if "level" in said else []
        uuid = new_uuid()
        yield StoredProvider(uuid, own_name, parent, inventories, [*own, *said.get("traits", ())])
        yield from providers(said.get("inside", {}), uuid)


def store(api: Api, host: str) -> None:
    """Store a host of the table."""
    store_providers(api.app.extensions["placement"].database, [*providers(TABLE["hosts"][host])])


@pytest.mark.parametrize("row", TABLE["rows"], ids=[row["says"] for row in TABLE["rows"]])
def test_seed_000_as_written(grouped: Api, row: dict[str, Any]) -> None:
    store(grouped, row["host"])
    answer = ask(grouped, "POST", CANDIDATES, body={**row["request"], "limit": 1, "explain": True})
    if "refused" in row:
        assert answer["allocation_requests"] == []
        assert answer["explanation"]["cause"]["message"] == row["refused"]
        return
    names = names_of(grouped)
    (candidate,), (scores,) = answer["allocation_requests"], answer["scores"]
    mapped = {prefix: " ".join(names[uuid] for uuid in uuids) for prefix, uuids in candidate["mappings"].items()}
    assert mapped == row["mapped"]
    taken = {names[uuid]: amounts["resources"] for uuid, amounts in candidate["allocations"].items()}
    assert taken == row.get("taken", taken)
    for key in ("group", "s_l"):
        assert scores[key] == pytest.approx(row.get(key, scores[key]))


def test_a_claim_takes_what_its_containers_need_together(grouped: Api) -> None:
    """Equations 19 to 25."""
    store(grouped, "two NUMA nodes")
    asked = {"containers": [{"gpu/0/cards": 1}] * 2, "init_containers": [{"cpu": 3}, {"cpu": 2, "gpu/0/cards": 1}]}
    answer = ask(grouped, "POST", CLAIMS, body={**asked, "consumer": consumer()})
    taken = [amounts["resources"] for amounts in answer["allocations"].values()]
    assert sorted(taken, key=repr) == [{"PGPU": 1}, {"PGPU": 1}, {"VCPU": 3}]
    assert set(answer["mappings"]) >= {"gpu/0", "containers/1/gpu/0", "init_containers/1/gpu/0"}


def test_nothing_of_a_resource_is_not_asked_for(levels: Api) -> None:
    register(levels, gpu_traits=["CUSTOM_GPU"])
    assert planned(levels, {"paths": {"gpu/0/cards": 1, "gpu/1/cards": 0, "cpu": "0"}}) == [{"gpu/0": ["host-gpu0"]}]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"paths": {"cpu": "1GiB"}}, "VCPU is not counted in bytes; write a whole number instead of 1GiB."),
        ({"paths": {"cpu": "0.5"}}, "VCPU is counted in whole units; write 1 instead of 0.5."),
        ({"paths": {"memory": "1 GiB"}}, "write a whole number, or bytes such as 8Gi"),
        ({"paths": {"Gpugrp7/A/gpu/0/cards": 1}}, "gpugrp7: CUSTOM_..."),
        ({"paths": {"gpu/0/enumType": 1}}, "There must be an amount of a resource."),
        ({"paths": {"cpu": 1, "enumType": 1}}, "An enumerated resource stands inside a group: gpu/0/enumType."),
        ({"paths": {"gpu/0/cards": 1, "gpu/0/enumX": 1}}, "paths.gpu/0/enumX: There is no trait CUSTOM_ENUMX_0."),
        ({"init_containers": [{"cpu": 1}]}, "name containers or paths, too."),
    ],
)
def test_what_is_refused_says_what_to_type(levels: Api, body: dict, sentence: str) -> None:
    answer = levels.post(CANDIDATES, body)
    assert answer.status_code == 400
    assert sentence in answer.json["errors"][0]["detail"]
