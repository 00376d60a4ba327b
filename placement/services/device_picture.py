"""A cloud's devices and the workload expected on them: facts that change slowly, read in one snapshot."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placement.allocators.entries import best_match
from placement.allocators.fragmentation import DeviceSupply, DeviceTask, FragmentationSettings
from placement.services.learning import learnt_mix
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.marks import traits_matching
from placement.store.search.devices import (
    ProviderAmount,
    capacity_by_provider,
    traits_of_devices,
)

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
        learnt_since: when it began to be learnt, in seconds; None if it is configured or nothing has been learnt.
    """

    classes: Mapping[int, str]
    kinds: Mapping[int, str]
    supply: DeviceSupply
    expected: Mapping[DeviceTask, float]
    learnt_since: float | None = None

    def is_like(self, other: "Picture") -> bool:
        """Tell whether another picture leads to the same scores."""
        mine, others = (
            (one.classes, one.kinds, one.supply, [(task.form, often) for task, often in one.expected.items()])
            for one in (self, other)
        )
        return mine == others


@reads
def read_picture(tx: Transaction, settings: FragmentationSettings, profile: str) -> Picture:
    """Return the picture of a cloud, in a snapshot of its own."""
    return picture_of(tx, settings, profile)


def picture_of(tx: Transaction, settings: FragmentationSettings, profile: str) -> Picture:
    """Return the same within the caller's transaction."""
    ids = tx.names.classes.ids(tx.connection, frozenset(settings.classes))
    classes = {id_: name for name, id_ in ids.items()}
    if settings.devices not in ids:
        return Picture({}, {}, DeviceSupply({}, settings.size), {})
    kinds = _kinds(tx, settings)
    supply = _supply(capacity_by_provider(tx, classes), settings, (classes, kinds))
    if settings.flavors:
        named = {flavor.task: float(flavor.weight) for flavor in settings.flavors.values()}
        return Picture(classes, kinds, supply, named)
    mix = learnt_mix(tx, settings, profile)
    return Picture(classes, kinds, supply, mix.expected(MAX_FLAVORS) if mix else {}, mix.since if mix else None)


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
