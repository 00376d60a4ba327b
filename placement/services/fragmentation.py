"""The effect of a request on the devices of a cloud, judged by what is free in the caller's transaction.

The total supply and the expected workload are refreshed in the background (``expected_work.py``). A profile that
names no flavors learns them from the requests that it judges.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from placement.allocators.fragmentation import DeviceTask, FragmentationSettings, Outlook
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.fragmentation import (
    DeviceJudge,
    FreeTrees,
    Tasks,
    TreeFragmentation,
    TreesByForm,
    WantedOfHost,
    kinds_of,
    tasks_of,
)
from placement.candidates.planner.planner_trees import ChangedProvider
from placement.cloud.derived import BYTES_OF_FACT, reading_all_pays
from placement.domain.search_plan import Plan
from placement.services.background import BackgroundWork
from placement.services.cloud_cache import cloud_in
from placement.services.expected_work import Picture, WorkLearner, picture_of, read_picture
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.cloud_rows import ProviderAmount, left_by_provider

LOG = logging.getLogger(__name__)

NO_CHANGES: Mapping[int, ChangedProvider] = MappingProxyType({})

MAX_SCORES = 300_000
"""How many scores to keep, about fifty megabytes, before all are dropped."""


class _PictureInUse:
    """A picture, with everything computed from it."""

    def __init__(self, picture: Picture, settings: FragmentationSettings) -> None:
        self.picture = picture
        self.outlook = Outlook(picture.expected, picture.supply)
        self.by_form = TreesByForm(picture.classes, settings, picture.kinds)
        self.tasks: dict[object, Tasks] = {}
        self.scores = 0


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
        self._known: _PictureInUse | None = None
        self._learner = None if settings.flavors else WorkLearner(settings, profile)
        self._refreshing: BackgroundWork | None = None

    def note_asked(self, wanted: Iterable[WantedOfHost]) -> None:
        """Learn from a request that could be served."""
        if self._learner is not None and self._known is not None:
            self._learner.note_asked(wanted, self._known.picture.supply.units)

    def note_allocated(self, allocations: Iterable[Mapping[str, int]]) -> None:
        """Learn from what a new consumer was given, provider by provider; begin to refresh if much is new."""
        if self._learner is not None and self._learner.note_allocated(allocations) and self._refreshing is not None:
            self._refreshing.due = 0.0

    def in_snapshot(self, tx: Transaction) -> "JudgeInSnapshot":
        """Return the judge by what is free in a snapshot."""
        return JudgeInSnapshot(self, tx)

    def device_judge_in(self, tx: Transaction) -> DeviceJudge:
        """Return a judge for the devices of trees whose details the caller has; reads no more than that takes."""
        known = self._known_in(tx)
        return DeviceJudge(known.outlook, self.settings, known.picture.kinds)

    def latest_device_judge(self) -> DeviceJudge | None:
        """Return the same by the latest picture, None before there is one."""
        known = self._known
        return DeviceJudge(known.outlook, self.settings, known.picture.kinds) if known else None

    def judged(
        self,
        tx: Transaction,
        plan: Plan,
        wanted: Iterable[WantedOfHost],
        changed: Mapping[int, ChangedProvider] = NO_CHANGES,
    ) -> TreeFragmentation:
        """Return the effect of a request on each tree, in this transaction, with some providers as they would be."""
        known = self._known_in(tx)
        if known.scores > MAX_SCORES:
            known = self._known = _PictureInUse(known.picture, self.settings)
        trees = self._free_trees(tx, known)
        if changed:
            trees = {**trees, **known.by_form.trees(self._rows_with(tx, known, changed))}
        wanted_tasks = tasks_of(wanted, self.settings, known.picture.supply.units)
        # One shared object for all that ask for the same.
        tasks = known.tasks.setdefault(tuple([task.form for task in wanted_tasks]), tuple(wanted_tasks))
        found = TreeFragmentation(
            trees, known.outlook, tasks, of_demands=self._of_demands(known, plan, tasks), settings=self.settings
        )
        known.scores += found.unknown
        return found

    def _free_trees(self, tx: Transaction, known: _PictureInUse) -> FreeTrees:
        """Return what trees have free, reading only those that have changed since they were kept."""
        classes, cloud = known.picture.classes, cloud_in(tx)
        if not classes:
            return {}
        kept = cloud.kept.find(known)
        if kept is None or reading_all_pays(len(kept.changed), len(kept.value)):
            trees: FreeTrees = known.by_form.trees(left_by_provider(tx, classes))
        elif kept.changed:
            changed = known.by_form.trees(left_by_provider(tx, classes, kept.changed))
            trees = {root: stand for root, stand in kept.value.items() if root not in kept.changed} | changed
        else:
            trees = kept.value
        cloud.kept.keep(known, trees, size=BYTES_OF_FACT * len(trees))
        return trees

    def _rows_with(
        self, tx: Transaction, known: _PictureInUse, changed: Mapping[int, ChangedProvider]
    ) -> list[ProviderAmount]:
        classes = {name: id_ for id_, name in known.picture.classes.items()}
        rows = left_by_provider(tx, known.picture.classes, {one.root for one in changed.values()})
        return [row for row in rows if row[1] not in changed] + [
            (root, provider, classes[name], stock.capacity - stock.used)
            for provider, (root, stocks) in changed.items()
            for name, stock in stocks.items()
            if name in classes and stock.capacity > stock.used
        ]

    def _of_demands(self, known: _PictureInUse, plan: Plan, tasks: Tasks) -> dict[int, DeviceTask]:
        by_share = {(task.share, task.kinds): task for task in tasks}
        units = known.picture.supply.units
        found = {}
        for number, demand in enumerate(plan.demands):
            share = dict(demand.resources).get(self.settings.devices, 0)
            task = by_share.get((share, kinds_of([demand.group], self.settings, units))) if share else None
            if task is not None:
                found[number] = task
        return found

    def _known_in(self, tx: Transaction) -> _PictureInUse:
        known = self._known
        if known is None:
            with self._first:
                if self._known is None:
                    self._known = _PictureInUse(picture_of(tx, self.settings, self._profile), self.settings)
                return self._known
        return known

    def picture(self, database: Database) -> Picture:
        """Return the picture in force; before anything was judged, the one that would be."""
        known = self._known
        return known.picture if known else read_picture(database, self.settings, self._profile)

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
        if self._known is None:
            return  # The first request reads it.
        picture = read_picture(database, self.settings, self._profile)
        if not picture.is_like(self._known.picture):
            self._known = _PictureInUse(picture, self.settings)

    def _refresh_quietly(self, database: Database) -> None:
        try:
            self.refresh(database)
        except Exception:
            LOG.exception("The expected work on devices could not be read again; the previous mix stays in force.")


class JudgeInSnapshot:
    """Judges requests by what is free in a snapshot."""

    def __init__(self, judge: FragmentationJudge, tx: Transaction) -> None:
        self._judge = judge
        self._tx = tx

    def judged(
        self, plan: Plan, wanted: Iterable[WantedOfHost], changed: Mapping[int, ChangedProvider] = NO_CHANGES
    ) -> TreeFragmentation:
        """Return the effect of a request on each tree, with some providers as they would be."""
        return self._judge.judged(self._tx, plan, wanted, changed)

    @property
    def of_devices(self) -> DeviceJudge:
        """The judge for the devices of trees whose details are known."""
        return self._judge.device_judge_in(self._tx)


class FragmentationJudges:
    """The packers of those profiles that have one."""

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

    def of(self, profile: RankingProfile) -> FragmentationJudge | None:
        """Return the judge of a profile, or None."""
        return self._by_name.get(profile.name)
