"""Published traces: the hosts of a GPU cluster and workloads for them, read from CSV files, gzipped or not."""

import csv
import gzip
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from placement.allocators.fragmentation import DeviceSupply, DeviceTask, FreeDevice, FreeHost
from placement.cli.replay import plain_form

DEVICES = "GPUs"
"""The unit of traces in which hosts have devices, and tasks ask for some."""

SIZE = 1000
"""The units that a whole GPU has in these files."""

NODES = "node_list_all_node.csv"
TASKS = "pod_list_{}.csv"
PUBLISHED = "published_allocation.csv"

Row = Mapping[str, str]

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
        there, asked = Counter[str](), Counter[str]()
        for host in self.hosts:
            there.update(host.free)
        for task in self.tasks:
            asked.update(task.amounts)
        demand = {name: asked[name] / there[name] for name in asked if asked[name] > 0 and there[name] > 0}
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
                units[device.kind] += device.left
        return DeviceSupply(units, SIZE, largest, max(1, *[len(host.devices) for host in self.hosts]))

    @cached_property
    def expected(self) -> Mapping[DeviceTask, int]:
        """How often each task occurs."""
        return Counter(self.tasks)

    def arrivals(self, seed: int, *, percent: int) -> list[DeviceTask]:
        """Draw tasks with replacement until they ask for this percentage of the capacity, and shuffle them."""
        dice = random.Random(seed)  # noqa: S311 - a simulation, not a secret
        wanted, asked = self.capacity * percent // 100, 0
        drawn = []
        while asked < wanted:
            task = dice.choice(self.tasks)
            drawn.append(task)
            asked += self.size(task)
        dice.shuffle(drawn)
        return drawn


def read(folder: Path, workload: str) -> Trace:
    """Read the hosts in a folder and one of its workloads, in the published or the plain format (``plain_form``).

    Raises:
        NoTrace: a file is missing, has a malformed row, or tasks ask for nothing that hosts have.
    """
    if plain_form.is_plain(folder):
        return _plain(folder, workload)
    host, task = cache(_host), cache(_task)
    with _naming(f"{folder}: a row of {workload!r} or of its hosts"):
        nodes = [host(row["cpu_milli"], row["memory_mib"], row["gpu"], row["model"]) for row in _rows(folder / NODES)]
        rows = list(_rows(folder / TASKS.format(workload)))
        pods = [
            task(row["cpu_milli"], row["memory_mib"], row["num_gpu"], row["gpu_milli"], row.get("gpu_spec") or "")
            for row in rows
        ]
        stays = plain_form.stays(rows, "creation_time", "deletion_time")
    return Trace(nodes, pods, stays)


def _plain(folder: Path, workload: str) -> Trace:
    hosts, tasks = folder / plain_form.HOSTS, folder / plain_form.TASKS.format(workload)
    with _naming(f"{folder}: a row of {hosts.name} or {tasks.name}"):
        return Trace(plain_form.hosts(_rows(hosts), SIZE), *plain_form.tasks(_rows(tasks)))


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


def _host(cpu: str, memory: str, gpus: str, model: str) -> FreeHost:
    return FreeHost({"CPU": int(cpu), "MEMORY": int(memory)}, (FreeDevice(SIZE, model),) * int(gpus))


def _task(cpu: str, memory: str, gpus: str, share: str, models: str) -> DeviceTask:  # noqa: PLR0917 - the columns
    devices = int(gpus)
    kinds = frozenset(models.split("|")) - {""} if devices else frozenset[str]()
    return DeviceTask({"CPU": int(cpu), "MEMORY": int(memory)}, devices, int(share) if devices else 0, kinds)


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
