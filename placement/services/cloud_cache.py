"""What a worker caches of clouds from request to request, made exact in each request's snapshot.

A request reads which trees its own snapshot shows changed since a value was worked out, and works out only these again.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from placement.candidates.key_order import KeyOrder
from placement.candidates.planner.planner_trees import ProviderNames
from placement.candidates.provider_sets import KnownSets
from placement.candidates.ranking import TreeScores
from placement.candidates.reading import kept_order
from placement.candidates.serving import Serving
from placement.candidates.tree_reader import TreeReader
from placement.cloud.columns import CloudColumns
from placement.cloud.derived import BYTES_OF_FACT, MAX_BYTES, Derived, KeptInState
from placement.cloud.providers import Flags, Ints, ProviderColumns
from placement.domain.search_plan import NamedIds, Plan
from placement.errors import PlacementError
from placement.services.tree_history import Moment, TreeHistories, TreeHistory
from placement.store.connection.database import Database
from placement.store.connection.prepared import PreparedScalars, Values
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.journal.watched import AGGREGATE, PROVIDER, TRAIT
from placement.store.search.cloud_rows import cloud_rows
from placement.store.search.provider_names import names_in
from placement.store.search.provider_sets import aggregates_of, members_of_aggregates, owners_of_traits

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

_COLUMNS = "columns as read"
"""Where a snapshot's columns are remembered if nothing can be followed."""


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

    def kept(self, tx: Transaction) -> KeptInState:
        """Return what was derived from the state that a snapshot shows."""
        return KeptInState(self.derived, self.moment(tx))

    def order(self, tx: Transaction, scores: TreeScores, found_by: Sequence[str]) -> KeyOrder | None:
        """Return the keys of all trees in this snapshot, in order; None if they cannot be cached.

        Args:
            tx: the snapshot.
            scores: what trees can score.
            found_by: further classes. Only trees that have any of these or of those of the scores have a key.
        """
        if self.moment(tx) is None or scores.signature is None or not scores.classes:
            return None
        ids = tx.names.classes.ids(tx.connection, {*scores.classes, *found_by})
        return kept_order(scores, found_by, ids, columns=columns_in(tx, self), kept=self.kept(tx))

    def reason_for_nothing(self, tx: Transaction, asked: tuple[object, ...]) -> Any:
        """Return why a request finds nothing in a snapshot; None if it is not known to find nothing.

        Where little is left, the same is asked for again and again, and to find nothing takes longer than to find
        something.

        Args:
            tx: the snapshot.
            asked: all that the reason depends on besides the trees and names; found again by equality.
        """
        return next((nothing.reason for nothing in self._nothing_found(tx) if nothing.asked == asked), None)

    def note_nothing(self, tx: Transaction, asked: tuple[object, ...], reason: object, *, lasts: bool = False) -> None:
        """Remember that a request finds nothing in a snapshot, until a tree changes.

        Args:
            tx: the snapshot.
            asked: all that the reason depends on besides the trees and names.
            reason: why it finds nothing.
            lasts: whether the reason holds, too, while more and more is in use.
        """
        moment = self.moment(tx)
        if moment is not None:
            self._keep_nothing(moment, (_Nothing(asked, reason, lasts), *self._nothing_found(tx)[: MAX_REASONS - 1]))

    def _nothing_found(self, tx: Transaction) -> Sequence["_Nothing"]:
        moment = self.moment(tx)
        kept = self.derived.find(moment, NOTHING_FOUND) if moment else None
        if moment is None or kept is None or kept.changed - kept.filled:
            return ()
        found: Sequence[_Nothing] = kept.value
        if kept.changed:
            found = [nothing for nothing in found if nothing.lasts]
            self._keep_nothing(moment, found)
        return found

    def _keep_nothing(self, moment: Moment, found: Sequence["_Nothing"]) -> None:
        self.derived.keep(moment, NOTHING_FOUND, found, size=BYTES_OF_REASON * len(found))


class _Nothing(NamedTuple):
    """A request that finds nothing, and why; and whether that holds while more and more is in use."""

    asked: tuple[object, ...]
    reason: object
    lasts: bool


class _KnownHolders(NamedTuple):
    """Who has a trait, or is in an aggregate: by id, and by position among the providers of some columns."""

    ids: Ints
    providers: ProviderColumns | None = None
    flags: Flags = np.zeros(0, dtype=bool)


class SetsInSnapshot(KnownSets):
    """The sets of providers that meet conditions in a snapshot: the ``ProviderSets`` of its columns.

    Args:
        tx: the snapshot.
        columns: its columns.
        cache: what is cached, if anything is.
    """

    def __init__(self, tx: Transaction, columns: CloudColumns, cache: CloudCache | None) -> None:
        super().__init__()
        self._tx = tx
        self._providers = columns.providers
        self._kept = kept_in(tx, cache)
        self._aggregates: dict[object, Mapping[int, Collection[int]]] = {}

    def read_traits(self, trait_ids: Collection[int]) -> None:
        """Find out who has each of some traits, with one query for those that are not known."""
        self._owners |= self._read(TRAIT, {*trait_ids} - self._owners.keys(), owners_of_traits)

    def read_aggregates(self, aggregate_ids: Collection[int]) -> None:
        """Find out who is in each of some aggregates, likewise."""
        self._members |= self._read(AGGREGATE, {*aggregate_ids} - self._members.keys(), members_of_aggregates)

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return the aggregates of some providers, given by id."""
        name = "aggregates of", frozenset(providers)
        if name not in self._aggregates:
            kept = self._kept.find(name)
            if kept is None or any(kind == AGGREGATE for kind, _id in kept.marks):
                aggregates = aggregates_of(self._tx, providers)
                self._kept.keep(name, aggregates, size=BYTES_OF_FACT * len(aggregates))
            else:
                aggregates = kept.value
            self._aggregates[name] = aggregates
        return self._aggregates[name]

    def _read(self, kind: str, ids: Collection[int], read: ReadSets) -> dict[int, Flags]:
        asked = {id_: self._kept.find((kind, id_)) for id_ in ids}
        known = {id_: kept.value for id_, kept in asked.items() if kept is not None and (kind, id_) not in kept.marks}
        if unknown := asked.keys() - known.keys():
            known |= {id_: _KnownHolders(holders) for id_, holders in read(self._tx, unknown).items()}
        return {id_: self._at_positions((kind, id_), holders) for id_, holders in known.items()}

    def _at_positions(self, mark: Mark, holders: "_KnownHolders") -> Flags:
        if holders.providers is not self._providers:
            at = self._providers.positions(holders.ids)
            flags = np.zeros(len(self._providers.ids), dtype=bool)
            flags[at[at >= 0]] = True
            holders = _KnownHolders(holders.ids, self._providers, flags)
        self._kept.keep(mark, holders, size=holders.ids.nbytes + holders.flags.nbytes)
        return holders.flags


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
        self._kept = kept_in(tx, cache)
        self._names: dict[int, ProviderNames] = self._known()

    def of_trees(self, roots: Collection[int]) -> Mapping[int, ProviderNames]:
        """Return the names in trees that exist, by root; others may be included. One query for those not known."""
        if unknown := [root for root in roots if root not in self._names]:
            self._names = {**self._names, **self._read(unknown)}
            number = sum(map(len, self._names.values()))
            names = self._names if number <= MAX_NAMED else {}
            self._kept.keep(PROVIDER, names, size=BYTES_OF_NAMES * number)
        return self._names

    def _known(self) -> dict[int, ProviderNames]:
        kept = self._kept.find(PROVIDER)
        if kept is None:
            return {}
        changed = {root for kind, root in kept.marks if kind == PROVIDER}
        known: dict[int, ProviderNames] = kept.value
        return {root: names for root, names in known.items() if root not in changed} if changed else known

    def _read(self, unknown: Collection[int]) -> Mapping[int, ProviderNames]:
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
    adds_up: bool = False,
) -> TreeReader:
    """Return what takes the trees that can serve a plan from the columns of a snapshot.

    Args:
        tx: the snapshot.
        plan: the plan.
        ids: the ids of the names in it.
        cache: what is cached of the cloud; None reads all of it.
        with_places: whether places matter.
        adds_up: whether all slots take from a tree at the same time.
    """
    levels = ids.levels if with_places else ()
    serving = serving_in(tx, plan, ids, cache, levels=levels, adds_up=adds_up)
    return TreeReader(serving, partial(tx.names.classes.ids, tx.connection), with_places=with_places)


def serving_in(
    tx: Transaction,
    plan: Plan,
    ids: NamedIds,
    cache: CloudCache | None,
    *,
    levels: Sequence[int | None] = (),
    adds_up: bool = False,
) -> Serving:
    """Return what finds who can serve a plan in a snapshot; see ``tree_reader``.

    ``levels`` are the traits of levels to read along.
    """
    columns = columns_in(tx, cache)
    sets = SetsInSnapshot(tx, columns, cache)
    sharing = [ids.sharing_trait] if ids.shares else []
    places = [trait_id for trait_id in (*levels, *ids.locks.values()) if trait_id is not None]
    sets.read_traits({*places, *sharing, *[ids.traits[name] for name in plan.trait_names]})
    sets.read_aggregates(ids.aggregates.values())
    return Serving(plan, ids, columns=columns, sets=sets, adds_up=adds_up)


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


def kept_in(tx: Transaction, cache: CloudCache | None) -> KeptInState:
    """Return what was derived from the state that a snapshot shows; nothing without a cache."""
    return cache.kept(tx) if cache else KeptInState()


def columns_in(tx: Transaction, cache: CloudCache | None) -> CloudColumns:
    """Return the cloud as a snapshot shows it; read as a whole where nothing can be followed."""
    moment = cache.moment(tx) if cache else None
    if moment is not None:
        return moment.history.columns(tx, moment)
    if _COLUMNS not in tx.remembered:
        tx.remembered[_COLUMNS] = CloudColumns.from_rows(cloud_rows(tx))
    columns: CloudColumns = tx.remembered[_COLUMNS]
    return columns
