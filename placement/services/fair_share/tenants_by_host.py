"""Who holds what on which host, and what of it counts towards fair shares.

For all consumers only the classes of the request are read; everything else, only for those that may have to go.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from placement.allocators.fair_share import Amounts, Held
from placement.allocators.fair_share.tenants import Freed, Need, Tenant
from placement.services.fair_share.giving_back import ReclaimOptions
from placement.services.fair_share.usage_cache import UNKNOWN
from placement.settings.planner.values import FairShareSettings
from placement.store.allocations import held_by
from placement.store.connection.unit_of_work import Transaction
from placement.store.fair_share import held_places, members_of, owner_names

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


def tenants_by_host(tx: Transaction, settings: FairShareSettings, question: WhatMatters) -> "TenantsByHost":
    """Read the consumers with allocations in each tree.

    Args:
        tx: the transaction.
        settings: the classes and providers that count towards fair shares.
        question: which holdings to read.
    """
    members = None if settings.partition is None else members_of(tx, settings.partition)
    found = TenantsByHost(tx, {*settings.classes}, members)
    found.read(settings, question)
    return found


class TenantsByHost:
    """The consumers with allocations in each tree, by the id of its root.

    Args:
        tx: the transaction.
        classes: the classes that count towards fair shares.
        members: the providers on which they do; None for all.
    """

    def __init__(self, tx: Transaction, classes: AbstractSet[str], members: AbstractSet[int] | None) -> None:
        self._tx = tx
        self._classes = classes
        self._members = members
        self.by_root: dict[int, list[Tenant]] = defaultdict(list)
        """Their holdings of the relevant classes; what their leaving frees is not known yet."""
        self._in_detail: dict[str, tuple[Amounts, Freed]] = {}

    def _counts(self, provider: int, name: str) -> bool:
        return name in self._classes and (self._members is None or provider in self._members)

    def read(self, settings: FairShareSettings, question: WhatMatters) -> None:
        """Read which consumers may give something, and what they hold in each tree and place."""
        names = {id_: name for name, id_ in self._tx.names.classes.ids(self._tx.connection, question.classes).items()}
        owners: dict[str, int | None] = {}
        counted: dict[str, dict[str, int]] = defaultdict(dict)
        inside: dict[tuple[str, int], dict[Need, int]] = defaultdict(dict)
        for uuid, owner, provider, root, class_id, used in held_places(self._tx, names, settings.leaves):
            name, here = names[class_id], inside[uuid, root]
            owners[uuid] = owner
            here[name] = here.get(name, 0) + used
            for anchor in question.anchors.get(provider, ()):
                here[anchor, name] = here.get((anchor, name), 0) + used
            if self._counts(provider, name):
                amounts = counted[uuid]
                amounts[name] = amounts.get(name, 0) + used
        paths, options = self._paths(settings, {*owners.values()}), question.options
        for (uuid, root), here in inside.items():
            if uuid not in options.keep and not counted[uuid].keys().isdisjoint(question.counting):
                path = paths.get(owners[uuid], paths[None])
                held = Held(uuid, path, counted[uuid], options.values.get(uuid, 0))
                self.by_root[root].append(Tenant(held, (), here))

    def _paths(self, settings: FairShareSettings, owners: Iterable[int | None]) -> dict[int | None, str]:
        """Return the path of each owner's leaf."""
        names = owner_names(self._tx, settings.leaves, {owner for owner in owners if owner is not None})
        path_of = settings.queues.path_of
        return {None: path_of(UNKNOWN)} | {owner: path_of(name) for owner, name in names.items()}

    def leaves(self) -> set[str]:
        """Return the paths of all leaves with holdings."""
        return {tenant.held.leaf for tenants in self.by_root.values() for tenant in tenants}

    def in_detail(self, tenants: Sequence[Tenant]) -> Iterator[Tenant]:
        """Yield tenants with everything they hold and everything their leaving frees."""
        self._read_in_detail({tenant.held.name for tenant in tenants} - self._in_detail.keys())
        for tenant in tenants:
            amounts, freed = self._in_detail[tenant.held.name]
            yield replace(tenant, held=replace(tenant.held, amounts=amounts), freed=freed)

    def _read_in_detail(self, uuids: Collection[str]) -> None:
        rows = held_by(self._tx, sorted(uuids)) if uuids else []
        names = self._tx.names.classes.names(self._tx.connection, {row.class_id for row in rows})
        freed = defaultdict[str, list[tuple[int, str, int]]](list)
        for uuid, provider, class_id, used, _id in rows:
            freed[uuid].append((provider, names[class_id], used))
        for uuid, places in freed.items():
            amounts = Counter[str]()
            for provider, name, used in places:
                if self._counts(provider, name):
                    amounts[name] += used
            self._in_detail[uuid] = amounts, tuple(sorted(places))
