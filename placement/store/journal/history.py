"""Reconstruct a provider at a past time: take its current state and undo what the journal has recorded since."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from placement.errors import Gone
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.order import J
from placement.store.journal.reading import Entry, Wanted, since_then
from placement.store.journal.watched import AGGREGATE, ALLOCATION, BEGAN, CREATED, DELETED, INVENTORY, PROVIDER, TRAIT
from placement.store.providers import RP
from placement.store.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    traits,
)

_STOCK = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


class TooLongAgo(Gone):
    """The journal does not reach back that far."""


@dataclass(slots=True)
class PastProvider:
    """A provider at a past time: inventories by class, (consumer, class, amount) by allocation id, names."""

    exists: bool
    inventories: dict[str, dict[str, Any]] = field(default_factory=dict)
    allocations: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)

    @property
    def usages(self) -> dict[str, int]:
        """Usage by class."""
        used: Counter[str] = Counter()
        for _, class_, amount in self.allocations.values():
            used[class_] += amount
        return dict(used)

    @property
    def holders(self) -> dict[str, dict[str, int]]:
        """What each consumer holds, by class."""
        holders: dict[str, Counter[str]] = {}
        for consumer, class_, amount in self.allocations.values():
            holders.setdefault(consumer, Counter())[class_] += amount
        return {consumer: dict(held) for consumer, held in holders.items()}


def provider_at(tx: Transaction, uuid: str, moment: datetime) -> PastProvider:
    """Return a provider as of a moment; the cost grows with the number of changes since.

    Raises:
        TooLongAgo: rows of that time are gone, or may be missing.
    """
    # The first row's time is that of the oldest recorded change, unless the journal was interrupted and began again.
    first = tx.execute(select(J.time).order_by(J.id).limit(1)).scalar()
    began = tx.execute(select(func.max(J.time)).where(J.action == BEGAN)).scalar()
    if first is None or moment < max(first, began or first):
        raise TooLongAgo
    past = _now(tx, uuid)
    for entry in since_then(tx, Wanted(provider=uuid, since=moment)):
        _undo(entry, past)
    return past


def _now(tx: Transaction, uuid: str) -> PastProvider:
    provider = tx.execute(select(RP.id).where(RP.uuid == uuid)).scalar()
    if provider is None:
        return PastProvider(exists=False)
    has, held = inventories.c, allocations.c
    stocks = tx.execute(
        select(resource_classes.c.name, *(has[name] for name in _STOCK))
        .join(resource_classes, resource_classes.c.id == has.resource_class_id)
        .where(has.resource_provider_id == provider)
    )
    taken = tx.execute(
        select(held.id, held.consumer_id, resource_classes.c.name, held.used)
        .join(resource_classes, resource_classes.c.id == held.resource_class_id)
        .where(held.resource_provider_id == provider)
    )
    marks = resource_provider_traits.c
    groups = resource_provider_aggregates.c
    named = select(traits.c.name).join(resource_provider_traits, marks.trait_id == traits.c.id)
    grouped = select(placement_aggregates.c.uuid).join(
        resource_provider_aggregates, groups.aggregate_id == placement_aggregates.c.id
    )
    return PastProvider(
        exists=True,
        inventories={name: dict(zip(_STOCK, amounts, strict=True)) for name, *amounts in stocks},
        allocations={id_: (consumer, name, used) for id_, consumer, name, used in taken},
        traits=set(tx.execute(named.where(marks.resource_provider_id == provider)).scalars()),
        aggregates=set(tx.execute(grouped.where(groups.resource_provider_id == provider)).scalars()),
    )


def _undo(entry: Entry, past: PastProvider) -> None:
    was_made, was_deleted = entry.action == CREATED, entry.action == DELETED
    if entry.kind == PROVIDER:
        past.exists = was_deleted or (past.exists and not was_made)
    elif entry.kind == INVENTORY:
        past.inventories.pop(str(entry.resource_class), None)
        if entry.old is not None:
            past.inventories[str(entry.resource_class)] = entry.old
    elif entry.kind == ALLOCATION:
        past.allocations.pop(int(entry.object_id or 0), None)
        if entry.old_amount is not None:
            held = (str(entry.consumer_uuid), str(entry.resource_class), entry.old_amount)
            past.allocations[int(entry.object_id or 0)] = held
    elif entry.kind in {TRAIT, AGGREGATE}:
        names = past.traits if entry.kind == TRAIT else past.aggregates
        (names.discard if was_made else names.add)(str(entry.name))
