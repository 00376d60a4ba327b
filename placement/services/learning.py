"""Learn the mix of work for a profile from the requests that it judged and from what was then allocated.

A worker counts in memory, and adds its counts to the database now and then, in the background: one short transaction
that may fail without harm. What it has counted since is lost when it stops.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from placement.allocators.fragmentation import FragmentationSettings, LearntMix, size_of, work_of
from placement.candidates.fragmentation import WantedOfHost, tasks_of
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, writes
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
        self._known = 0.0

    def note_asked(self, wanted: Iterable[WantedOfHost], kinds: Collection[str]) -> None:
        """Count a request that could be served, in a cloud with these kinds of devices."""
        if work := work_of(tasks_of(wanted, self._settings, kinds)):
            with self._lock:
                self._news.note_asked(work)

    def note_allocated(self, allocations: Iterable[Mapping[str, int]]) -> bool:
        """Count what was allocated of each provider; tell whether just now as much is new as was known before."""
        size = size_of(work_of(tasks_of([WantedOfHost(of, 1, ()) for of in allocations], self._settings, ())))
        if not size:
            return False
        with self._lock:
            self._news.note_allocated(size)
            self._allocated += 1
            return self._allocated == max(FIRST_NEWS, round(self._known))

    def save(self, database: Database) -> None:
        """Add what is new to the database."""
        with self._lock:
            news, self._news, self._allocated = self._news, LearntMix(self._clock()), 0
        if not news.is_empty:
            self._known = _add(database, self._settings, self._profile, news=news, now=self._clock())


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
