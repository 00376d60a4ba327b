"""Verify a database: no reference dangles, the trees are intact, kept usage is exact, the journal agrees.

On request, everything that can be repaired without guessing is repaired.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Table,
    or_,
    select,
    update,
)

from placement.store.checks.audit import DANGLING, EXAMPLES, ODD_AMOUNTS, BadRows, Hits
from placement.store.checks.trigger_checks import inexact, untrue
from placement.store.journal import triggers as journal
from placement.store.kept_usage import usage_triggers as kept_usage
from placement.store.lifecycle.maintenance import Progress, exclusively, looking, silent
from placement.store.lifecycle.reference_schema import (
    create_incomplete_consumers,
    incomplete_consumers,
    set_roots,
    wrong_roots,
)
from placement.store.tables import consumers, resource_providers
from placement.store.trigger_set import TriggersRefused, missing_grant


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem: what, how often, some examples, whether it has been repaired, and whether it can be.

    ``needs`` is what an operator has to grant first.
    """

    what: str
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

    what: str
    find: Callable[[Connection], Hits]
    repair: Callable[[Connection, Owner], bool]
    is_repairable: Callable[[Connection], bool] = lambda _connection: True
    needs: Callable[[Connection], str | None] = lambda _connection: None


def check(engine: Engine, progress: Progress = silent) -> tuple[Finding, ...]:
    """Return the problems of a database, in one snapshot, so that others may keep writing.

    Raises:
        Unavailable, MaintenanceFailed: as ``maintenance.looking``.
    """
    with looking(engine) as connection:
        return tuple(finding for finding, _ in _findings(connection, progress))


def repair(engine: Engine, owner: Owner, progress: Progress = silent) -> tuple[Finding, ...]:
    """Repair what can be repaired and return all problems found. Allocations cannot be written while usage is counted.

    Raises:
        Unavailable, MaintenanceFailed: as ``maintenance.exclusively``.
    """
    with exclusively(engine) as connection:
        return tuple(
            replace(finding, repaired=not finding.needs and problem.repair(connection, owner))
            for finding, problem in _findings(connection, progress)
        )


def _findings(connection: Connection, progress: Progress) -> Iterator[tuple[Finding, _Problem]]:
    for number, problem in enumerate(PROBLEMS):
        progress(f"Looking for {problem.what}", number / len(PROBLEMS))
        total, examples = problem.find(connection)
        if total:
            is_repairable, needs = problem.is_repairable(connection), problem.needs(connection)
            yield Finding(problem.what, total, examples, is_repairable=is_repairable, needs=needs), problem


def _of_bad_rows(bad: BadRows) -> _Problem:
    def delete_useless(connection: Connection, _owner: Owner) -> bool:
        if bad.useless:
            bad.delete(connection)
        return bad.useless

    return _Problem(bad.what, bad.hits, delete_useless, lambda _connection: bad.useless)


def _make_consumers(connection: Connection, owner: Owner) -> bool:
    count = incomplete_consumers(connection)
    create_incomplete_consumers(connection, count, project_id=owner.project_id, user_id=owner.user_id)
    return True


def _in_wrong_trees(connection: Connection) -> Hits:
    wrong = wrong_roots(connection)
    return Hits(len(wrong), tuple(f"provider {id_}" for id_ in sorted(wrong)[:EXAMPLES]))


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
    return Hits(len(hits), tuple(hits[:EXAMPLES]))


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
        _in_wrong_trees,
        _plant_again,
        lambda connection: any(root is not None for root in wrong_roots(connection).values()),
    ),
    _Problem("generations that are missing or negative", _without_generation, _begin_again),
    _Problem("wrong kept usage or capacity", inexact, _again(kept_usage.install), needs=missing_grant),
    _Problem("things that are not as the journal tells", untrue, _again(journal.install), needs=missing_grant),
)
"""Kept usage and the journal come last, because the other repairs change them."""
