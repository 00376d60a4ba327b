"""Verify a database: no reference dangles, the trees are intact, and what triggers write agrees with its source.

That is kept usage, capacities and roots, and the journal. On request, everything that can be repaired without guessing
is repaired.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    Subquery,
    Table,
    and_,
    case,
    func,
    literal,
    or_,
    select,
    union_all,
    update,
)

from placement.store import kept_usage
from placement.store.checks.audit import DANGLING, ODD_AMOUNTS, BadRows, Hits
from placement.store.journal import triggers as journal
from placement.store.journal.watched import BEGAN, DELETED, GENERATION, PROVIDER, WATCHED, Watched
from placement.store.lifecycle.maintenance import Progress, exclusively, looking, silent
from placement.store.lifecycle.reference_schema import (
    create_incomplete_consumers,
    incomplete_consumers,
    set_roots,
    wrong_roots,
)
from placement.store.stock import StockSource
from placement.store.tables import (
    allocations,
    consumers,
    inventories,
    metadata,
    placement_journal,
    provider_usages,
    resource_classes,
    resource_providers,
)
from placement.store.trigger_set import DOUBTED, TriggersRefused, missing_grant

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
    if not kept_usage.triggers_in_place(connection):
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
    return Hits.counted(
        [
            sentence.format(name=names.get(class_, class_), uuid=uuids.get(id_, id_), kept=int(kept), right=int(right))
            for id_, class_, kept, right in rows
        ]
    )


def untrue(connection: Connection) -> Hits:
    """Find things that differ from the newest row of the journal about them. Without a journal nothing is wrong.

    Changes from before the journal last began are skipped: rows about them may be missing.
    """
    if not journal.triggers_in_place(connection):
        return Hits(1, (f"the triggers that write it {DOUBTED}",)) if journal.some_are_there(connection) else Hits(0)
    began = connection.execute(select(func.coalesce(func.max(_J.id), 0)).where(_J.action == BEGAN)).scalar_one()
    wrong = [
        f"{watched.table}, row {id_} of the journal"
        for watched in WATCHED
        for id_ in _wrong(connection, watched, began)
    ]
    return Hits.counted(wrong)


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


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem: what, how often, some examples, whether it has been repaired, and whether it can be.

    ``needs`` is what an operator has to grant first.
    """

    description: str
    count: int
    examples: tuple[str, ...] = ()
    repaired: bool = False
    is_repairable: bool = True
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """The external ids of the project and user that adopt allocations without a consumer."""

    project_id: str
    user_id: str


class _Problem(NamedTuple):
    """A kind of problem. ``repair`` fixes it and tells whether it could; the other two tell before."""

    description: str
    find: Callable[[Connection], Hits]
    repair: Callable[[Connection, Owner], bool]
    is_repairable: Callable[[Connection], bool] = lambda _connection: True
    needs: Callable[[Connection], str | None] = lambda _connection: None


def check(engine: Engine, progress: Progress = silent) -> tuple[Finding, ...]:
    """Return the problems of a database, in one snapshot, so that others may keep writing. Raises as ``looking``."""
    with looking(engine) as connection:
        return tuple(finding for finding, _ in _findings(connection, progress))


def repair(engine: Engine, owner: Owner, progress: Progress = silent) -> tuple[Finding, ...]:
    """Repair what can be repaired and return all problems; allocations wait meanwhile. Raises as ``exclusively``."""
    with exclusively(engine) as connection:
        return tuple(
            replace(finding, repaired=not finding.needs and problem.repair(connection, owner))
            for finding, problem in _findings(connection, progress)
        )


def _findings(connection: Connection, progress: Progress) -> Iterator[tuple[Finding, _Problem]]:
    for number, problem in enumerate(PROBLEMS):
        progress(f"Looking for {problem.description}", number / len(PROBLEMS))
        total, examples = problem.find(connection)
        if total:
            is_repairable, needs = problem.is_repairable(connection), problem.needs(connection)
            yield Finding(problem.description, total, examples, is_repairable=is_repairable, needs=needs), problem


def _of_bad_rows(bad: BadRows) -> _Problem:
    return _Problem(
        bad.description, bad.hits, lambda connection, _owner: bad.deleted(connection), lambda _: bad.useless
    )


def _make_consumers(connection: Connection, owner: Owner) -> bool:
    count = incomplete_consumers(connection)
    create_incomplete_consumers(connection, count, project_id=owner.project_id, user_id=owner.user_id)
    return True


def _plant_again(connection: Connection, _owner: Owner) -> bool:
    wrong = wrong_roots(connection)
    return set_roots(connection, wrong) == len(wrong)


_GENERATED = (resource_providers, consumers)


def _without_generation(connection: Connection) -> Hits:
    """Find generations that no client can name, which would make the row immutable."""
    hits = [
        f"{table.name} {uuid}"
        for table in _GENERATED
        for uuid in connection.execute(
            select(table.c.uuid).where(_is_no_generation(table)).order_by(table.c.id)
        ).scalars()
    ]
    return Hits.counted(hits)


def _is_no_generation(table: Table) -> ColumnElement[bool]:
    return or_(table.c.generation.is_(None), table.c.generation < 0)


def _begin_again(connection: Connection, _owner: Owner) -> bool:
    for table in _GENERATED:
        connection.execute(update(table).where(_is_no_generation(table)).values(generation=0))
    return True


def _again(install: Callable[[Connection], None]) -> Callable[[Connection, Owner], bool]:
    def repair(connection: Connection, _owner: Owner) -> bool:
        try:
            install(connection)
        except TriggersRefused:
            return False
        return True

    return repair


PROBLEMS = (
    *(_of_bad_rows(bad) for bad in (*DANGLING, *ODD_AMOUNTS)),
    _Problem(
        "consumers that hold allocations but are not known",
        lambda connection: Hits(incomplete_consumers(connection)),
        _make_consumers,
    ),
    _Problem(
        "providers that name the wrong root provider",
        lambda connection: Hits.counted([f"provider {id_}" for id_ in sorted(wrong_roots(connection))]),
        _plant_again,
        lambda connection: any(root is not None for root in wrong_roots(connection).values()),
    ),
    _Problem("generations that are missing or negative", _without_generation, _begin_again),
    _Problem("wrong kept usage or capacity", inexact, _again(kept_usage.install), needs=missing_grant),
    _Problem("things that are not as the journal tells", untrue, _again(journal.install), needs=missing_grant),
)
"""Kept usage and the journal come last, because the other repairs change them."""
