"""A cloud's devices and the workload expected on them: facts that change slowly, read in one snapshot."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from placement.allocators.entries import best_match
from placement.allocators.fragmentation import DeviceSupply, DeviceTask, FragmentationSettings
from placement.candidates.fragmentation import WantedOfHost, tasks_of
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.devices import (
    NewHolding,
    ProviderAmount,
    capacity_by_provider,
    newest_taken,
    traits_of_devices,
)
from placement.store.traits import traits_matching

MAX_ALLOCATIONS = 40_000
"""How many of the newest allocations to learn from."""

MAX_FLAVORS = 256
"""How many different tasks to expect, the most frequent ones."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read of a cloud in one snapshot.

    Args:
        classes: resource class id -> name, of the relevant classes that exist.
        kinds: provider -> the kind of device that it is.
        supply: what there is in total.
        expected: how often each task is expected.
    """

    classes: Mapping[int, str]
    kinds: Mapping[int, str]
    supply: DeviceSupply
    expected: Mapping[DeviceTask, float]

    def is_like(self, other: "Picture") -> bool:
        """Tell whether another picture leads to the same scores."""
        mine, others = (
            (one.classes, one.kinds, one.supply, [(key_of(task), often) for task, often in one.expected.items()])
            for one in (self, other)
        )
        return mine == others


def key_of(task: DeviceTask) -> object:
    """Return a key that identifies a task."""
    return tuple(task.amounts.items()), task.devices, task.share, task.kinds


@reads
def read_picture(tx: Transaction, settings: FragmentationSettings) -> Picture:
    """Return the picture of a cloud, in a snapshot of its own."""
    return picture_of(tx, settings)


def picture_of(tx: Transaction, settings: FragmentationSettings) -> Picture:
    """Return the same within the caller's transaction."""
    ids = tx.names.classes.ids(tx.connection, frozenset(settings.classes))
    classes = {id_: name for name, id_ in ids.items()}
    if settings.devices not in ids:
        return Picture({}, {}, DeviceSupply({}, settings.size), {})
    kinds = _kinds(tx, settings)
    supply = _supply(capacity_by_provider(tx, classes), settings, (classes, kinds))
    if settings.flavors:
        expected = {flavor.task: float(flavor.weight) for flavor in settings.flavors.values()}
    else:
        expected = learnt(newest_taken(tx, classes, MAX_ALLOCATIONS), settings, classes)
    return Picture(classes, kinds, supply, expected)


def _kinds(tx: Transaction, settings: FragmentationSettings) -> dict[int, str]:
    """Return the kind of each provider that has one."""
    if not settings.kinds:
        return {}
    names = {trait.id: trait.name for trait in traits_matching(tx) if best_match(settings.kinds, trait.name)}
    return {provider: names[trait] for provider, trait in sorted(traits_of_devices(tx, names), reverse=True)}


def _supply(
    rows: Iterable[ProviderAmount], settings: FragmentationSettings, names: tuple[Mapping[int, str], Mapping[int, str]]
) -> DeviceSupply:
    classes, kinds = names
    units: Counter[str] = Counter()
    devices: Counter[int] = Counter()
    hosts: dict[int, Counter[str]] = defaultdict(Counter)
    for root, provider, class_id, capacity in rows:
        if classes[class_id] == settings.devices:
            units[kinds.get(provider, "")] += capacity
            devices[root] += 1
        else:
            hosts[root][classes[class_id]] += capacity
    largest = {name: max([host[name] for host in hosts.values()], default=0) for name in settings.beside}
    return DeviceSupply(units, settings.size, largest, max(devices.values(), default=1))


def learnt(
    rows: Iterable[NewHolding], settings: FragmentationSettings, classes: Mapping[int, str]
) -> dict[DeviceTask, float]:
    """Return how often each task occurs among what consumers have been given, the most frequent first.

    Allocations do not reveal which kinds would have been acceptable, so any kind is assumed to be.

    Args:
        rows: what each consumer holds; one whose rows are cut off at the end counts with those left.
        settings: the definition of devices.
        classes: resource class id -> name.
    """
    seen: Counter[object] = Counter()
    tasks: dict[object, DeviceTask] = {}
    by_consumer = groupby(sorted(rows), key=itemgetter(0))
    for _consumer, held in by_consumer:
        for task in tasks_of(_held(held, classes), settings, ()):
            seen[key_of(task)] += 1
            tasks.setdefault(key_of(task), task)
    return {tasks[key]: float(often) for key, often in seen.most_common(MAX_FLAVORS)}


def _held(rows: Iterable[NewHolding], classes: Mapping[int, str]) -> Iterator[WantedOfHost]:
    for _consumer, _provider, class_id, used in rows:
        yield WantedOfHost({classes[class_id]: used}, 1, ())
