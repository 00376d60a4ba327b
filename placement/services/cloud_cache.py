"""What a worker caches of clouds from request to request, made exact in each request's snapshot.

A request reads which trees its own snapshot shows changed since a value was worked out, and works out only these again.
Whoever writes past the journal's triggers leaves caches wrong. So a few random trees are compared with the tables again
and again; one difference is enough to drop everything. It shows as well where kept usage is wrong.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.planner.planner_trees import ProviderNames
from placement.candidates.serving import Serving
from placement.candidates.tree_reader import TreeReader
from placement.cloud.columns import CloudColumns
from placement.cloud.derived import BYTES_OF_FACT, Derived, KeptInState
from placement.cloud.providers import Flags, Ints, ProviderColumns
from placement.domain.search_plan import NamedIds, Plan
from placement.domain.tree import PlaceLock
from placement.errors import PlacementError
from placement.services.tree_history import TreeHistory
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database, Transaction, reads
from placement.store.journal.triggers import doubt_usage
from placement.store.journal.watched import AGGREGATE, PROVIDER, TRAIT
from placement.store.resource_classes import all_classes
from placement.store.search.cloud_rows import (
    aggregates_of,
    cloud_rows,
    members_of_aggregates,
    newest_root,
    owners_of_traits,
    rows_from_tables,
)
from placement.store.search.names import ids_for, names_in

LOG = logging.getLogger(__name__)

MAX_REASONS = 128
"""The most requests to remember that find nothing in one state of the trees, the newest first."""

BYTES_OF_REASON = 5000
"""What a request takes that finds nothing, with the reason."""

NOTHING_FOUND = "nothing found"
"""The name of these requests among what was derived."""

BYTES_OF_NAMES = 400
"""What the names of a provider take."""

MAX_NAMED = 100_000
"""The most providers whose names are remembered."""

TREES_NAMED_TOGETHER = 64
"""The names in so many trees, neighbours by root, are read at a time: few enough to waste little."""

Mark = tuple[str, int]
"""A trait or an aggregate: its kind, as in the journal, and its id."""

ReadSets = Callable[[Transaction, Collection[int]], Mapping[int, Ints]]
"""Reads who has each of some traits, or is in each of some aggregates: the ids of providers, ascending."""


class CloudCache:
    """What a worker keeps of one database's cloud, shared by threads. A standby shares what its primary has derived."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, derived: Derived | None = None) -> None:
        self.history = TreeHistory(clock)
        self.derived = derived or Derived()


def cache_of(database: Database) -> CloudCache:
    """Return what this worker keeps of a database's cloud."""
    if database.cloud_cache is None:
        database.cloud_cache = CloudCache(derived=cache_of(database.primary).derived if database.primary else None)
    cache: CloudCache = database.cloud_cache
    return cache


class CloudInSnapshot:
    """The cloud as a snapshot shows it: what is kept of it, brought up to date, or all of it read anew."""

    def __init__(self, tx: Transaction) -> None:
        cache = cache_of(tx.database)
        self._tx = tx
        self.version = cache.history.version(tx)
        """Where the snapshot stands in the history of its trees; None if that is unknown."""
        self.kept = KeptInState(cache.derived, self.version)
        """What was derived from the state that it shows."""

    @cached_property
    def columns(self) -> CloudColumns:
        """All providers."""
        if self.version is not None:
            return self.version.history.columns(self._tx, self.version)
        return CloudColumns.from_rows(cloud_rows(self._tx))

    @cached_property
    def sets(self) -> "SetsInSnapshot":
        """The sets of providers that meet conditions."""
        return SetsInSnapshot(self._tx, self.columns.providers, self.kept)

    @cached_property
    def names(self) -> "NamesInSnapshot":
        """The uuids and names of providers."""
        return NamesInSnapshot(self._tx, self.columns.providers, self.kept)

    def serving(
        self, plan: Plan, ids: NamedIds, *, levels: Sequence[int | None] = (), adds_up: bool = False
    ) -> Serving:
        """Return what finds who can serve a plan; see ``reader``. ``levels`` are traits of levels to read along."""
        sharing = [ids.sharing_trait] if ids.shares else []
        places = [trait_id for trait_id in (*levels, *ids.locks.values()) if trait_id is not None]
        traits = {*places, *sharing, *[ids.traits[name] for name in plan.trait_names]}
        self.sets.read(traits=traits, aggregates=ids.aggregates.values())
        return Serving(plan, ids, columns=self.columns, sets=self.sets, adds_up=adds_up)

    def reader(self, plan: Plan, ids: NamedIds, *, with_places: bool = False, adds_up: bool = False) -> TreeReader:
        """Return what takes the trees that can serve a plan from columns; ``adds_up``: all slots take at once."""
        serving = self.serving(plan, ids, levels=ids.levels if with_places else (), adds_up=adds_up)
        return TreeReader(serving, partial(self._tx.names.classes.ids, self._tx.connection), with_places=with_places)

    def node_classes(self, profile: RankingProfile) -> list[str]:
        """Return all classes if a profile names any by family; otherwise none, since none is needed."""
        return [class_.name for class_ in all_classes(self._tx)] if profile.strategy.names_families else []

    def reason_for_nothing(self, question: tuple[object, ...]) -> Any:
        """Return why a request finds nothing; None if it is not known to find nothing.

        Where little is left, the same is asked again and again, and to find nothing takes longest.
        """
        return next((nothing.reason for nothing in self._nothing_found() if nothing.question == question), None)

    def note_nothing(self, question: tuple[object, ...], reason: object, *, lasts: bool = False) -> None:
        """Remember why a request finds nothing, until a tree changes; or if it ``lasts``, until one has more left."""
        reasons = [nothing for nothing in self._nothing_found() if nothing.question != question]
        self._keep_nothing((_Nothing(question, reason, lasts), *reasons[: MAX_REASONS - 1]))

    def _nothing_found(self) -> Sequence["_Nothing"]:
        kept = self.kept.find(NOTHING_FOUND)
        if kept is None or kept.changed - kept.filled:
            return ()
        reasons: Sequence[_Nothing] = kept.value
        if kept.changed:
            reasons = [nothing for nothing in reasons if nothing.lasts]
            self._keep_nothing(reasons)
        return reasons

    def _keep_nothing(self, reasons: Sequence["_Nothing"]) -> None:
        self.kept.keep(NOTHING_FOUND, reasons, size=BYTES_OF_REASON * len(reasons))


def cloud_in(tx: Transaction) -> CloudInSnapshot:
    """Return the cloud as a snapshot shows it, the same object each time."""
    if CloudInSnapshot not in tx.remembered:
        tx.remembered[CloudInSnapshot] = CloudInSnapshot(tx)
    cloud: CloudInSnapshot = tx.remembered[CloudInSnapshot]
    return cloud


def ids_in(tx: Transaction, plan: Plan, levels: Sequence[str] = (), *, locks: Sequence[PlaceLock] = ()) -> NamedIds:
    """Return the ids of the names in a plan, if possible read in the cache's own statement; Invalid if unknown."""
    return ids_for(tx, plan, levels, locks=locks, read_along=cache_of(tx.database).history.read_along)


class _Nothing(NamedTuple):
    """A request that finds nothing, and why; and whether that holds while more and more is in use."""

    question: tuple[object, ...]
    reason: object
    lasts: bool


class _KnownHolders(NamedTuple):
    """Who has a trait, or is in an aggregate: by id, and by position among the providers of some columns."""

    ids: Ints
    providers: "ref[ProviderColumns] | None" = None
    """Weak: what is rarely asked for does not keep the providers of a former state in memory."""
    flags: Flags = np.zeros(0, dtype=bool)


class SetsInSnapshot:
    """The sets of providers that meet conditions in a snapshot: the ``ProviderSets`` of its columns."""

    def __init__(self, tx: Transaction, providers: ProviderColumns, kept: KeptInState) -> None:
        self._tx = tx
        self._providers = providers
        self._kept = kept
        self._flags: dict[Mark, Flags] = {}
        self._aggregates: dict[object, Mapping[int, Collection[int]]] = {}

    def read(self, *, traits: Collection[int] = (), aggregates: Collection[int] = ()) -> None:
        """Find out who has each of some traits or aggregates, with one query of each for those that are not known."""
        self._read(TRAIT, traits, owners_of_traits)
        self._read(AGGREGATE, aggregates, members_of_aggregates)

    def with_trait(self, trait_id: int) -> Flags:
        """Return who has a trait."""
        self._read(TRAIT, [trait_id], owners_of_traits)
        return self._flags[TRAIT, trait_id]

    def in_aggregate(self, aggregate_id: int) -> Flags:
        """Return who is in an aggregate."""
        self._read(AGGREGATE, [aggregate_id], members_of_aggregates)
        return self._flags[AGGREGATE, aggregate_id]

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return the aggregates of some providers, given by id."""
        name = "aggregates of", frozenset(providers)
        if name not in self._aggregates:
            size, read = BYTES_OF_FACT * len(providers), partial(aggregates_of, self._tx, providers)
            self._aggregates[name] = self._kept.unless_marked(name, (AGGREGATE,), read=read, size=size)
        return self._aggregates[name]

    def _read(self, kind: str, ids: Collection[int], read: ReadSets) -> None:
        marks = [(kind, id_) for id_ in ids if (kind, id_) not in self._flags]
        if not marks:
            return
        kept = {mark: self._kept.find(mark) for mark in marks}
        holders_of = {
            mark: entry.value for mark, entry in kept.items() if entry is not None and mark not in entry.marks
        }
        if unread := {id_ for _kind, id_ in kept.keys() - holders_of.keys()}:
            holders_of |= {(kind, id_): _KnownHolders(holders) for id_, holders in read(self._tx, unread).items()}
        self._flags |= {mark: self._at_positions(mark, holders) for mark, holders in holders_of.items()}

    def _at_positions(self, mark: Mark, holders: "_KnownHolders") -> Flags:
        if holders.providers is None or holders.providers() is not self._providers:
            at = self._providers.positions(holders.ids)
            flags = np.zeros(len(self._providers.ids), dtype=bool)
            flags[at[at >= 0]] = True
            holders = _KnownHolders(holders.ids, ref(self._providers), flags)
        self._kept.keep(mark, holders, size=holders.ids.nbytes + holders.flags.nbytes)
        return holders.flags


class NamesInSnapshot:
    """The uuids and names of providers in a snapshot."""

    def __init__(self, tx: Transaction, providers: ProviderColumns, kept: KeptInState) -> None:
        self._tx = tx
        self._providers = providers
        self._kept = kept
        self._names: dict[int, ProviderNames] = {}
        if kept_names := kept.find(PROVIDER):
            changed = {root for kind, root in kept_names.marks if kind == PROVIDER}
            names = kept_names.value
            self._names = {root: names[root] for root in names.keys() - changed} if changed else names

    def of_trees(self, roots: Collection[int]) -> Mapping[int, ProviderNames]:
        """Return the names in trees that exist, by root; others may be included. One query for those not known."""
        if unknown := [root for root in roots if root not in self._names]:
            self._names = {**self._names, **self._read(unknown)}
            number = sum(map(len, self._names.values()))
            names = self._names if number <= MAX_NAMED else {}
            self._kept.keep(PROVIDER, names, size=BYTES_OF_NAMES * number)
        return self._names

    def _read(self, unknown: Collection[int]) -> Mapping[int, ProviderNames]:
        blocks = np.unique(self._providers.tree_indices(sorted(unknown)) // TREES_NAMED_TOGETHER)
        indices = np.add.outer(blocks * TREES_NAMED_TOGETHER, np.arange(TREES_NAMED_TOGETHER)).ravel()
        roots = self._providers.roots[indices[indices < len(self._providers.roots)]].tolist()
        return names_in(self._tx, [root for root in roots if root not in self._names])


def load(database: Database) -> None:
    """Read the cloud ahead of all requests, if possible, and leave no connection open.

    Processes that are forked later share its memory. Connections they must not share: uWSGI forks behind Python's back.
    """
    try:
        _load(database)
    except PlacementError as error:
        LOG.info("The cloud could not be read ahead of requests: %s", error.message)
    database.dispose()


@reads
def _load(tx: Transaction) -> None:
    cloud = cloud_in(tx)
    if cloud.version is not None:
        _ = cloud.columns


TREES = 5
"""How many to compare at once, besides the newest."""

EVERY_S = 1.0

EXAMPLES = 3
"""How many rows to log of each side."""

Shown = Sequence[tuple[float, ...]]


class Difference(NamedTuple):
    """The rows of some trees that only the columns or only the tables have, and whether kept usage differs."""

    cached: Shown
    stored: Shown
    is_of_usage: bool


def cloud_check(database: Database) -> BackgroundWork:
    """Return the work of comparing what a worker has cached."""
    return BackgroundWork(lambda: compare_some(database), name="cloud check", first_s=EVERY_S, every_s=EVERY_S)


def compare_some(database: Database) -> None:
    """Compare a few trees of a database and of its standby; at the first difference, drop all that is cached of it."""
    for checked in (database, *([database.standby.database] if database.standby else [])):
        if checked.cloud_cache is None:
            continue
        try:
            difference = _difference(checked)
        except PlacementError as error:
            LOG.info("Cached trees could not be compared with the tables: %s", error.message)
            continue
        if difference is not None:
            _drop(checked, difference)


def _drop(database: Database, difference: Difference) -> None:
    LOG.error(
        "What is cached of some provider trees is not what the tables hold: %s instead of %s. Somebody may write past "
        "the triggers. All that is cached is dropped%s; run 'placement db check'.",
        difference.cached[:EXAMPLES],
        difference.stored[:EXAMPLES],
        ", and usage is summed" if difference.is_of_usage else "",
    )
    if difference.is_of_usage:
        doubt_usage(database)
    cache_of(database).history.drop()
    database.note_drop("difference")


@reads
def _difference(tx: Transaction) -> Difference | None:
    history = cache_of(tx.database).history
    version, newest = history.version(tx), newest_root(tx)
    sample = version and history.random_trees(version, TREES, also=() if newest is None else (newest,))
    if not sample:
        return None
    columns, roots = sample
    summed = columns.summed  # Requests sum further classes meanwhile.
    cached = columns.shown(roots, summed)
    stored = CloudColumns.from_rows(rows_from_tables(tx, roots)).shown(roots, summed)
    if cached == stored:
        return None
    kept = CloudColumns.from_rows(cloud_rows(tx, roots)).shown(roots, summed)
    return Difference(_without(cached, stored), _without(stored, cached), kept != stored)


def _without(rows: Shown, excluded: Shown) -> Shown:
    return [row for row in rows if row not in excluded]
