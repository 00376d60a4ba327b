"""Traces: the hosts of a GPU cluster and workloads for them, read from CSV files, gzipped or not.

There is the form of the published traces, and a plain one for clouds of one's own, with a column per resource class:

* ``hosts.csv``: ``host`` (its name), ``devices`` (how many it has), ``kind`` (of devices), and a column for each class.
* ``tasks_WORKLOAD.csv``: ``devices``, ``share`` (thousandths of each), ``kinds`` (A|B; empty for any), a column for
  each class, and, where tasks leave, ``comes`` and ``goes``: times in any unit.
"""

import csv
import gzip
import random
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf
from pathlib import Path

from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost

DEVICES = "GPUs"
"""The unit of traces in which hosts have devices, and tasks ask for some."""

SIZE = 1000
"""The units that a whole GPU has in these files."""

HOSTS, TASKS = "hosts.csv", "tasks_{}.csv"
NODES, PODS, PUBLISHED = "node_list_all_node.csv", "pod_list_{}.csv", "published_allocation.csv"

Row = Mapping[str, str]

_OF_HOSTS = ("host", "devices", "kind")
_OF_TASKS = ("task", "devices", "share", "kinds", "comes", "goes")

_FAULTS = (KeyError, ValueError, csv.Error, gzip.BadGzipFile, EOFError, zlib.error)
"""What reading a malformed file raises: for a missing column, a wrong value, text that is not CSV; the last three for a
file that is not compressed, or not to its end.
"""


class NoTrace(Exception):
    """A folder has no such trace. The message names the missing file, or says what is wrong in it."""


@dataclass(frozen=True)
class Trace:
    """Hosts, and the tasks to draw from; equal hosts or tasks are one object."""

    hosts: Sequence[FreeHost]
    tasks: Sequence[DeviceTask]
    stays: Sequence[tuple[float, float]] = ()
    """When each task arrives and leaves, in any unit; empty if the trace has no times."""

    def __post_init__(self) -> None:
        """Refuse a trace that can never be filled."""
        if not self.unit:
            raise NoTrace("Tasks must ask for something that hosts have.")

    @cached_property
    def unit(self) -> str:
        """What shares are counted in: devices, or else the class in the greatest demand; "" if there is none."""
        if any(host.devices for host in self.hosts) and any(task.devices for task in self.tasks):
            return DEVICES
        supply, asked_for = Counter[str](), Counter[str]()
        for host in self.hosts:
            supply.update(host.free)
        for task in self.tasks:
            asked_for.update(task.amounts)
        demand = {name: amount / supply[name] for name, amount in asked_for.items() if amount > 0 < supply[name]}
        return max(demand, key=lambda name: (demand[name], name), default="")

    @cached_property
    def capacity(self) -> int:
        """What all hosts have of the unit."""
        if self.unit == DEVICES:
            return sum(self.supply.units.values())
        return sum([host.free.get(self.unit, 0) for host in self.hosts])

    def size(self, task: DeviceTask) -> int:
        """Return how much of the unit a task asks for."""
        return task.devices * task.share if self.unit == DEVICES else task.amounts.get(self.unit, 0)

    @cached_property
    def supply(self) -> DeviceSupply:
        """The resources of the empty hosts."""
        units: Counter[str] = Counter()
        largest: Counter[str] = Counter()
        for host in self.hosts:
            largest |= Counter(host.free)
            for device in host.devices:
                units[device.kind] += device.free
        return DeviceSupply(units, SIZE, largest, max(1, *[len(host.devices) for host in self.hosts]))

    @cached_property
    def expected(self) -> Mapping[DeviceTask, int]:
        """How often each task occurs."""
        return Counter(self.tasks)

    def arrivals(self, seed: int, *, percent: int) -> list[DeviceTask]:
        """Draw tasks with replacement until they ask for this percentage of the capacity, and shuffle them."""
        dice = random.Random(seed)  # noqa: S311 - a simulation, not a secret
        target, demanded = self.capacity * percent // 100, 0
        drawn = []
        while demanded < target:
            task = dice.choice(self.tasks)
            drawn.append(task)
            demanded += self.size(task)
        dice.shuffle(drawn)
        return drawn


def read(folder: Path, workload: str) -> Trace:
    """Read the hosts in a folder and one of its workloads, in the plain form or that of the published traces.

    Raises:
        NoTrace: a file is missing, has a malformed row, or tasks ask for nothing that hosts have.
    """
    is_plain = any((folder / name).exists() for name in (HOSTS, f"{HOSTS}.gz"))
    hosts, tasks = (HOSTS, TASKS.format(workload)) if is_plain else (NODES, PODS.format(workload))
    with _naming(f"{folder}: a row of {hosts} or {tasks}"):
        nodes, pods = list(_rows(folder / hosts)), list(_rows(folder / tasks))
        if not is_plain:
            nodes = [
                {"CPU": row["cpu_milli"], "MEMORY": row["memory_mib"], "devices": row["gpu"], "kind": row["model"]}
                for row in nodes
            ]
            pods = [*map(_plain_pod, pods)]
        return Trace(_hosts(nodes), _tasks(pods), _stays(pods))


def _plain_pod(row: Row) -> Row:
    times = {"comes": row.get("creation_time", ""), "goes": row.get("deletion_time", "")}
    devices = {"devices": row["num_gpu"], "share": row["gpu_milli"], "kinds": row.get("gpu_spec", "")}
    return {"CPU": row["cpu_milli"], "MEMORY": row["memory_mib"], **devices, **times}


def _hosts(rows: Iterable[Row]) -> list[FreeHost]:
    @cache
    def host(devices: int, kind: str, amounts: tuple[tuple[str, int], ...]) -> FreeHost:
        return FreeHost(dict(amounts), (FreeDevice(SIZE, kind),) * devices)

    return [host(int(row["devices"] or 0), row.get("kind") or "", _amounts(row, _OF_HOSTS)) for row in rows]


def _tasks(rows: Iterable[Row]) -> list[DeviceTask]:
    @cache
    def task(devices: int, share: int, kinds: str, amounts: tuple[tuple[str, int], ...]) -> DeviceTask:
        accepted = frozenset(kinds.split("|")) - {""} if devices else frozenset[str]()
        return DeviceTask(dict(amounts), devices, share if devices else 0, accepted)

    return [
        task(int(row["devices"] or 0), int(row["share"] or 0), row.get("kinds") or "", _amounts(row, _OF_TASKS))
        for row in rows
    ]


def _amounts(row: Row, own_columns: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple([(name, int(amount or 0)) for name, amount in row.items() if name not in own_columns])


def _stays(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return when each task arrives and leaves; nothing unless all of them say so."""
    if not all(row.get("comes") and row.get("goes") for row in rows):
        return []
    times = [(float(row["comes"]), float(row["goes"])) for row in rows]
    for line, (arrives, leaves) in enumerate(times, start=2):
        if not -inf < arrives <= leaves < inf:
            raise ValueError(f"line {line}: goes is {leaves:g}, which is not a time after comes, {arrives:g}.")
    return times


def published(folder: Path) -> dict[tuple[str, str, int], float]:
    """Return the published results: (workload, policy, percent arrived) -> percent allocated; empty without a file.

    Raises:
        NoTrace: the file has a malformed row.
    """
    with _naming(f"{folder}: a row of {PUBLISHED}"):
        try:
            rows = list(_rows(folder / PUBLISHED))
        except NoTrace:
            return {}
        return {(row["workload"], row["policy"], int(row["arrived_percent"])): float(row["mean"]) for row in rows}


@contextmanager
def _naming(rows: str) -> Iterator[None]:
    """Refuse a file that turns out to be malformed while its rows are read, and name them."""
    try:
        yield
    except _FAULTS as error:
        raise NoTrace(f"{rows} cannot be read: {error}") from None


def _rows(path: Path) -> Iterator[Row]:
    zipped = path.with_name(f"{path.name}.gz")
    if zipped.exists():
        with gzip.open(zipped, "rt", newline="") as file:
            yield from _whole(csv.DictReader(file))
    elif path.exists():
        with path.open(newline="") as file:
            yield from _whole(csv.DictReader(file))
    else:
        raise NoTrace(f"There is no {path}, nor {zipped.name}.")


def _whole(reader: "csv.DictReader[str]") -> Iterator[Row]:
    """Yield the rows; refuse one that has more or fewer fields than there are columns."""
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"line {reader.line_num} does not have a field for each column.")
        yield row
