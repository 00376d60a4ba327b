"""Volcano's design of hierarchical fair shares: shares.yaml says what each of its sentences means over HTTP."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask import Flask

from placement.allocators.fair_share import Queue, tree_of
from placement.app import create_app
from placement.settings import PlannerSettings
from placement.settings.planner.values import FairShareSettings
from tests.api.conftest import Api
from tests.claims import ask, claimed, make_provider

pytestmark = pytest.mark.any_database

PATH = "/planner/v1/fair-share"
TABLE = yaml.safe_load(Path(__file__).with_name("shares.yaml").read_text(encoding="utf-8"))


def queue(written: str) -> Queue:
    """Return a queue from its annotations."""
    path, _, weights = written.partition(" ")
    weighed = tuple(int(weight) for weight in weights.strip("()").split("/")[1:]) if weights else ()
    ways = path.count("/")
    return Queue(path, (None, *(weighed or (1,) * ways)), (path.rpartition("/")[2],))


@pytest.mark.parametrize("row", TABLE, ids=[row["says"] for row in TABLE])
def test_seed_001_as_written(app: Flask, row: dict[str, Any]) -> None:
    queues = tree_of([queue(written) for written in row["queues"]])
    planner = PlannerSettings(fair_share=FairShareSettings(classes=("VCPU", "PGPU"), queues=queues, keep_s=0))
    api = Api(create_app(replace(app.extensions["placement"].settings, planner=planner)))
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
