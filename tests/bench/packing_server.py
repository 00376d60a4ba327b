"""The published trace through a server and a database: by GET /allocation_candidates and PUT, and by planner claims.

``python -m tests.bench.packing_server TRACE [--workload W ...] [--way get|claims] [--percent 100]`` prints, for each
workload and way, the share of GPUs allocated, the share that the library alone reaches with the same tasks, and the CPU
time of each placement, server and database together. The server runs in this process, on its own PostgreSQL.
"""

import argparse
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from flask import Flask
from sqlalchemy import text

from placement.allocators.fragmentation import DeviceTask, Outlook
from placement.app import create_app
from placement.cli.replay import traces
from placement.cli.replay.cheapest import FillingHosts
from placement.cli.replay.traces import Trace
from placement.settings import DatabaseSettings, Settings
from placement.settings.planner.sections import load_planner
from placement.settings.planner.values import PlannerSettings
from tests.bench.loading import load_idle
from tests.bench.meters import CpuMeter, spent_ms
from tests.bench.packing_cloud import claim, names, nodes, query, write_planner_file
from tests.bench.planner import HEADERS, OWNER
from tests.postgresql import running_postgresql

COMPARED_EACH = 50
"""Every so many tasks, the same query is also timed with the default profile."""


class Replayed(NamedTuple):
    """The result of a run: percent of GPUs allocated, CPU ms of each placement, and of GETs by profile."""

    allocated: float
    placement_ms: float
    packed_ms: float
    default_ms: float


class Replay:
    """One run of tasks through a server."""

    def __init__(self, app: Flask, plain: Flask, url: str) -> None:
        self._client, self._plain = app.test_client(), plain.test_client()
        self._watch = psycopg.connect(url, autocommit=True)
        self._meter = CpuMeter(self._pids)

    def _pids(self) -> list[int]:
        found = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return [os.getpid(), *[pid for (pid,) in self._watch.execute(found).fetchall()]]

    def run(self, trace: Trace, tasks: list[DeviceTask], way: str, percent: int) -> Replayed:
        units = sum(trace.supply.units.values())
        arrived = taken = placed = 0
        spent, packed, default = 0.0, [0.0], [0.0]
        place = self._by_claim if way == "claims" else self._by_get
        for number, task in enumerate(tasks):
            arrived += task.devices * task.share
            if number % COMPARED_EACH == COMPARED_EACH - 1:
                default.append(self._timed(self._plain, task))
                packed.append(self._timed(self._client, task))
            before = self._meter.read()
            done = place(task)
            spent += spent_ms(before, self._meter.read())
            taken += task.devices * task.share if done else 0
            placed += 1
            if number % 500 == 499:
                print(f"{time.strftime('%H:%M:%S')} {number + 1} tasks, {100 * arrived / units:.0f} %", file=sys.stderr)
            if arrived * 100 >= units * percent:
                break
        compared = max(1, len(packed) - 1)
        return Replayed(100 * taken / units, spent / placed, sum(packed) / compared, sum(default) / compared)

    def _timed(self, client: Any, task: DeviceTask) -> float:
        before = self._meter.read()
        client.get(query(task), headers=HEADERS)
        return spent_ms(before, self._meter.read())

    def _by_get(self, task: DeviceTask) -> bool:
        answer = self._client.get(query(task), headers=HEADERS)
        assert answer.status_code == 200, answer.text
        found = answer.json["allocation_requests"]
        if found:
            done = self._client.put(f"/allocations/{uuid.uuid4()}", json={**found[0], **OWNER}, headers=HEADERS)
            assert done.status_code == 204, done.text
        return bool(found)

    def _by_claim(self, task: DeviceTask) -> bool:
        body = claim(task, {"uuid": str(uuid.uuid4()), **OWNER})
        answer = self._client.post("/planner/v1/claims", json=body, headers=HEADERS)
        assert answer.status_code in {201, 409}, answer.text
        return answer.status_code == 201


def library(trace: Trace, tasks: list[DeviceTask], percent: int) -> float:
    """Return the share that the library allocates with the same tasks."""
    filling, units = FillingHosts(trace.hosts, Outlook(trace.expected, trace.supply)), sum(trace.supply.units.values())
    arrived = taken = 0
    for task in tasks:
        arrived += task.devices * task.share
        taken += task.devices * task.share if filling.place(task) else 0
        if arrived * 100 >= units * percent:
            break
    return 100 * taken / units


@contextmanager
def served(url: str, trace: Trace) -> Iterator[tuple[Flask, Flask]]:
    """Yield two servers on a database with the cloud: one that packs for the trace, one with the default profile."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "planner.yaml"
        write_planner_file(file, trace)
        apps = [_made(url, planner) for planner in (load_planner(file), PlannerSettings())]
    client = apps[0].test_client()
    for path in names(trace):
        assert client.put(path, headers=HEADERS).status_code in {201, 204}
    databases = [app.extensions["placement"].database for app in apps]
    with databases[0].writer.begin() as connection:
        load_idle(connection, nodes(trace))
        connection.execute(text("ANALYZE"))
    yield apps[0], apps[1]
    for database in databases:
        database.dispose()


def _made(url: str, planner: PlannerSettings) -> Flask:
    database = DatabaseSettings(connection=url, sync_on_startup=True)
    return create_app(replace(Settings(database=database, auth_strategy="noauth2"), planner=planner))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.packing_server", description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--way", action="append", choices=["get", "claims"])
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--percent", type=int, default=100)
    options = parser.parse_args()
    print("| workload | way | allocated | library | CPU ms of a placement | GET, fragmentation | GET, default |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for workload in options.workload or ["default", "gpuspec33", "multigpu40"]:
        trace = traces.read(options.trace, workload)
        tasks = trace.arrivals(options.seed, percent=130)
        expected = library(trace, tasks, options.percent)
        for way in options.way or ["get", "claims"]:
            with running_postgresql() as server:
                url = server.database("packing")
                with served(url, trace) as (app, plain):
                    done = Replay(app, plain, url).run(trace, tasks, way, options.percent)
            costs = f"{done.placement_ms:.1f} | {done.packed_ms:.1f} | {done.default_ms:.1f}"
            print(f"| {workload} | {way} | {done.allocated:.4f} | {expected:.4f} | {costs} |", flush=True)


if __name__ == "__main__":
    main()
