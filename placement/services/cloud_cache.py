"""What a worker caches of clouds from request to request, made exact in each request's snapshot.

A request reads which trees its own snapshot shows changed since a value was worked out, and works out only these again.
"""

import logging
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from placement.candidates.key_order import KeyColumns, KeyOrder
from placement.candidates.planner_trees import Names
from placement.candidates.ranking import TreeScores
from placement.candidates.serving import Serving
from placement.candidates.tree_reader import TreeReader
from placement.cloud.columns import CloudColumns, Flags, Ints, ProviderColumns
from placement.cloud.derived import MAX_BYTES, Derived, Kept
from placement.domain.search_limits import LIMITS, SearchLimits
from placement.domain.search_plan import NamedIds, Plan
from placement.errors import PlacementError
from placement.services.tree_history import Moment, TreeHistories, TreeHistory, reading_all_pays
from placement.store.connection.database import Database
from placement.store.connection.prepared import PreparedScalars, Values
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.journal.watched import AGGREGATE, PROVIDER, TRAIT
from placement.store.search.cloud_rows import cloud_rows
from placement.store.search.provider_names import names_in
from placement.store.search.provider_sets import aggregates_of, members_of_aggregates, owners_of_traits

LOG = logging.getLogger(__name__)

MAX_LISTED = 1000
"""If more trees have changed, facts about all are read again."""

BYTES_OF_KEY = 40
"""What a tree's key takes in an order."""

BYTES_OF_FACT = 100
"""What a fact about a tree takes."""

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

_COLUMNS = "columns as read"
"""Where a snapshot's columns are remembered if nothing can be followed."""

Fact = TypeVar("Fact")

FactByRoot = Mapping[int, Fact]
"""A fact about trees, by root; trees that it is not true of are missing."""

ReadFacts = Callable[[Collection[int] | None], FactByRoot[Fact]]
"""Reads the facts of the trees with the given roots; of all if given None."""


class CloudCache:
    """What is known of each database's cloud, shared by threads.

    Args:
        most_bytes: how much of what was derived to keep.
        clock: the time in seconds, from any moment on.
        histories: which trees have changed; new ones by that clock by default.
    """

    def __init__(
        self,
        *,
        most_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
        histories: TreeHistories | None = None,
    ) -> None:
        self.histories = histories or TreeHistories(clock)
        self.derived = Derived(most_bytes)

    def history(self, tx: Transaction) -> TreeHistory:
        """Return the history of the trees of a transaction's database."""
        return self.histories.of(tx.database)

    def moment(self, tx: Transaction) -> Moment | None:
        """Return where a snapshot stands in the history of its trees; None if that is unknown."""
        return self.history(tx).moment(tx)

    def read_along(self, tx: Transaction, scalars: PreparedScalars, values: Values) -> Sequence[Any] | None:
        """Return scalars, read in the statement that the cache needs anyway; None if they must be read alone."""
        return self.history(tx).read_along(tx, scalars, values)

    def order(self, tx: Transaction, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the keys of all trees in this snapshot, in order; None if they cannot be cached.

        Args:
            tx: the snapshot.
            scores: what trees can score.
            found_by: further classes. Only trees that have any of these or of those of the scores have a key.
        """
        moment = self.moment(tx) if scores.signature is not None and scores.classes else None
        return None if moment is None else self.order_at(tx, moment, scores, found_by)

    def order_at(self, tx: Transaction, moment: Moment, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder:
        """Return the same for a snapshot whose moment is known, and scores that have a signature and classes."""
        # A class may take the name of another, which the journal does not record.
        ids = tx.names.classes.ids(tx.connection, {*scores.classes, *found_by})
        name = "order", scores.signature, tuple(found_by), frozenset(ids.items())
        kept = self.derived.find(moment, name)
        if kept is not None and not kept.changed:
            return _order_in(kept.value)
        columns = moment.history.columns(tx, moment)
        if kept is None or reading_all_pays(len(kept.changed), len(columns.providers.roots)):
            order = KeyOrder(_keys(columns, scores, ids))
        else:
            changed = columns.providers.tree_indices(sorted(kept.changed))
            keys = _keys(columns, scores, ids, changed[changed >= 0])
            before = _order_in(kept.value).keys
            order = KeyOrder(before.with_changes(kept.changed.difference(keys.roots.tolist()), keys))
        # The signature of scores names their profile by its identity, so the profile is kept as well.
        self.derived.keep(moment, name, (scores, order), size=BYTES_OF_KEY * len(order))
        return order

    def facts(self, tx: Transaction, name: Hashable, read: ReadFacts[Fact]) -> FactByRoot[Fact] | None:
        """Return facts about all trees in this snapshot; None if it is unknown which trees have changed.

        Args:
            tx: the snapshot.
            name: identifies the facts: whatever they depend on besides the trees.
            read: reads them in this snapshot.
        """
        moment = self.moment(tx)
        if moment is None:
            return None
        kept = self.derived.find(moment, ("facts", name))
        if kept is None or len(kept.changed) > MAX_LISTED:
            facts = read(None)
        elif kept.changed:
            facts = {root: fact for root, fact in kept.value.items() if root not in kept.changed}
            facts = {**facts, **read(kept.changed)}
        else:
            facts = kept.value
        self.derived.keep(moment, ("facts", name), facts, size=BYTES_OF_FACT * len(facts))
        return facts

    def reason_for_nothing(self, tx: Transaction, asked: tuple[object, ...]) -> Any:
        """Return why a request finds nothing in a snapshot; None if it is not known to find nothing.

        Where little is left, the same is asked for again and again, and to find nothing takes longer than to find
        something.

        Args:
            tx: the snapshot.
            asked: all that the reason depends on besides the trees and names; found again by equality.
        """
        return next((reason for known, reason in self._nothing_found(tx) if known == asked), None)

    def note_nothing(self, tx: Transaction, asked: tuple[object, ...], reason: object) -> None:
        """Remember that a request finds nothing in a snapshot, until a tree changes."""
        moment = self.moment(tx)
        if moment is not None:
            reasons = ((asked, reason), *self._nothing_found(tx)[: MAX_REASONS - 1])
            self.derived.keep(moment, NOTHING_FOUND, reasons, size=BYTES_OF_REASON * len(reasons))

    def _nothing_found(self, tx: Transaction) -> Sequence[tuple[tuple[object, ...], Any]]:
        moment = self.moment(tx)
        kept = self.derived.find(moment, NOTHING_FOUND) if moment else None
        reasons: Sequence[tuple[tuple[object, ...], Any]] = () if kept is None or kept.changed else kept.value
        return reasons


class _KnownHolders(NamedTuple):
    """Who has a trait, or is in an aggregate: by id, and by position among the providers of some columns."""

    ids: Ints
    providers: ProviderColumns | None = None
    flags: Flags = np.zeros(0, dtype=bool)


class SetsInSnapshot:
    """The sets of providers that meet conditions in a snapshot: the ``ProviderSets`` of its columns.

    Args:
        tx: the snapshot.
        columns: its columns.
        cache: what is cached, if anything is.
    """

    def __init__(self, tx: Transaction, columns: CloudColumns, cache: CloudCache | None) -> None:
        self._tx = tx
        self._providers = columns.providers
        self._derived = cache and cache.derived
        self._moment = cache and cache.moment(tx)
        self._flags: dict[Mark, Flags] = {}

    def with_trait(self, trait_id: int) -> Flags:
        """Return who has a trait."""
        self.read_traits([trait_id])
        return self._flags[TRAIT, trait_id]

    def in_aggregate(self, aggregate_id: int) -> Flags:
        """Return who is in an aggregate."""
        self.read_aggregates([aggregate_id])
        return self._flags[AGGREGATE, aggregate_id]

    def read_traits(self, trait_ids: Collection[int]) -> None:
        """Find out who has each of some traits, with one query for those that are not known."""
        self._read([(TRAIT, id_) for id_ in trait_ids], owners_of_traits)

    def read_aggregates(self, aggregate_ids: Collection[int]) -> None:
        """Find out who is in each of some aggregates, likewise."""
        self._read([(AGGREGATE, id_) for id_ in aggregate_ids], members_of_aggregates)

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return the aggregates of some providers, given by id."""
        name = "aggregates of", frozenset(providers)
        kept = self._kept(name)
        if kept is not None and not any(kind == AGGREGATE for kind, _id in kept.marks):
            aggregates: Mapping[int, Collection[int]] = kept.value
            return aggregates
        aggregates = aggregates_of(self._tx, providers)
        self._keep(name, aggregates, size=BYTES_OF_FACT * len(aggregates))
        return aggregates

    def _read(self, marks: Collection[Mark], read: ReadSets) -> None:
        asked = {mark: self._kept(mark) for mark in marks if mark not in self._flags}
        known = {mark: kept.value for mark, kept in asked.items() if kept is not None and mark not in kept.marks}
        if unknown := [id_ for kind, id_ in asked if (kind, id_) not in known]:
            sets = read(self._tx, unknown)
            known |= {mark: _KnownHolders(sets[mark[1]]) for mark in asked if mark not in known}
        for mark, holders in known.items():
            self._flags[mark] = self._at_positions(mark, holders)

    def _at_positions(self, mark: Mark, holders: "_KnownHolders") -> Flags:
        if holders.providers is not self._providers:
            at = self._providers.positions(holders.ids)
            flags = np.zeros(len(self._providers.ids), dtype=bool)
            flags[at[at >= 0]] = True
            holders = _KnownHolders(holders.ids, self._providers, flags)
        self._keep(mark, holders, size=holders.ids.nbytes + holders.flags.nbytes)
        return holders.flags

    def _kept(self, name: Hashable) -> Kept | None:
        return self._derived.find(self._moment, name) if self._derived and self._moment else None

    def _keep(self, name: Hashable, value: object, *, size: int) -> None:
        if self._derived and self._moment:
            self._derived.keep(self._moment, name, value, size=size)


class NamesInSnapshot:
    """The uuids and names of providers in a snapshot.

    Args:
        tx: the snapshot.
        providers: who there is.
        cache: what is cached, if anything is.
    """

    def __init__(self, tx: Transaction, providers: ProviderColumns, cache: CloudCache | None) -> None:
        self._tx = tx
        self._providers = providers
        self._derived = cache and cache.derived
        self._moment = cache and cache.moment(tx)
        self._names: dict[int, Names] = self._kept()

    def of_trees(self, roots: Collection[int]) -> Mapping[int, Names]:
        """Return the names in trees that exist, by root; others may be included. One query for those not known."""
        if unknown := [root for root in roots if root not in self._names]:
            self._names = {**self._names, **self._read(unknown)}
            number = sum(map(len, self._names.values()))
            if self._derived and self._moment:
                names = self._names if number <= MAX_NAMED else {}
                self._derived.keep(self._moment, PROVIDER, names, size=BYTES_OF_NAMES * number)
        return self._names

    def _kept(self) -> dict[int, Names]:
        kept = self._derived.find(self._moment, PROVIDER) if self._derived and self._moment else None
        if kept is None:
            return {}
        changed = {root for kind, root in kept.marks if kind == PROVIDER}
        return {root: names for root, names in kept.value.items() if root not in changed} if changed else kept.value

    def _read(self, unknown: Collection[int]) -> Mapping[int, Names]:
        blocks = np.unique(self._providers.tree_indices(sorted(unknown)) // TREES_NAMED_TOGETHER)
        indices = np.add.outer(blocks * TREES_NAMED_TOGETHER, np.arange(TREES_NAMED_TOGETHER)).ravel()
        roots = self._providers.roots[indices[indices < len(self._providers.roots)]].tolist()
        return names_in(self._tx, [root for root in roots if root not in self._names])


def tree_reader(
    tx: Transaction,
    plan: Plan,
    ids: NamedIds,
    cache: CloudCache | None,
    *,
    with_places: bool = False,
    spared: Collection[int] = (),
    adds_up: bool = False,
    limits: SearchLimits = LIMITS,
) -> TreeReader:
    """Return what takes the trees that can serve a plan from the columns of a snapshot.

    Args:
        tx: the snapshot.
        plan: the plan.
        ids: the ids of the names in it.
        cache: what is cached of the cloud; None reads all of it.
        with_places: whether trees come with the facts about their places.
        spared: providers whose usage is ignored; the caller judges them itself.
        adds_up: whether all slots take from a tree at the same time.
        limits: the sizes of the portions.
    """
    levels = ids.levels if with_places else ()
    serving = serving_in(tx, plan, ids, cache, levels=levels, spared=spared, adds_up=adds_up)
    return TreeReader(serving, partial(tx.names.classes.ids, tx.connection), with_places=with_places, limits=limits)


def serving_in(
    tx: Transaction,
    plan: Plan,
    ids: NamedIds,
    cache: CloudCache | None,
    *,
    levels: Sequence[int | None] = (),
    spared: Collection[int] = (),
    adds_up: bool = False,
) -> Serving:
    """Return what finds who can serve a plan in a snapshot; see ``tree_reader``.

    ``levels`` are the traits of levels to read along.
    """
    columns = columns_in(tx, cache)
    sets = SetsInSnapshot(tx, columns, cache)
    sharing = [ids.sharing_trait] if ids.shares else []
    known_levels = [trait_id for trait_id in levels if trait_id is not None]
    sets.read_traits({*known_levels, *sharing, *[ids.traits[name] for name in plan.trait_names]})
    sets.read_aggregates(ids.aggregates.values())
    return Serving(plan, ids, columns=columns, sets=sets, spared=spared, adds_up=adds_up)


def load(database: Database, cache: CloudCache) -> None:
    """Read the cloud ahead of all requests: processes that are forked later share its memory.

    A database that cannot be read yet stops no start; the first requests read it then.
    """
    try:
        _load(database, cache)
    except PlacementError as error:
        LOG.info("The cloud could not be read ahead of requests: %s", error.message)


@reads
def _load(tx: Transaction, cache: CloudCache) -> None:
    if cache.moment(tx) is not None:
        columns_in(tx, cache)


def columns_in(tx: Transaction, cache: CloudCache | None) -> CloudColumns:
    """Return the cloud as a snapshot shows it; read as a whole where nothing can be followed."""
    moment = cache.moment(tx) if cache else None
    if moment is not None:
        return moment.history.columns(tx, moment)
    if _COLUMNS not in tx.remembered:
        tx.remembered[_COLUMNS] = CloudColumns.from_rows(cloud_rows(tx))
    columns: CloudColumns = tx.remembered[_COLUMNS]
    return columns


def _order_in(value: tuple[TreeScores, KeyOrder]) -> KeyOrder:
    return value[1]


def _keys(columns: CloudColumns, scores: TreeScores, ids: Mapping[str, int], indices: Ints | None = None) -> KeyColumns:
    """Return the keys of some trees, or of all, that have any class named."""
    at = np.arange(len(columns.providers.roots)) if indices is None else indices
    has_any = np.zeros(len(at), dtype=bool)
    for class_id in ids.values():
        has_any |= columns.sums(class_id).has[at]
    at = at[has_any]
    sums = [columns.sums(ids[name]) if name in ids else None for name in scores.classes]
    nothing = np.zeros(len(at), dtype=np.int64)
    capacity = [nothing if of_class is None else of_class.capacity[at] for of_class in sums]
    used = [nothing if of_class is None else of_class.used[at] for of_class in sums]
    return scores.key_columns(columns.providers.roots[at], capacity, used)
