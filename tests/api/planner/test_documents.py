"""What the documents of Volcano, Koordinator and the scheduler say, as written: the tables are beside this file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask

from placement.domain.device_types import DeviceSettings
from tests.api.conftest import Api, with_settings
from tests.claims import ask, claimed, make_provider, new_uuid
from tests.planner_hosts import CANDIDATES, hold, names_of, only, planned, register, uuid_of
from tests.stored_clouds import StoredProvider, store_providers

pytestmark = pytest.mark.any_database


def table(file: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(file).read_text(encoding="utf-8"))


GROUPS = table("groups.yaml")
TRAITS = {"numa": "HW_NUMA_ROOT", "gpugrp1": "CUSTOM_GPUGRP1", "gpugrp0": "CUSTOM_GPUGRP0", "gpu": "CUSTOM_GPU"}


@pytest.fixture
def grouped(app: Flask) -> Api:
    """A server that knows the document's groups of GPUs."""
    api = with_settings(app, planner_yaml=yaml.safe_dump({"levels": TRAITS}, sort_keys=False))
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
    store_providers(api.database, [*providers(GROUPS["hosts"][host])])


@pytest.mark.parametrize("row", GROUPS["rows"], ids=[row["says"] for row in GROUPS["rows"]])
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


PATH = "/planner/v1/fair-share"
SHARES = table("shares.yaml")


def queue(written: str) -> dict[str, Any]:
    """Return a queue of the planner file from its annotations."""
    path, _, weights = written.partition(" ")
    *parents, name = path.split("/")
    return {"hierarchy": path, "weights": weights.strip("()") or "1/" * len(parents) + "1", "projects": [name]}


@pytest.mark.parametrize("row", SHARES, ids=[row["says"] for row in SHARES])
def test_seed_001_as_written(app: Flask, row: dict[str, Any]) -> None:
    fair_share = {"classes": ["VCPU", "PGPU"], "queues": [*map(queue, row["queues"])], "keep_s": 0}
    api = with_settings(app, planner_yaml=yaml.safe_dump({"fair_share": fair_share}))
    cloud = make_provider(api, **row["cloud"])
    for project, amount in row.get("holds", {}).items():
        claimed(api, {cloud: {row["wants"][project]: amount}}, project_id=project)
    pending = [
        {"project_id": project, "resources": {resource_class: 1}, "count": 100}
        for project, resource_class in row["wants"].items()
    ]
    if "fill" in row:
        portions = ask(api, "POST", f"{PATH}/fill", body={"pending": pending})["portions"]
        assert {one["project_id"]: sum(one["given"].values()) for one in portions} == row["fill"]
    if "order" in row:
        turns = ask(api, "POST", f"{PATH}/order", body={"pending": pending})["order"]
        assert [turn["project_id"] for turn in turns] == row["order"]
    if "shares" in row:
        shown = {node["path"]: node["share"] for node in ask(api, "GET", PATH)["nodes"]}
        assert {path: shown[path] for path in row["shares"]} == row["shares"]


STRATEGIES = table("strategies.yaml")


def in_classes(api: Api, amounts: dict[str, int | str]) -> dict[str, int]:
    for name in amounts:
        if name.startswith("CUSTOM_"):
            ask(api, "PUT", f"/resource_classes/{name}")
    return DeviceSettings().amounts_by_class(amounts, ("resources",))


@pytest.mark.parametrize("row", STRATEGIES, ids=[row["says"] for row in STRATEGIES])
def test_seed_002_as_written(api: Api, row: dict[str, Any]) -> None:
    names = {}
    for name, node in row["nodes"].items():
        uuid = make_provider(api, **in_classes(api, node["has"]))
        names[uuid] = name
        if "used" in node:
            claimed(api, {uuid: in_classes(api, node["used"])})
    body = {"groups": {"": {"resources": row["requests"]}}, "profile": row["profile"]}
    found = ask(api, "POST", CANDIDATES, body=body)
    served = [names[uuid] for candidate in found["allocation_requests"] for uuid in candidate["allocations"]]
    part = "sra" if "sra" in row else "fit"
    assert served == [*row[part]]
    assert [score["raw"][part] for score in found["scores"]] == pytest.approx([*row[part].values()])


DEVICES = table("devices.yaml")


@pytest.mark.parametrize("row", [pytest.param(row, id=row["says"]) for row in DEVICES["pods"]])
def test_pods_of_the_document_get_the_devices_that_it_names(api: Api, row: dict[str, Any]) -> None:
    register(api, numa_nodes=DEVICES["machines"][row["machine"]])
    for name, amounts in row.get("holds", {}).items():
        hold(api, name, **amounts)
    assert_given(api, {"pod": row["pod"]}, row)
    template = {"kind": "Job", "spec": {"template": {key: row["pod"][key] for key in ("metadata", "spec")}}}
    assert only(api, {"pod": template}) == row["gives"]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["says"]) for row in DEVICES["requests"]])
def test_values_of_annotations_get_the_devices_that_the_document_means(api: Api, row: dict[str, Any]) -> None:
    register(api, numa_nodes=DEVICES["machines"][row.get("machine", "eight switches")])
    for value in ("fakeX", *DEVICES["labels"]):
        ask(api, "PUT", f"/traits/CUSTOM_NIC_LABEL_TYPE_{value.upper()}")
    ask(api, "PUT", "/traits/CUSTOM_NIC_LABEL_TYPE")
    for value, names in DEVICES["labels"].items() if "machine" in row else ():
        for name in names.split():
            path = f"/resource_providers/{uuid_of(f'host-{name}')}/traits"
            seen = ask(api, "GET", path)
            traits = [*seen["traits"], "CUSTOM_NIC_LABEL_TYPE", f"CUSTOM_NIC_LABEL_TYPE_{value.upper()}"]
            ask(api, "PUT", path, body={**seen, "traits": traits})
    assert_given(api, row["request"], row)


def assert_given(api: Api, body: dict[str, Any], row: dict[str, Any]) -> None:
    """Check the devices, what is taken of them, and the places that others are kept out of."""
    if row["gives"] is None:
        assert planned(api, body) == []
        return
    assert only(api, body) == row["gives"]
    answer = ask(api, "POST", CANDIDATES, body=body)
    taken = answer["allocation_requests"][0]["allocations"]
    for name, resources in row.get("takes", {}).items():
        assert taken[uuid_of(f"host-{name}")] == {"resources": resources}
    if "exclusive" in row:
        assert [*answer["scores"][0]["exclusive"]] == [uuid_of(f"host-{name}") for name in row["exclusive"].split()]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["says"]) for row in DEVICES["shares"]])
def test_shares_of_gpus_are_those_of_koordinator(app: Flask, row: dict[str, Any]) -> None:
    api = with_settings(app, planner_yaml=yaml.safe_dump(DEVICES["planner"]))
    ask(api, "PUT", "/resource_classes/CUSTOM_GPU_SHARE")
    gpus = {"CUSTOM_GPU_SHARE": {"total": 100}}
    host = StoredProvider(new_uuid(), "host", None, {}, [])
    store_providers(api.database, [host, *[StoredProvider(new_uuid(), f"gpu{n}", host.uuid, gpus, []) for n in (0, 1)]])
    (candidate,) = ask(api, "POST", CANDIDATES, body={"requests": row["requests"]})["allocation_requests"]
    names = names_of(api)
    taken = {names[uuid]: amounts["resources"] for uuid, amounts in candidate["allocations"].items()}
    assert taken == {name: {"CUSTOM_GPU_SHARE": amount} for name, amount in row["takes"].items()}
