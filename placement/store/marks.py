"""Traits and aggregates: marks of providers. An aggregate comes into being when the first provider is put into it.

Standard traits come first, each kind in the order of ids.
"""

from collections.abc import Collection, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Select, Table, bindparam, case, delete, exists, func, select

from placement.domain.names import CUSTOM_PREFIX
from placement.errors import NotFound, ProviderNotFound
from placement.store.connection.database import Transaction
from placement.store.connection.statements import (
    NO_VALUES,
    KeyedStatement,
    PreparedStatement,
    Values,
    insert_unless_exists,
    row_insert,
)
from placement.store.tables import (
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

TRAIT = traits.c
HAS = resource_provider_traits.c

_ORDER = (case((func.substr(TRAIT.name, 1, len(CUSTOM_PREFIX)) == CUSTOM_PREFIX, 1), else_=0), TRAIT.id)
_MODIFIED = func.coalesce(TRAIT.updated_at, TRAIT.created_at)
_ALL = select(TRAIT.id, TRAIT.name, _MODIFIED).order_by(*_ORDER)
_BY_NAME = PreparedStatement(_ALL.where(TRAIT.name == bindparam("name")))
_BY_NAMES = KeyedStatement(_ALL, TRAIT.name)
_IS_IN_USE = exists().where(HAS.trait_id == TRAIT.id)

# One statement tells an unknown provider (no row) from one without traits (one row of nulls).
_TRAITS_OF = PreparedStatement(
    select(resource_providers.c.generation, TRAIT.id, TRAIT.name, _MODIFIED)
    .select_from(
        resource_providers.outerjoin(
            resource_provider_traits, HAS.resource_provider_id == resource_providers.c.id
        ).outerjoin(traits, TRAIT.id == HAS.trait_id)
    )
    .where(resource_providers.c.uuid == bindparam("uuid"))
    .order_by(*_ORDER)
)


@dataclass(frozen=True, slots=True)
class Trait:
    """A trait; ``modified`` is naive UTC, or None if it was not recorded."""

    id: int
    name: str
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class ProviderTraits:
    """The traits of a provider, and its generation."""

    generation: int
    traits: list[Trait]


def _traits_in(tx: Transaction, query: PreparedStatement | Select[Any], values: Values = NO_VALUES) -> list[Trait]:
    rows = tx.rows(query, values) if isinstance(query, PreparedStatement) else tx.execute(query)
    return [Trait(*row) for row in rows]


def traits_matching(
    tx: Transaction, *, names: Collection[str] | None = None, prefix: str = "", associated: bool | None = None
) -> list[Trait]:
    """Return the traits that match all conditions: a name, a prefix, and whether any provider has them."""
    query = _ALL
    if names is not None:
        query = query.where(TRAIT.name.in_(sorted(set(names))))
    if prefix:
        # Not LIKE, which treats underscores in names as wildcards and, on SQLite, ignores case.
        query = query.where(func.substr(TRAIT.name, 1, len(prefix)) == prefix)
    if associated is not None:
        query = query.where(_IS_IN_USE if associated else ~_IS_IN_USE)
    return _traits_in(tx, query)


def trait_named(tx: Transaction, name: str) -> Trait | None:
    """Return the trait with this name, or None."""
    return next(iter(_traits_in(tx, _BY_NAME, {"name": name})), None)


def required_trait(tx: Transaction, name: str) -> Trait:
    """Return the trait with this name; NotFound if there is none."""
    if trait := trait_named(tx, name):
        return trait
    raise NotFound(f"No such trait(s): {name}.")


def traits_named(tx: Transaction, names: Collection[str]) -> list[Trait]:
    """Return those of the traits that exist."""
    return [Trait(*row) for row in _BY_NAMES.rows(tx.connection, set(names))]


def insert_trait(tx: Transaction, name: str) -> bool:
    """Insert a trait; return False if the name is taken."""
    return insert_unless_exists(tx, traits, {"name": name}, key="name")


def is_in_use(tx: Transaction, id_: int) -> bool:
    """Tell whether any provider has a trait."""
    return bool(tx.execute(select(exists().where(HAS.trait_id == id_))).scalar())


def delete_trait(tx: Transaction, id_: int) -> None:
    """Delete a trait that no provider has."""
    tx.execute(delete(traits).where(TRAIT.id == id_))


def traits_of(tx: Transaction, uuid: str) -> ProviderTraits:
    """Return the traits of the provider with this uuid; ProviderNotFound if there is none."""
    rows = tx.rows(_TRAITS_OF, {"uuid": uuid})
    if not rows:
        raise ProviderNotFound(uuid)
    return ProviderTraits(rows[0][0], [Trait(*row[1:]) for row in rows if row[1] is not None])


class _Links:
    """A table of links between providers and their marks."""

    def __init__(self, provider: Column[int], mark: Column[int]) -> None:
        table, is_of_provider = provider.table, provider == bindparam("provider_id")
        assert isinstance(table, Table)
        self._names = provider.name, mark.name
        self._present = PreparedStatement(select(mark).where(is_of_provider))
        self._give = row_insert(table, provider, mark)
        self._take = PreparedStatement(delete(table).where(is_of_provider, mark.in_(bindparam("lost", expanding=True))))

    def replace(self, tx: Transaction, provider_id: int, mark_ids: Set[int]) -> bool:
        """Make these exactly the marks of a provider; tell whether anything changed."""
        present = {id_ for (id_,) in tx.tuples(self._present, {"provider_id": provider_id})}
        if lost := present - mark_ids:
            tx.change(self._take, {"provider_id": provider_id, "lost": sorted(lost)})
        if gained := mark_ids - present:
            tx.write_rows(
                self._give, [dict(zip(self._names, (provider_id, id_), strict=True)) for id_ in sorted(gained)]
            )
        return mark_ids != present


_TRAITS = _Links(HAS.resource_provider_id, HAS.trait_id)


def replace_provider_traits(tx: Transaction, provider_id: int, trait_ids: Collection[int]) -> bool:
    """Make these exactly the traits of a provider, whose row is locked; tell whether anything changed."""
    return _TRAITS.replace(tx, provider_id, set(trait_ids))


AGGREGATE = placement_aggregates.c
MEMBER = resource_provider_aggregates.c

# One statement tells an unknown provider (no row) from one in no aggregate (one row with a null).
_MEMBERSHIP = PreparedStatement(
    select(resource_providers.c.generation, AGGREGATE.uuid)
    .select_from(
        resource_providers.outerjoin(
            resource_provider_aggregates, MEMBER.resource_provider_id == resource_providers.c.id
        ).outerjoin(placement_aggregates, AGGREGATE.id == MEMBER.aggregate_id)
    )
    .where(resource_providers.c.uuid == bindparam("uuid"))
    .order_by(MEMBER.aggregate_id)
)
_IDS = KeyedStatement(select(AGGREGATE.uuid, AGGREGATE.id), AGGREGATE.uuid)


@dataclass(frozen=True, slots=True)
class Membership:
    """The aggregates of a provider, and its generation."""

    generation: int
    aggregates: list[str]


def membership(tx: Transaction, uuid: str) -> Membership:
    """Return the aggregates of the provider with this uuid; ProviderNotFound if there is none."""
    rows = tx.tuples(_MEMBERSHIP, {"uuid": uuid})
    if not rows:
        raise ProviderNotFound(uuid)
    return Membership(rows[0][0], [aggregate for _, aggregate in rows if aggregate is not None])


def hosts_in(tx: Transaction, aggregates: Collection[str] | None = None) -> dict[str, list[int]]:
    """Map each of some aggregates, or of all, to the roots of the trees that have a provider in it."""
    query = (
        select(AGGREGATE.uuid, resource_providers.c.root_provider_id)
        .select_from(
            placement_aggregates.join(resource_provider_aggregates, MEMBER.aggregate_id == AGGREGATE.id).join(
                resource_providers, resource_providers.c.id == MEMBER.resource_provider_id
            )
        )
        .where(resource_providers.c.root_provider_id.is_not(None))
        .distinct()
    )
    if aggregates is not None:
        query = query.where(AGGREGATE.uuid.in_(sorted(aggregates)))
    roots_of: dict[str, list[int]] = {}
    for uuid, root in tx.tuples(query) if aggregates is None or aggregates else ():
        roots_of.setdefault(uuid, []).append(root)
    return roots_of


_AGGREGATES = _Links(MEMBER.resource_provider_id, MEMBER.aggregate_id)


def replace_aggregates(tx: Transaction, provider_id: int, uuids: Collection[str]) -> None:
    """Make these exactly the aggregates of a provider, whose row the caller has locked."""
    _AGGREGATES.replace(tx, provider_id, _aggregate_ids(tx, sorted(set(uuids))))


def _aggregate_ids(tx: Transaction, uuids: list[str]) -> set[int]:
    """Return the ids of aggregates, creating missing ones."""
    ids: dict[str, int] = dict(_IDS.tuples(tx.connection, uuids))
    if new := [uuid for uuid in uuids if uuid not in ids]:
        insert_unless_exists(tx, placement_aggregates, [{"uuid": uuid} for uuid in new], key="uuid")
        ids.update(_IDS.tuples(tx.connection, new))
    return set(ids.values())
