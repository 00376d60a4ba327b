"""Who holds what on which host, and what of it counts towards fair shares."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from placement.allocators.fair_share import Amounts, Held
from placement.allocators.fair_share.tenants import Freed, Tenant
from placement.services.giving_back import ReclaimOptions
from placement.services.usage_cache import UNKNOWN
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.unit_of_work import Transaction
from placement.store.fair_share import HeldPlace, held_places, members_of, owner_names

TenantsByHost = Mapping[int, Sequence[Tenant]]
"""Those who hold something in a tree, by the id of its root."""


def tenants_by_host(
    tx: Transaction, settings: FairShareSettings, classes: Collection[str], options: ReclaimOptions
) -> TenantsByHost:
    """Return who holds something that counts of these classes and need not keep it, wherever they hold something."""
    ids = tx.names.classes.ids(tx.connection, classes)
    places = _by_consumer(held_places(tx, ids.values(), settings.leaves))
    paths = _paths(tx, settings, {of[0].owner for of in places.values()})
    counted = _CountedHoldings(tx, settings, {place.class_id for of in places.values() for place in of})
    found = defaultdict[int, list[Tenant]](list)
    for uuid, of in places.items():
        amounts = counted.amounts(of)
        if uuid not in options.keep and not amounts.keys().isdisjoint(ids):
            held = Held(uuid, paths.get(of[0].owner, paths[None]), amounts, options.values.get(uuid, 0))
            freed = counted.freed(of)
            for root, inside in counted.inside(of).items():
                found[root].append(Tenant(held, freed, inside))
    return found


def _by_consumer(places: Iterable[HeldPlace]) -> Mapping[str, Sequence[HeldPlace]]:
    found = defaultdict[str, list[HeldPlace]](list)
    for place in places:
        found[place.consumer_uuid].append(place)
    return found


def _paths(tx: Transaction, settings: FairShareSettings, owners: Iterable[int | None]) -> dict[int | None, str]:
    """Return the paths of the leaves that these own."""
    names = owner_names(tx, settings.leaves, {owner for owner in owners if owner is not None})
    path_of = settings.queues.path_of
    return {None: path_of(UNKNOWN)} | {owner: path_of(name) for owner, name in names.items()}


class _CountedHoldings:
    """What consumers hold, by the names of classes.

    Args:
        tx: the transaction.
        settings: which classes count towards fair shares, and of which providers.
        class_ids: all classes of which something is held.
    """

    def __init__(self, tx: Transaction, settings: FairShareSettings, class_ids: Collection[int]) -> None:
        self._names = tx.names.classes.names(tx.connection, class_ids)
        self._counting = {id_ for id_, name in self._names.items() if name in settings.classes}
        self._members = None if settings.partition is None else members_of(tx, settings.partition)

    def amounts(self, places: Iterable[HeldPlace]) -> Amounts:
        """Return what counts."""
        found: dict[str, int] = {}
        for _uuid, _owner, provider, _root, class_id, used in places:
            if class_id in self._counting and (self._members is None or provider in self._members):
                name = self._names[class_id]
                found[name] = found.get(name, 0) + used
        return found

    def freed(self, places: Iterable[HeldPlace]) -> Freed:
        """Return what becomes free, and where."""
        names = self._names
        return tuple(sorted([(place.provider, names[place.class_id], place.used) for place in places]))

    def inside(self, places: Iterable[HeldPlace]) -> Mapping[int, Amounts]:
        """Return the sums by the roots of trees."""
        found = defaultdict[int, dict[str, int]](dict)
        for _uuid, _owner, _provider, root, class_id, used in places:
            there, name = found[root], self._names[class_id]
            there[name] = there.get(name, 0) + used
        return found
