"""Use cases of fair shares: who has how much, who is next, what each would get; usage is cached for a few seconds."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from placement.allocators.bundle_packing import Copies
from placement.allocators.fair_share import order as library
from placement.allocators.fair_share.order import Filling, Task, Turn
from placement.allocators.fair_share.state import FairShares, NodeShare
from placement.allocators.fair_share.tree import Amounts
from placement.candidates.headroom.totals import CountedRequest
from placement.cloud.providers import Ints
from placement.domain.names import UNTYPED
from placement.domain.search_plan import CandidateRequest
from placement.errors import Invalid, InvalidAt
from placement.services.cloud_cache import cloud_in
from placement.services.planner.questions import Composers, PlannerOptions
from placement.settings.planner.values import FairShareSettings
from placement.store import fair_share as store
from placement.store.connection.database import Database, Transaction, reads, reads_once

UNKNOWN = UNTYPED
"""Stands for a missing consumer type, as in GET /usages, and for the project of consumers without one."""


OWNERS_S = 60.0
"""All usage is read again after so long: a consumer that only changes its project changes no tree."""


@dataclass(frozen=True, slots=True)
class Reading:
    """By project (or consumer type) and class, the usage at one moment, and the totals of the classes that count."""

    usage: Mapping[str, Amounts]
    totals: Amounts
    read_at: float = 0

    def leaves(self, settings: FairShareSettings, *further: str) -> dict[str, str]:
        """Map the paths of all leaves to their names: those in the file, those with usage, and further ones."""
        return leaf_names(settings, [*settings.queues.members, *self.usage, *further])

    def shares(
        self,
        settings: FairShareSettings,
        *,
        waiting: Mapping[str, Amounts] | None = None,
        members: tuple[str, ...] = (),
    ) -> FairShares:
        """Return the shares, with what is waited for by leaf, and with leaves for others that use nothing yet."""
        queues = settings.queues
        usage = {queues.path_of(member): amounts for member, amounts in self.usage.items()}
        root = queues.tree([*self.usage, *members])
        return FairShares(root, self.totals, usage=usage, tasks=waiting)


class UsageCache:
    """The latest reading, shared by threads: one of them reads for all that wait."""

    def __init__(self, settings: FairShareSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._reading: Reading | None = None

    def reading(self, database: Database) -> Reading:
        """Return a reading that is at most ``keep_s`` seconds old."""
        with self._lock:
            if self._reading is None or self.age_s(self._reading) >= self.settings.keep_s:
                started = self._clock()
                self._reading = reads(_followed_reading)(database, self.settings, now=started)
            return self._reading

    def age_s(self, reading: Reading) -> float:
        """Return the age of a reading in seconds."""
        return max(0.0, self._clock() - reading.read_at)


def current_reading(tx: Transaction, settings: FairShareSettings, *, types: Collection[str] | None = None) -> Reading:
    """Return everybody's usage, optionally only that of consumers of these types, and the totals."""
    return Reading(usage_of(tx, settings, types=types), _totals(tx, settings))


def _totals(tx: Transaction, settings: FairShareSettings) -> dict[str, int]:
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    totals = store.totals(tx, ids.values(), settings.partition)
    return {name: totals.get(ids.get(name, -1), 0) for name in settings.classes}


class _UsageOfTrees(NamedTuple):
    """Usage as rows (root, owner id, class id, amount), and when all of it was read."""

    rows: Ints
    read_at: float


def _followed_reading(tx: Transaction, settings: FairShareSettings, *, now: float) -> Reading:
    """Return the same of all consumers; of trees that have not changed since the last time, nothing is read."""
    cloud = cloud_in(tx)
    if not cloud.kept.is_known:
        return replace(current_reading(tx, settings), read_at=now)
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    scope = store.UsageScope(settings.leaves, frozenset(ids.values()), settings.partition)
    kept = cloud.kept.find(scope)
    if kept is None or now - kept.value.read_at >= OWNERS_S or (settings.partition and kept.marks):
        usage = _UsageOfTrees(store.usage_by_tree(tx, scope), now)
    else:
        rows = kept.value.rows
        unchanged = rows[~np.isin(rows[:, 0], sorted(kept.changed))]
        usage = kept.value._replace(rows=np.concatenate([unchanged, store.usage_by_tree(tx, scope, kept.changed)]))
    cloud.kept.keep(scope, usage, size=usage.rows.nbytes)
    by_owner = _by_owner(tx, usage.rows, settings, names={id_: name for name, id_ in ids.items()})
    return Reading(by_owner, _totals(tx, settings), now)


def _by_owner(
    tx: Transaction, rows: Ints, settings: FairShareSettings, *, names: Mapping[int, str]
) -> dict[str, dict[str, int]]:
    pairs, places = np.unique(rows[:, 1:3], axis=0, return_inverse=True)
    sums = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(sums, places.reshape(-1), rows[:, 3])
    owners = store.owner_names(tx, settings.leaves, {int(owner) for owner in pairs[:, 0]})
    usage: dict[str, dict[str, int]] = defaultdict(dict)
    for (owner, class_id), amount in zip(pairs.tolist(), sums.tolist(), strict=True):
        own, name = usage[owners.get(owner, UNKNOWN)], names[class_id]
        own[name] = own.get(name, 0) + amount
    return dict(usage)


def usage_of(
    tx: Transaction,
    settings: FairShareSettings,
    *,
    types: Collection[str] | None = None,
    consumers: Collection[str] | None = None,
) -> dict[str, dict[str, int]]:
    """Return everybody's usage, optionally only that of consumers of these types and with these uuids."""
    ids = tx.names.classes.ids(tx.connection, settings.classes)
    names = {id_: name for name, id_ in ids.items()}
    scope = store.UsageScope(settings.leaves, names, settings.partition, types, consumers)
    usage: dict[str, dict[str, int]] = defaultdict(dict)
    for member, class_id, amount in store.usage_by_owner(tx, scope):
        own, name = usage[member or UNKNOWN], names[class_id]
        own[name] = own.get(name, 0) + int(amount)
    return dict(usage)


Where = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a project or consumer type waits for, ``count`` times ``resources``, at ``where`` in the request."""

    member: str
    resources: Amounts
    count: int = 1
    where: Where = ()


@dataclass(frozen=True, slots=True)
class Shares:
    """All shares, ``age_s`` seconds old: names by path of a leaf, entitlements by path of a node and class."""

    age_s: float
    totals: Amounts
    free: Amounts
    nodes: Sequence[NodeShare]
    members: Mapping[str, str]
    entitled: Mapping[str, Mapping[str, float]]

    def over(self, node: NodeShare) -> dict[str, float]:
        """Return by class how much a node has beyond its entitlement."""
        entitled = self.entitled[node.path]
        return {name: used - entitled[name] for name, used in node.usage.items() if used > entitled[name]}

    def gives(self, node: NodeShare) -> dict[str, int]:
        """Return by class how many whole units a node would give back to siblings that lack theirs."""
        return {name: int(amount) for name, amount in self.over(node).items() if amount >= 1}

    def under(self, node: NodeShare) -> dict[str, float]:
        """Return by class how much a node lacks of its entitlement."""
        return {
            name: entitled - node.usage[name]
            for name, entitled in self.entitled[node.path].items()
            if entitled > node.usage[name]
        }


@dataclass(frozen=True, slots=True)
class ServiceOrder:
    """Those who wait, in the order of service."""

    age_s: float
    turns: Sequence[Turn]
    members: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Filled:
    """What everybody who waits would get, and the state of their leaves afterwards."""

    age_s: float
    filling: Filling
    nodes: Mapping[str, NodeShare]
    members: Mapping[str, str]


class ShareRoom(NamedTuple):
    """The copies that a queue may have: its path, its name, and their number."""

    path: str
    member: str
    copies: Copies


def all_shares(database: Database, cache: UsageCache) -> Shares:
    """Return the whole tree. Wishes are unknown, so everybody is assumed to want more of what they use."""
    reading = cache.reading(database)
    return shares_of_reading(reading, cache.settings, age_s=cache.age_s(reading))


def shares_of_reading(reading: Reading, settings: FairShareSettings, *, age_s: float) -> Shares:
    """Return the same for a reading of the given age."""
    shares, members = _presuming(reading, settings), reading.leaves(settings)
    entitlements, nodes = shares.entitlements(), shares.nodes()
    entitled = {
        node.path: {name: float(amount) for name, amount in entitlements.amounts(node.path).items()} for node in nodes
    }
    return Shares(age_s, reading.totals, shares.free(), nodes, members, entitled)


def order(database: Database, cache: UsageCache, wishes: Sequence[Wish] | None) -> ServiceOrder:
    """Return those who wait in the order of service. Without wishes, everybody waits for more of what they use."""
    reading = cache.reading(database)
    settings = cache.settings
    if wishes is None:
        shares, members = _presuming(reading, settings), reading.leaves(settings)
    else:
        pending = pending_tasks(database, settings, wishes)
        members = leaf_names(settings, [wish.member for wish in wishes])
        waiting = {leaf: tasks[0].amounts for leaf, tasks in pending.items()}
        shares = reading.shares(settings, waiting=waiting, members=tuple(members.values()))
    return ServiceOrder(cache.age_s(reading), library.order(shares, members), members)


def fill(database: Database, cache: UsageCache, wishes: Sequence[Wish]) -> Filled:
    """Return what everybody who waits would get of what is free, by progressive filling."""
    reading = cache.reading(database)
    pending = pending_tasks(database, cache.settings, wishes)
    members = leaf_names(cache.settings, [wish.member for wish in wishes])
    shares = reading.shares(cache.settings, members=tuple(members.values()))
    filling = library.fill(shares, pending)
    return Filled(cache.age_s(reading), filling, {leaf: shares.node(leaf) for leaf in filling.served}, members)


def amounts_of_copy(request: CountedRequest, options: PlannerOptions) -> Amounts:
    """Return the amounts that one copy of a request takes; Invalid if they differ from tree to tree."""
    if isinstance(request, CandidateRequest):
        taken: Counter[str] = Counter()
        for group in request.groups:
            taken.update(dict(group.resources))
        return taken
    if any(group.everything or group.per_subtree for group in request.groups):
        raise Invalid(
            'The counts "all" and "per-subtree" take different amounts in different trees, and have no share.'
        )
    return Composers().composer(request, options).requested


def by_share(
    database: Database, cache: UsageCache, copies: Mapping[str, Copies], taken: Mapping[str, Amounts]
) -> dict[str, list[ShareRoom]]:
    """Return how many copies of each request each queue may have before it exceeds its entitlement.

    Entitlements are computed as if everybody wanted more. ``copies`` says how many fit in total, ``taken`` what one
    takes.
    """
    reading, settings = cache.reading(database), cache.settings
    shares, rooms = reading.shares(settings), dict[str, list[ShareRoom]]()
    members = reading.leaves(settings)
    for request, amounts in taken.items():
        entitlements = shares.entitlements(list(amounts), more=dict.fromkeys(shares.leaves(), amounts))
        least, max_copies = copies[request].least, copies[request].max_count
        rooms[request] = []
        for path, member in members.items():
            entitled, used = entitlements.amounts(path), shares.usage(path)
            own = max(0, min([int((entitled[name] - used[name]) // amount) for name, amount in amounts.items()]))
            rooms[request].append(ShareRoom(path, member, Copies(min(least, own), min(max_copies, own))))
        rooms[request].sort(key=lambda room: (-room.copies.least, room.path))
    return rooms


def pending_tasks(database: Database, settings: FairShareSettings, wishes: Sequence[Wish]) -> dict[str, list[Task]]:
    """Return the tasks of each leaf, in the order of the wishes; InvalidAt as ``counted``."""
    pending: dict[str, list[Task]] = defaultdict(list)
    for wish, amounts in zip(wishes, counted(database, settings, wishes), strict=True):
        pending[settings.queues.path_of(wish.member)].append(Task(amounts, wish.count))
    return dict(pending)


def counted(database: Database, settings: FairShareSettings, wishes: Sequence[Wish]) -> list[dict[str, int]]:
    """Return what each wish takes of the classes that count; InvalidAt if that is nothing, or for unknown classes."""
    unlisted = {name for wish in wishes for name in wish.resources} - set(settings.classes)
    unknown = unlisted - _existing(database, unlisted) if unlisted else set()
    for wish in wishes:
        for name in wish.resources:
            if name in unknown:
                raise InvalidAt((*wish.where, "resources", name), "There is no such resource class.")
        if not wish.resources.keys() & set(settings.classes):
            counting = ", ".join(settings.classes)
            raise InvalidAt(
                (*wish.where, "resources"), f"None of the requested classes counts towards fair shares; {counting} do."
            )
    return [{name: wish.resources[name] for name in settings.classes if name in wish.resources} for wish in wishes]


@reads_once
def _existing(tx: Transaction, names: Iterable[str]) -> set[str]:
    return set(tx.names.classes.ids(tx.connection, names))


def leaf_names(settings: FairShareSettings, members: Iterable[str]) -> dict[str, str]:
    """Map the paths of leaves to their names."""
    return {settings.queues.path_of(member): member for member in members}


def _presuming(reading: Reading, settings: FairShareSettings) -> FairShares:
    """Return the shares if everybody wants more of what they use; whoever uses nothing is assumed to want nothing."""
    waiting = {
        settings.queues.path_of(member): {name: 1 for name, amount in amounts.items() if amount}
        for member, amounts in reading.usage.items()
    }
    return reading.shares(settings, waiting=waiting)
