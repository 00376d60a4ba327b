"""The judges of what requests leave of devices, one for each profile that says so, and the work that they expect.

The expected work on a cloud's devices is configured, or learnt from requests and allocations. It is read again in the
background, with the total supply.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from placement.allocators import best_match
from placement.allocators.fragmentation.hosts import (
    DeviceSupply,
    DeviceTask,
    FragmentationSettings,
    LearntMix,
    size_of,
    work_of,
)
from placement.allocators.fragmentation.outlook import Outlook
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.fragmentation import DeviceJudge, HostDemand, tasks_of
from placement.cloud.columns import CloudColumns
from placement.services.cloud_cache import cloud_in
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database, Transaction, reads, writes
from placement.store.marks import traits_matching
from placement.store.planner_rows import lock_learnt, read_learnt, write_learnt

LOG = logging.getLogger(__name__)

FIRST_NEWS = 8
"""So many allocations are worth a look if fewer were known."""

MAX_FLAVORS = 256
"""How many different tasks to expect, the most frequent ones."""


@dataclass(frozen=True)
class Picture:
    """What was read of a cloud in one snapshot: ids of classes, kinds of devices by provider, and the total supply.

    ``expected`` says how often each task is, ``learnt_since`` when that began to be learnt, in seconds, if it was.
    """

    settings: FragmentationSettings
    class_ids: Mapping[str, int]
    kinds: Mapping[int, str]
    supply: DeviceSupply
    expected: Mapping[DeviceTask, float]
    learnt_since: float | None = None

    @cached_property
    def judge(self) -> DeviceJudge:
        """The judge by this picture, who keeps what is computed from it."""
        return DeviceJudge(Outlook(self.expected, self.supply), self.settings, self.kinds, self.class_ids)

    @property
    def decisive(self) -> tuple[object, ...]:
        """All that decides about scores."""
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
        return Picture(settings, {}, {}, DeviceSupply({}, settings.size), {})
    kinds = _kinds(tx, settings)
    supply = _supply(cloud_in(tx).columns, settings, class_ids, kinds=kinds)
    if settings.flavors:
        named = {flavor.task: float(flavor.weight) for flavor in settings.flavors.values()}
        return Picture(settings, class_ids, kinds, supply, named)
    mix = _mix(read_learnt(tx, profile), settings)
    expected = mix.expected(MAX_FLAVORS) if mix else {}
    return Picture(settings, class_ids, kinds, supply, expected, mix.since if mix else None)


def _kinds(tx: Transaction, settings: FragmentationSettings) -> dict[int, str]:
    """Return the kind of each provider that has one, the first trait of several."""
    if not settings.kinds:
        return {}
    names = {trait.id: trait.name for trait in traits_matching(tx) if best_match(settings.kinds, trait.name)}
    columns, sets, kinds = cloud_in(tx).columns, cloud_in(tx).sets, dict[int, str]()
    sets.read(traits=names)
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
    per_host, largest = int(np.bincount(providers.trees[at]).max(initial=0)), dict.fromkeys(settings.beside, 0)
    for name in settings.beside:
        if name in class_ids:  # A provider with more reserved than there is has nothing.
            stock = columns.stock(class_ids[name])
            in_trees = np.bincount(providers.trees[stock.at], np.maximum(0, np.trunc(stock.capacity)))
            largest[name] = int(in_trees.max(initial=0))
    return DeviceSupply(units, settings.size, largest, per_host or 1)


MAX_SCORES = 300_000
"""How many scores to keep, about fifty megabytes, before all are dropped."""


class FragmentationJudge:
    """Judges requests by what they leave of devices, as the settings of a profile say. Shared by threads.

    A profile that names no flavors learns them: a worker counts what is news, and adds it to the database now and then.
    """

    def __init__(self, settings: FragmentationSettings, profile: str = "") -> None:
        self.settings = settings
        self._profile = profile
        self._lock = threading.Lock()
        self._picture: Picture | None = None
        self._learns = not settings.flavors
        self._news = LearntMix(time.time())
        self._allocated = 0
        self._saved_size = 0.0
        self._refreshing: BackgroundWork | None = None

    def note_asked(self, demands: Iterable[HostDemand]) -> None:
        """Learn from a request that could be served."""
        if not self._learns or self._picture is None:
            return
        if work := work_of(tasks_of(demands, self.settings, self._picture.supply.units)):
            with self._lock:
                self._news.note_asked(work)

    def note_allocated(self, allocations: Iterable[Mapping[str, int]]) -> None:
        """Learn from what a new consumer was given of each provider; refresh once as much is new as was old."""
        demands = [HostDemand(amounts, 1, ()) for amounts in allocations] if self._learns else []
        if size := size_of(work_of(tasks_of(demands, self.settings, ()))):
            with self._lock:
                self._news.note_allocated(size)
                self._allocated += 1
                is_much = self._allocated == max(FIRST_NEWS, round(self._saved_size))
            if is_much and self._refreshing is not None:
                self._refreshing.due = 0.0

    def latest(self) -> DeviceJudge | None:
        """Return the judge by the latest picture, None before there is one."""
        return self._picture.judge if self._picture else None

    def in_snapshot(self, tx: Transaction) -> DeviceJudge:
        """Return the judge by the latest picture; the first request reads it."""
        if self._picture is None:
            with self._lock:
                self._picture = self._picture or picture_of(tx, self.settings, self._profile)
        elif self._picture.judge.scored > MAX_SCORES:
            self._picture = replace(self._picture)
        return self._picture.judge

    def picture(self, database: Database) -> Picture:
        """Return the picture in force; before anything was judged, the one that would be."""
        return self._picture or read_picture(database, self.settings, self._profile)

    def refreshing(self, database: Database) -> BackgroundWork:
        """Return the work that refreshes this judge now and then."""
        every_s, work = self.settings.refresh_s, partial(self._refresh_quietly, database)
        self._refreshing = BackgroundWork(work, name="refresh-expected-work", first_s=every_s, every_s=every_s)
        return self._refreshing

    def refresh(self, database: Database) -> None:
        """Save what was learnt and read the picture again; keep everything computed if nothing relevant has changed."""
        with self._lock:
            news, self._news, self._allocated = self._news, LearntMix(time.time()), 0
        if not news.is_empty:
            self._saved_size = _add(database, self.settings, self._profile, news=news, now=time.time())
        if self._picture is None:
            return  # The first request reads it.
        picture = read_picture(database, self.settings, self._profile)
        if picture.decisive != self._picture.decisive:
            self._picture = picture

    def _refresh_quietly(self, database: Database) -> None:
        try:
            self.refresh(database)
        except Exception:
            LOG.exception("The expected work on devices could not be read again; the previous mix stays in force.")


@writes
def _add(tx: Transaction, settings: FragmentationSettings, profile: str, *, news: LearntMix, now: float) -> float:
    """Add to what a profile has learnt; return how much it has learnt in all."""
    mix = _mix(lock_learnt(tx, profile), settings) or LearntMix(news.since)
    mix.add(news, now)
    write_learnt(tx, profile, {"of": [settings.size, *settings.classes], **mix.document()})
    return mix.total


def _mix(document: Any, settings: FragmentationSettings) -> LearntMix | None:
    """Read a document, unless it is about other classes than those of the settings."""
    is_about_these = document and document["of"] == [settings.size, *settings.classes]
    return LearntMix.from_document(document) if is_about_these else None


def judges_of(profiles: Mapping[str, RankingProfile]) -> dict[str, FragmentationJudge]:
    """Return the judges of those profiles that weigh fragmentation, by name."""
    return {
        name: FragmentationJudge(profile.fragmentation, name)
        for name, profile in profiles.items()
        if profile.fragmentation is not None and profile.fragmentation.weight
    }
