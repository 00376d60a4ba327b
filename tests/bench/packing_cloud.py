"""A published trace as a real cloud: its hosts as provider trees, its tasks as requests, its mix as a planner file.

Beside it, hosts that learn the mix, as a server without flavors in its profile does.

A host is a tree: the root has VCPU (in thousandths, as the trace counts) and MEMORY_MB, and below it each GPU is a
provider with 1,000 of CUSTOM_GPU_MILLI and the trait of its model. A share of a GPU is an amount of that class; several
GPUs are as many groups.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placement.allocators.fragmentation.hosts import DeviceTask, FreeHost, LearntMix, size_of, work_of
from placement.allocators.fragmentation.outlook import Outlook
from placement.cli.simulation.packing import FillingHosts
from placement.cli.simulation.traces import SIZE, Trace
from placement.services.fragmentation import FIRST_NEWS, MAX_FLAVORS
from tests.bench.clouds import Node

GPU = "CUSTOM_GPU_MILLI"
CLASSES = {"CPU": "VCPU", "MEMORY": "MEMORY_MB"}


def trait(model: str) -> str:
    """Return the trait of a model."""
    return f"CUSTOM_GPU_{model}"


def names(trace: Trace) -> Iterator[str]:
    """Yield the paths of the class and the traits to create."""
    yield f"/resource_classes/{GPU}"
    models = {*trace.supply.units}.union(*[task.kinds for task in trace.expected])
    yield from [f"/traits/{trait(model)}" for model in sorted(models)]


def nodes(trace: Trace) -> Iterator[Node]:
    """Yield the trees."""
    for number, host in enumerate(trace.hosts):
        yield _node(f"host{number:04}", host)


def _node(name: str, host: FreeHost) -> Node:
    inventory = {CLASSES[key]: amount for key, amount in host.free.items() if amount}
    gpus = [
        Node(f"{name}-gpu{number}", {GPU: device.free}, (trait(device.kind),))
        for number, device in enumerate(host.devices)
    ]
    return Node(name, inventory, children=gpus)


def profile(trace: Trace) -> dict[str, Any]:
    """Return a profile that scores only fragmentation, for the mix of the trace."""
    return {
        "fragmentation": {
            "weight": 1,
            "devices": GPU,
            "size": SIZE,
            "kinds": ["CUSTOM_GPU_*"],
            "beside": [CLASSES[name] for name in trace.supply.largest],
            "flavors": {
                f"t{number}": _flavor(task, often) for number, (task, often) in enumerate(trace.expected.items())
            },
            "refresh_s": 1_000_000,
        }
    }


def _flavor(task: DeviceTask, often: int) -> dict[str, Any]:
    flavor: dict[str, Any] = {"weight": often, "resources": amounts(task)}
    if task.devices:
        flavor |= {"devices": task.devices, "share": task.share, "kinds": sorted(map(trait, task.kinds))}
    return flavor


def amounts(task: DeviceTask) -> dict[str, int]:
    """Return the amounts that a task needs besides devices."""
    return {CLASSES[name]: amount for name, amount in task.amounts.items() if amount}


def query(task: DeviceTask) -> str:
    """Return a task as the query of GET /allocation_candidates for the best candidate."""
    parts = [f"resources={','.join(f'{name}:{amount}' for name, amount in amounts(task).items())}", "limit=1"]
    for number in range(task.devices):
        parts.append(f"resources_G{number}={GPU}:{task.share}")
        if task.kinds:
            parts.append(f"required_G{number}=in:{','.join(sorted(map(trait, task.kinds)))}")
    if task.devices > 1:
        parts.append("group_policy=isolate")
    return f"/allocation_candidates?{'&'.join(parts)}"


def claim(task: DeviceTask, consumer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task as the body of POST /planner/v1/claims."""
    groups: dict[str, Any] = {"": {"resources": amounts(task)}}
    if task.devices:
        groups["_G"] = {"resources": {GPU: task.share}, "count": task.devices}
        if task.kinds:
            groups["_G"]["required"] = [f"in:{','.join(sorted(map(trait, task.kinds)))}"]
    body: dict[str, Any] = {"groups": groups, "consumer": dict(consumer)}
    return body | ({"group_policy": "isolate"} if task.devices > 1 else {})


class LearningHosts:
    """Hosts that are filled by the mix of what was placed before, read again each time that it has doubled."""

    def __init__(self, trace: Trace, earlier: Iterable[DeviceTask] = ()) -> None:
        self._trace = trace
        self._mix = LearntMix(0.0)
        for task in earlier:
            self._learn(task)
        self._read(trace.hosts)

    def place(self, task: DeviceTask) -> bool:
        """Place a task where it costs least, and learn from it; return whether it fits anywhere."""
        is_placed = self.filling.place(task)
        if is_placed:
            self._learn(task)
            if self._mix.total == self._read_at + max(FIRST_NEWS, self._read_at):
                self._read(self.filling.hosts)
        return is_placed

    def _learn(self, task: DeviceTask) -> None:
        work = work_of([task])
        self._mix.note_asked(work)
        self._mix.note_allocated(size_of(work))

    def _read(self, hosts: Sequence[FreeHost]) -> None:
        self._read_at = self._mix.total
        self.filling = FillingHosts(hosts, Outlook(self._mix.expected(MAX_FLAVORS), self._trace.supply))
