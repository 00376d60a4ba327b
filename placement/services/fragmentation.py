"""The judges of what requests leave of devices: one for each profile that says so.

The total supply and the expected work are refreshed in the background (``expected_work.py``). A profile that names no
flavors learns them from the requests that it judges.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from placement.allocators.fragmentation.hosts import FragmentationSettings
from placement.allocators.fragmentation.outlook import Outlook
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.fragmentation import DeviceJudge, HostDemand
from placement.services.expected_work import Picture, WorkLearner, picture_of, read_picture
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database, Transaction

LOG = logging.getLogger(__name__)

MAX_SCORES = 300_000
"""How many scores to keep, about fifty megabytes, before all are dropped."""


class _PictureInUse(NamedTuple):
    """A picture, and the judge by it, who keeps what is computed from it."""

    picture: Picture
    judge: DeviceJudge


class FragmentationJudge:
    """Judges requests by what they leave of devices, as a profile says. Shared by threads.

    Args:
        settings: the profile's settings.
        profile: its name.
    """

    def __init__(self, settings: FragmentationSettings, profile: str = "") -> None:
        self.settings = settings
        self._profile = profile
        self._first = threading.Lock()
        self._in_use: _PictureInUse | None = None
        self._learner = None if settings.flavors else WorkLearner(settings, profile)
        self._refreshing: BackgroundWork | None = None

    def note_asked(self, demands: Iterable[HostDemand]) -> None:
        """Learn from a request that could be served."""
        if self._learner is not None and self._in_use is not None:
            self._learner.note_asked(demands, self._in_use.picture.supply.units)

    def note_allocated(self, allocations: Iterable[Mapping[str, int]]) -> None:
        """Learn from what a new consumer was given, provider by provider; begin to refresh if much is new."""
        if self._learner is not None and self._learner.note_allocated(allocations) and self._refreshing is not None:
            self._refreshing.due = 0.0

    def latest(self) -> DeviceJudge | None:
        """Return the judge by the latest picture, None before there is one."""
        return self._in_use.judge if self._in_use else None

    def in_snapshot(self, tx: Transaction) -> DeviceJudge:
        """Return the judge by the latest picture; the first request reads it."""
        if self._in_use is None:
            with self._first:
                if self._in_use is None:
                    self._use(picture_of(tx, self.settings, self._profile))
        elif self._in_use.judge.scored > MAX_SCORES:
            self._use(self._in_use.picture)
        assert self._in_use is not None
        return self._in_use.judge

    def _use(self, picture: Picture) -> None:
        outlook, class_ids = Outlook(picture.expected, picture.supply), picture.class_ids
        self._in_use = _PictureInUse(picture, DeviceJudge(outlook, self.settings, picture.kinds, class_ids))

    def picture(self, database: Database) -> Picture:
        """Return the picture in force; before anything was judged, the one that would be."""
        return self._in_use.picture if self._in_use else read_picture(database, self.settings, self._profile)

    def refreshing(self, database: Database) -> BackgroundWork:
        """Return the work that refreshes this judge now and then."""
        self._refreshing = BackgroundWork(
            partial(self._refresh_quietly, database),
            name="refresh-expected-work",
            first_s=self.settings.refresh_s,
            every_s=self.settings.refresh_s,
        )
        return self._refreshing

    def refresh(self, database: Database) -> None:
        """Save what was learnt and read the picture again; keep everything computed if nothing relevant has changed."""
        if self._learner is not None:
            self._learner.save(database)
        if self._in_use is None:
            return  # The first request reads it.
        picture = read_picture(database, self.settings, self._profile)
        if not picture.is_like(self._in_use.picture):
            self._use(picture)

    def _refresh_quietly(self, database: Database) -> None:
        try:
            self.refresh(database)
        except Exception:
            LOG.exception("The expected work on devices could not be read again; the previous mix stays in force.")


class FragmentationJudges:
    """The judges of those profiles that have one."""

    def __init__(self, profiles: Mapping[str, RankingProfile]) -> None:
        self._by_name = {
            name: FragmentationJudge(profile.fragmentation, name)
            for name, profile in profiles.items()
            if profile.fragmentation is not None and profile.fragmentation.weight
        }

    def refreshing(self, database: Database) -> Iterator[BackgroundWork]:
        """Yield the work that refreshes each judge now and then."""
        for judge in self._by_name.values():
            yield judge.refreshing(database)

    def judge_for(self, profile: RankingProfile) -> FragmentationJudge | None:
        """Return the judge of a profile, or None."""
        return self._by_name.get(profile.name)
