"""Who holds what on which host, and what of it counts towards fair shares.

For all consumers only the classes of the request are read; everything else, only for those that may have to go.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NamedTuple

from placement.allocators.fair_share import Amounts, Held
from placement.allocators.fair_share.tenants import Freed, Need, Tenant
from placement.services.fair_share.giving_back import ReclaimOptions
from placement.services.fair_share.usage_cache import UNKNOWN
from placement.settings.planner.values import FairShareSettings
from placement.store.allocations import held_by
from placement.store.connection.unit_of_work import Transaction
from placement.store.fair_share import HeldAllocation, held_places, members_of, owner_names

Anchors = Mapping[int, Collection[int]]
"""Provider -> the anchors of the relevant places that it lies in."""


@dataclass(frozen=True, slots=True)
class WhatMatters:
    """Which consumers' holdings to read, and which part of them.

    Args:
        counting: the classes of which a consumer has to hold one in order to give.
        classes: all relevant classes.
        anchors: the relevant places.
        options: who may be asked, and their values.
    """

    counting: Collection[str]
    classes: Collection[str]
    anchors: Anchors
    options: ReclaimOptions


class _Counting(NamedTuple):
    """The classes that count towards fair shares, and the providers on which they do, None for all."""

    classes: AbstractSet[str]
    members: AbstractSet[int] | None

    def is_member(self, provider: int) -> bool:
        """Tell whether what a provider gives counts."""
        return self.members is None or provider in self.members


def tenants_by_host(tx: Transaction, settings: FairShareSettings, question: WhatMatters) -> "TenantsByHost":
    """Read the consumers with allocations in each tree.

    Args:
        tx: the transaction.
        settings: the classes and providers that count towards fair shares.
        question: which holdings to read.
    """
    counting = _Counting(
        {*settings.classes}, None if settings.partition is None else members_of(tx, settings.partition)
    )
    return TenantsByHost(tx, counting, _tenants(tx, settings, question, counting))


class TenantsByHost:
    """The consumers with allocations in each tree, by the id of its root.

    Args:
        tx: the transaction.
        counting: what counts towards fair shares.
        by_root: their holdings of the relevant classes; what their leaving frees is not known yet.
    """

    def __init__(self, tx: Transaction, counting: _Counting, by_root: Mapping[int, Sequence[Tenant]]) -> None:
        self._tx = tx
        self._counting = counting
        self.by_root = by_root
        self._in_detail: dict[str, tuple[Amounts, Freed]] = {}

    def leaves(self) -> set[str]:
        """Return the paths of all leaves with holdings."""
        return {one.held.leaf for of in self.by_root.values() for one in of}

    def in_detail(self, tenants: Iterable[Tenant]) -> Iterator[Tenant]:
        """Yield tenants with everything they hold and everything their leaving frees."""
        known = [*tenants]
        self._read_in_detail({one.held.name for one in known} - self._in_detail.keys())
        for one in known:
            amounts, freed = self._in_detail[one.held.name]
            yield replace(one, held=replace(one.held, amounts=amounts), freed=freed)

    def _read_in_detail(self, uuids: Collection[str]) -> None:
        tx, found = self._tx, defaultdict[str, list[tuple[int, str, int]]](list)
        rows = held_by(tx, sorted(uuids)) if uuids else []
        names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
        for uuid, provider, class_id, used, _id in rows:
            found[uuid].append((provider, names[class_id], used))
        self._in_detail |= {uuid: (self._counted(freed), tuple(sorted(freed))) for uuid, freed in found.items()}

    def _counted(self, freed: Iterable[tuple[int, str, int]]) -> Amounts:
        amounts: dict[str, int] = {}
        for provider, name, used in freed:
            if name in self._counting.classes and self._counting.is_member(provider):
                amounts[name] = amounts.get(name, 0) + used
        return amounts


def _tenants(
    tx: Transaction, settings: FairShareSettings, question: WhatMatters, counting: _Counting
) -> Mapping[int, Sequence[Tenant]]:
    """Return by root of a tree the consumers that may give something there."""
    options = question.options
    names = {id_: name for name, id_ in tx.names.classes.ids(tx.connection, question.classes).items()}
    rows = held_places(tx, names, settings.leaves)
    owners, counted, inside = _added_up(rows, names, question.anchors, counting)
    paths = _paths(tx, settings, {*owners.values()})
    unknown, asked = paths[None], {*question.counting}
    held = {
        uuid: Held(uuid, paths.get(owners[uuid], unknown), amounts, options.values.get(uuid, 0))
        for uuid, amounts in counted.items()
        if uuid not in options.keep and not asked.isdisjoint(amounts)
    }
    found = defaultdict[int, list[Tenant]](list)
    for (uuid, root), amounts in inside.items():
        if uuid in held:
            found[root].append(Tenant(held[uuid], (), amounts))
    return found


def _added_up(
    rows: Iterable[HeldAllocation], names: Mapping[int, str], anchors: Anchors, counting: _Counting
) -> tuple[dict[str, int | None], dict[str, dict[str, int]], dict[tuple[str, int], dict[Need, int]]]:
    """Return the owner of each consumer, its amounts that count, and its holdings in each tree and place."""
    classes = {class_id for class_id, name in names.items() if name in counting.classes}
    owners: dict[str, int | None] = {}
    counted: dict[str, dict[str, int]] = defaultdict(dict)
    inside: dict[tuple[str, int], dict[Need, int]] = defaultdict(dict)
    members = counting.members
    for uuid, owner, provider, root, class_id, used in rows:
        name, here = names[class_id], inside[uuid, root]
        owners[uuid] = owner
        here[name] = here.get(name, 0) + used
        for anchor in anchors.get(provider, ()):
            here[anchor, name] = here.get((anchor, name), 0) + used
        if class_id in classes and (members is None or provider in members):
            of = counted[uuid]
            of[name] = of.get(name, 0) + used
    return owners, counted, inside


def _paths(tx: Transaction, settings: FairShareSettings, owners: Iterable[int | None]) -> dict[int | None, str]:
    """Return the path of each owner's leaf."""
    names = owner_names(tx, settings.leaves, {owner for owner in owners if owner is not None})
    path_of = settings.queues.path_of
    return {None: path_of(UNKNOWN)} | {owner: path_of(name) for owner, name in names.items()}
