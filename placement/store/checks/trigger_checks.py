"""Check what triggers write against its source: kept usage, capacities and roots, and the journal."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Subquery,
    and_,
    case,
    func,
    literal,
    or_,
    select,
    union_all,
)

from placement.store.checks.audit import EXAMPLES, Hits
from placement.store.journal import triggers
from placement.store.journal.watched import BEGAN, DELETED, GENERATION, PROVIDER, WATCHED, Watched
from placement.store.kept_usage.usage_triggers import triggers_in_place
from placement.store.stock import StockSource
from placement.store.tables import (
    allocations,
    inventories,
    metadata,
    placement_journal,
    provider_usages,
    resource_classes,
    resource_providers,
)
from placement.store.trigger_set import DOUBTED

_J = placement_journal.c
_KEEPS = provider_usages.c
_SPOT = (_KEEPS.resource_provider_id, _KEEPS.resource_class_id)
_HAS = inventories.c
_CAPACITY = StockSource(keeps_usage=True).whole_capacity

# A single statement over all tables, so that every kind of database compares them in one snapshot.
_COUNTS = union_all(
    select(*_SPOT, _KEEPS.used.label("kept"), literal(0).label("right")),
    select(allocations.c.resource_provider_id, allocations.c.resource_class_id, literal(0), allocations.c.used),
).subquery()
_STOCKS = union_all(
    select(
        *_SPOT, _KEEPS.capacity.label("kept"), literal(0.0).label("right"), _KEEPS.root_provider_id.label("root"),
        literal(1).label("side"),
    ).where(_KEEPS.capacity.is_not(None)),
    select(
        _HAS.resource_provider_id, _HAS.resource_class_id, literal(0.0), _CAPACITY,
        -resource_providers.c.root_provider_id, literal(-1),
    ).join_from(inventories, resource_providers, resource_providers.c.id == _HAS.resource_provider_id),
).subquery()  # fmt: skip


def _inexact(usage: Subquery, *further: ColumnElement[bool]) -> Select[Any]:
    spot = (usage.c.resource_provider_id, usage.c.resource_class_id)
    kept, right = func.sum(usage.c.kept), func.sum(usage.c.right)
    return select(*spot, kept, right).group_by(*spot).having(or_(kept != right, *further)).order_by(*spot)


_INEXACT_USAGE = _inexact(_COUNTS)
_INEXACT_STOCK = _inexact(_STOCKS, func.sum(_STOCKS.c.root) != 0, func.sum(_STOCKS.c.side) != 0)


def inexact(connection: Connection) -> Hits:
    """Find kept usage, capacities and roots that are wrong."""
    if not triggers_in_place(connection):
        return Hits(1, (f"the triggers that keep them {DOUBTED}",))
    usage = _named(connection, _INEXACT_USAGE, "{name} of {uuid}: kept {kept}, allocated {right}")
    stock = _named(connection, _INEXACT_STOCK, "{name} of {uuid}: capacity kept {kept}, inventory {right}, or the root")
    return Hits(usage.total + stock.total, usage.examples + stock.examples)


def _named(connection: Connection, query: Select[Any], sentence: str) -> Hits:
    rows = connection.execute(query).all()
    if not rows:
        return Hits(0)
    uuids = dict(connection.execute(select(resource_providers.c.id, resource_providers.c.uuid)).all())
    names = dict(connection.execute(select(resource_classes.c.id, resource_classes.c.name)).all())
    examples = (
        sentence.format(
            name=names.get(class_, class_), uuid=uuids.get(provider, provider), kept=int(kept), right=int(right)
        )
        for provider, class_, kept, right in rows[:EXAMPLES]
    )
    return Hits(len(rows), tuple(examples))


def untrue(connection: Connection) -> Hits:
    """Find things that differ from the newest row of the journal about them. Without a journal nothing is wrong.

    Changes from before the journal last began are skipped: rows about them may be missing.
    """
    if not triggers.triggers_in_place(connection):
        return Hits(1, (f"the triggers that write it {DOUBTED}",)) if triggers.some_are_there(connection) else Hits(0)
    began = connection.execute(select(func.coalesce(func.max(_J.id), 0)).where(_J.action == BEGAN)).scalar_one()
    wrong = [
        f"{watched.table}, row {id_} of the journal"
        for watched in WATCHED
        for id_ in _wrong(connection, watched, began)
    ]
    return Hits(len(wrong), tuple(wrong[:EXAMPLES]))


def _wrong(connection: Connection, watched: Watched, began: int) -> Sequence[int]:
    """Return the ids of the newest journal rows that contradict the table."""
    table, recorded = metadata.tables[watched.table], placement_journal.c
    key = {"object_id": "id"} if "id" in watched.identity else watched.copies
    same = {name: column for name, column in watched.copies.items() if name not in key}
    if watched.amount:
        same["new_amount"] = watched.amount
    kinds = (PROVIDER, GENERATION) if watched.kind == PROVIDER else (watched.kind,)
    newest = (
        select(func.max(_J.id)).where(_J.kind.in_(kinds), _J.id > began).group_by(*(recorded[name] for name in key))
    )
    is_there = table.c[next(iter(key.values()))].is_not(None)
    differs = or_(~is_there, *(recorded[name].is_distinct_from(table.c[column]) for name, column in same.items()))
    query = (
        select(_J.id)
        .outerjoin(table, and_(*(recorded[name] == table.c[column] for name, column in key.items())))
        .where(_J.id.in_(newest), case((_J.action == DELETED, is_there), else_=differs))
        .order_by(_J.id)
    )
    return connection.execute(query).scalars().all()
