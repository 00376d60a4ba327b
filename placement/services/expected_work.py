"""A cloud's devices, and the work expected on them: configured, or learnt from requests and allocations."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.allocators.entries import best_match
from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FragmentationSettings
from placement.allocators.fragmentation.mix import LearntMix, size_of, work_of
from placement.candidates.fragmentation import HostDemand, tasks_of
from placement.cloud.columns import CloudColumns
from placement.services.cloud_cache import cloud_in
from placement.store.connection.database import Database, Transaction, reads, writes
from placement.store.marks import traits_matching
from placement.store.planner_rows import lock_learnt, read_learnt, write_learnt

FIRST_NEWS = 8
"""So many allocations are worth a look if fewer were known."""


class WorkLearner:
    """What one worker has counted for a profile since it last added that to the database. Shared by threads.

    Args:
        settings: the profile's settings.
        profile: its name.
        clock: returns the time in seconds.
    """

    def __init__(self, settings: FragmentationSettings, profile: str, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._profile = profile
        self._clock = clock
        self._lock = threading.Lock()
        self._news = LearntMix(clock())
        self._allocated = 0
        self._saved_size = 0.0

    def note_asked(self, demands: Iterable[HostDemand], kinds: Collection[str]) -> None:
        """Count a request that could be served, in a cloud with these kinds of devices."""
        if work := work_of(tasks_of(demands, self._settings, kinds)):
            with self._lock:
                self._news.note_asked(work)

    def note_allocated(self, allocations: Iterable[Mapping[str, int]]) -> bool:
        """Count what was allocated of each provider; tell whether just now as much is new as was known before."""
        size = size_of(work_of(tasks_of([HostDemand(amounts, 1, ()) for amounts in allocations], self._settings, ())))
        if not size:
            return False
        with self._lock:
            self._news.note_allocated(size)
            self._allocated += 1
            return self._allocated == max(FIRST_NEWS, round(self._saved_size))

    def save(self, database: Database) -> None:
        """Add what is new to the database."""
        with self._lock:
            news, self._news, self._allocated = self._news, LearntMix(self._clock()), 0
        if not news.is_empty:
            self._saved_size = _add(database, self._settings, self._profile, news=news, now=self._clock())


@writes
def _add(tx: Transaction, settings: FragmentationSettings, profile: str, *, news: LearntMix, now: float) -> float:
    """Add to what a profile has learnt; return how much it has learnt in all."""
    mix = _mix(lock_learnt(tx, profile), settings) or LearntMix(news.since)
    mix.add(news, now)
    write_learnt(tx, profile, {"of": _basis(settings), **mix.document()})
    return mix.total


def learnt_mix(tx: Transaction, settings: FragmentationSettings, profile: str) -> LearntMix | None:
    """Return what a profile has learnt; None if that is nothing."""
    return _mix(read_learnt(tx, profile), settings)


def _mix(document: Any, settings: FragmentationSettings) -> LearntMix | None:
    """Read a document, unless it is about other classes than those of the settings."""
    return LearntMix.from_document(document) if document and document["of"] == _basis(settings) else None


def _basis(settings: FragmentationSettings) -> list[Any]:
    return [settings.size, *settings.classes]


MAX_FLAVORS = 256
"""How many different tasks to expect, the most frequent ones."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read of a cloud in one snapshot.

    Args:
        class_ids: the ids of the relevant classes that exist, by name.
        kinds: provider -> the kind of device that it is.
        supply: what there is in total.
        expected: how often each task is expected.
        learnt_since: when it began to be learnt, in seconds; None if it is configured or nothing has been learnt.
    """

    class_ids: Mapping[str, int]
    kinds: Mapping[int, str]
    supply: DeviceSupply
    expected: Mapping[DeviceTask, float]
    learnt_since: float | None = None

    def is_like(self, other: "Picture") -> bool:
        """Tell whether another picture leads to the same scores."""
        return self._decisive == other._decisive

    @property
    def _decisive(self) -> tuple[object, ...]:
        expected = [(task.form, often) for task, often in self.expected.items()]
        return self.class_ids, self.kinds, self.supply, expected


@reads
def read_picture(tx: Transaction, settings: FragmentationSettings, profile: str) -> Picture:
    """Return the picture of a cloud, in a snapshot of its own."""
    return picture_of(tx, settings, profile)


def picture_of(tx: Transaction, settings: FragmentationSettings, profile: str) -> Picture:
    """Return the same within the caller's transaction."""
    class_ids = tx.names.classes.ids(tx.connection, frozenset(settings.classes))
    if settings.devices not in class_ids:
        return Picture({}, {}, DeviceSupply({}, settings.size), {})
    kinds = _kinds(tx, settings)
    supply = _supply(cloud_in(tx).columns, settings, class_ids, kinds=kinds)
    if settings.flavors:
        named = {flavor.task: float(flavor.weight) for flavor in settings.flavors.values()}
        return Picture(class_ids, kinds, supply, named)
    mix = learnt_mix(tx, settings, profile)
    return Picture(class_ids, kinds, supply, mix.expected(MAX_FLAVORS) if mix else {}, mix.since if mix else None)


def _kinds(tx: Transaction, settings: FragmentationSettings) -> dict[int, str]:
    """Return the kind of each provider that has one, the first trait of several."""
    if not settings.kinds:
        return {}
    names = {trait.id: trait.name for trait in traits_matching(tx) if best_match(settings.kinds, trait.name)}
    columns, sets, kinds = cloud_in(tx).columns, cloud_in(tx).sets, dict[int, str]()
    sets.read_traits(names)
    for trait_id in sorted(names, reverse=True):
        kinds |= dict.fromkeys(columns.providers.ids[sets.with_trait(trait_id)].tolist(), names[trait_id])
    return kinds


def _supply(
    columns: CloudColumns, settings: FragmentationSettings, class_ids: Mapping[str, int], *, kinds: Mapping[int, str]
) -> DeviceSupply:
    providers, devices = columns.providers, columns.stock(class_ids[settings.devices])
    is_there, units = devices.capacity >= 1, Counter[str]()
    at, capacity = devices.at[is_there], devices.capacity[is_there].astype(np.int64)
    for provider, amount in zip(providers.ids[at].tolist(), capacity.tolist(), strict=True):
        units[kinds.get(provider, "")] += amount
    per_host = int(np.bincount(providers.trees[at]).max(initial=0))
    largest = {name: _largest_tree(columns, class_ids[name]) if name in class_ids else 0 for name in settings.beside}
    return DeviceSupply(units, settings.size, largest, per_host or 1)


def _largest_tree(columns: CloudColumns, class_id: int) -> int:
    """Return the most that any tree has of a class. A provider with more reserved than there is has nothing."""
    stock = columns.stock(class_id)
    return int(np.bincount(columns.providers.trees[stock.at], np.maximum(0, np.trunc(stock.capacity))).max(initial=0))
