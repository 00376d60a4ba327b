"""Reconstruct a provider at a past time: take its current state and undo what the journal has recorded since."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select

from placement.errors import Gone
from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.extent import complete_since
from placement.store.journal.reading import Entry, Wanted, lost_after, since_then
from placement.store.journal.watched import (
    AGGREGATE,
    ALLOCATION,
    CLASS_NAME,
    CREATED,
    DELETED,
    INVENTORY,
    PROVIDER,
    TRAIT,
    TRAIT_NAME,
)
from placement.store.providers import RP
from placement.store.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
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
    known_since = complete_since(tx)
    if known_since is None or moment < known_since:
        raise TooLongAgo
    past = _now(tx, uuid)
    for entry in since_then(tx, Wanted(providers=(uuid,), since=moment)):
        _undo(entry, past)
    return _named(tx, past, moment)


@dataclass(slots=True)
class _Contents:
    """A provider while changes are undone. By id, because a class or trait may have had another name then."""

    exists: bool
    inventories: dict[int, dict[str, Any]] = field(default_factory=dict)
    allocations: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    traits: set[int] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


def _now(tx: Transaction, uuid: str) -> _Contents:
    provider = tx.execute(select(RP.id).where(RP.uuid == uuid)).scalar()
    if provider is None:
        return _Contents(exists=False)
    has, held, marks, groups = inventories.c, allocations.c, resource_provider_traits.c, resource_provider_aggregates.c
    stocks = select(has.resource_class_id, *(has[name] for name in _STOCK)).where(has.resource_provider_id == provider)
    taken = select(held.id, held.consumer_id, held.resource_class_id, held.used).where(
        held.resource_provider_id == provider
    )
    grouped = select(placement_aggregates.c.uuid).join(
        resource_provider_aggregates, groups.aggregate_id == placement_aggregates.c.id
    )
    return _Contents(
        exists=True,
        inventories={id_: dict(zip(_STOCK, amounts, strict=True)) for id_, *amounts in tx.execute(stocks)},
        allocations={id_: (who, of, used) for id_, who, of, used in tx.tuples(taken)},
        traits=set(tx.execute(select(marks.trait_id).where(marks.resource_provider_id == provider)).scalars()),
        aggregates=set(tx.execute(grouped.where(groups.resource_provider_id == provider)).scalars()),
    )


def _undo(entry: Entry, past: _Contents) -> None:
    was_made, was_deleted = entry.action == CREATED, entry.action == DELETED
    if entry.kind == PROVIDER:
        past.exists = was_deleted or (past.exists and not was_made)
    elif entry.kind == INVENTORY:
        past.inventories.pop(int(entry.resource_class_id or 0), None)
        if entry.old is not None:
            past.inventories[int(entry.resource_class_id or 0)] = entry.old
    elif entry.kind == ALLOCATION:
        past.allocations.pop(int(entry.object_id or 0), None)
        if entry.old_amount is not None:
            held = (str(entry.consumer_uuid), int(entry.resource_class_id or 0), entry.old_amount)
            past.allocations[int(entry.object_id or 0)] = held
    elif entry.kind == TRAIT:
        (past.traits.discard if was_made else past.traits.add)(int(entry.object_id or 0))
    elif entry.kind == AGGREGATE:
        (past.aggregates.discard if was_made else past.aggregates.add)(str(entry.name))


def _named(tx: Transaction, past: _Contents, moment: datetime) -> PastProvider:
    """Name classes and traits as they were called at a moment."""
    former, connection = lost_after(tx, moment), tx.connection
    classes = tx.names.classes.names(connection, {*past.inventories, *(id_ for _, id_, _ in past.allocations.values())})
    traits = tx.names.traits.names(connection, past.traits)

    def class_name(id_: int) -> str:
        return former.at(0, CLASS_NAME, id_) or classes[id_]

    return PastProvider(
        exists=past.exists,
        inventories={class_name(id_): stock for id_, stock in past.inventories.items()},
        allocations={id_: (who, class_name(of), used) for id_, (who, of, used) in past.allocations.items()},
        traits={former.at(0, TRAIT_NAME, id_) or traits[id_] for id_ in past.traits},
        aggregates=past.aggregates,
    )
