"""Resolve the names in a candidate request to ids, and read the few facts that steer the search."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import os_traits
from sqlalchemy import BindParameter, Integer, ScalarSelect, bindparam, select

from placement.domain.candidate_request import CandidateRequest
from placement.domain.places import PlaceLock
from placement.domain.search_plan import NamedIds, Plan
from placement.errors import Invalid
from placement.store.connection.prepared import PreparedScalars, PreparedStatement, Values
from placement.store.connection.unit_of_work import Transaction
from placement.store.locks import UsedLocks, lock_columns, lock_values, used_locks
from placement.store.search.ranges import HAS_ROOT
from placement.store.tables import placement_aggregates, resource_provider_traits, resource_providers, traits

_AGGREGATES = PreparedStatement(
    select(placement_aggregates.c.uuid, placement_aggregates.c.id).where(
        placement_aggregates.c.uuid.in_(bindparam("uuids", expanding=True))
    )
)
_ROOTS = PreparedStatement(
    select(resource_providers.c.uuid, resource_providers.c.root_provider_id).where(
        resource_providers.c.uuid.in_(bindparam("uuids", expanding=True)), HAS_ROOT
    )
)
_IN_USE = resource_provider_traits.c.trait_id


def _next_in_use(trait: Any) -> ScalarSelect[int]:
    """Return the lowest id of a trait in use from this one on: itself, if any provider has it.

    Only the primary key, which begins with the trait, has this order, so that PostgreSQL looks it up there. Asked for a
    provider with the trait, it may expect to find one soon in any order, and in vain read all rows or a whole index.
    MariaDB would read the whole index for a minimum, unless the trait were a constant.
    """
    return select(_IN_USE).where(trait <= _IN_USE).order_by(_IN_USE).limit(1).scalar_subquery()


_SHARING_TRAIT: BindParameter[int] = bindparam("sharing_trait", type_=Integer)
_SHARES = _next_in_use(_SHARING_TRAIT) == _SHARING_TRAIT


ReadAlong = Callable[[Transaction, PreparedScalars, Values], Sequence[Any] | None]
"""Reads scalars in a snapshot along with something else; returns None if they must be read alone."""


@lru_cache(maxsize=16)
def _facts(levels: int, locks: int) -> PreparedScalars:
    """Return the facts that steer the search.

    They are whether any provider shares, the traits of levels in use, and the lock classes in use.
    """
    in_use = [
        select(traits.c.id)
        .where(traits.c.name == bindparam(f"level_{level}"), traits.c.id == _next_in_use(traits.c.id))
        .scalar_subquery()
        for level in range(levels)
    ]
    return PreparedScalars(_SHARES, *in_use, *lock_columns(locks))


def ids_for(
    tx: Transaction,
    plan: Plan,
    levels: Sequence[str] = (),
    *,
    locks: Sequence[PlaceLock] = (),
    read_along: ReadAlong | None = None,
) -> NamedIds:
    """Look up all names of a plan, and which level traits and lock classes are in use.

    Args:
        tx: the transaction.
        plan: the plan.
        levels: the traits of levels.
        locks: the locks of places.
        read_along: may read the facts that steer the search, and spare a statement.

    Raises:
        Invalid: a resource class or trait does not exist. Unknown aggregates and providers are not errors: they are
            just empty.
    """
    request = plan.request
    classes, trait_ids = _known_names(tx, plan)
    values: dict[str, object] = {f"level_{index}": name for index, name in enumerate(levels)}
    sharing_trait = trait_ids.get(os_traits.MISC_SHARES_VIA_AGGREGATE, -1)
    values |= {**lock_values(locks), "sharing_trait": sharing_trait}
    facts = _facts(len(levels), len(locks))
    read = read_along(tx, facts, values) if read_along else None
    shares, *in_use = facts.read(tx.connection, values) if read is None else read
    return NamedIds(
        classes=classes,
        traits=trait_ids,
        aggregates=_by_uuid(tx, _AGGREGATES, _aggregate_uuids(request)),
        roots=_by_uuid(tx, _ROOTS, {group.in_tree for group in request.groups if group.in_tree}),
        shares=bool(shares),
        levels=tuple(in_use[: len(levels)]),
        locks=_locks(tx, used_locks(locks, in_use[len(levels) :])),
    )


def _locks(tx: Transaction, used: UsedLocks) -> dict[int, int | None]:
    """Return by lock class the id of the trait of its level; a level whose trait does not exist has no place."""
    ids = tx.names.traits.ids(tx.connection, {trait for trait in used.values() if trait is not None}) if used else {}
    in_use = {class_id: trait for class_id, trait in used.items() if trait is None or trait in ids}
    return {class_id: None if trait is None else ids[trait] for class_id, trait in in_use.items()}


def _known_names(tx: Transaction, plan: Plan) -> tuple[dict[str, int], dict[str, int]]:
    """Return the ids of all resource classes and of all traits in a request, and of the trait that marks sharing.

    Raises:
        Invalid: one does not exist.
    """
    class_names, trait_names = _class_names(plan.request), plan.trait_names
    classes = tx.names.classes.ids(tx.connection, class_names)
    if unknown := sorted(class_names - classes.keys()):
        raise Invalid(f"Invalid resource class in resources parameter: No such resource class {unknown[0]}.")
    trait_ids = tx.names.traits.ids(tx.connection, trait_names | {os_traits.MISC_SHARES_VIA_AGGREGATE})
    if missing := sorted(trait_names - trait_ids.keys()):
        raise Invalid(f"No such trait(s): {', '.join(missing)}.")
    return classes, trait_ids


def _by_uuid(tx: Transaction, statement: PreparedStatement, uuids: Iterable[str]) -> dict[str, int]:
    wanted = sorted(uuids)
    return dict(tx.tuples(statement, {"uuids": wanted})) if wanted else {}


def _class_names(request: CandidateRequest) -> set[str]:
    return {name for group in request.groups for name in group.resources}


def _aggregate_uuids(request: CandidateRequest) -> set[str]:
    uuids: set[str] = set()
    for group in request.groups:
        uuids.update(*group.member_of, group.forbidden_aggregates)
    return uuids
