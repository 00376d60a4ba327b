"""Traits and which providers have them. Standard traits come first, each kind in the order of ids."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, case, delete, exists, func, select

from placement.domain.names import CUSTOM_PREFIX
from placement.store.connection.prepared import NO_VALUES, PreparedInsert, PreparedStatement, Values, chunks
from placement.store.connection.unit_of_work import Transaction, insert_unless_exists
from placement.store.tables import resource_provider_traits, resource_providers, traits

TRAIT = traits.c
HAS = resource_provider_traits.c

_ORDER = (case((func.substr(TRAIT.name, 1, len(CUSTOM_PREFIX)) == CUSTOM_PREFIX, 1), else_=0), TRAIT.id)
_MODIFIED = func.coalesce(TRAIT.updated_at, TRAIT.created_at)
_ALL = select(TRAIT.id, TRAIT.name, _MODIFIED).order_by(*_ORDER)
_BY_NAME = PreparedStatement(_ALL.where(TRAIT.name == bindparam("name")))
_BY_NAMES = PreparedStatement(_ALL.where(TRAIT.name.in_(bindparam("names", expanding=True))))
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
_IDS_OF_PROVIDER = PreparedStatement(select(HAS.trait_id).where(HAS.resource_provider_id == bindparam("provider_id")))
_GIVE = PreparedInsert(resource_provider_traits, HAS.resource_provider_id, HAS.trait_id)
_TAKE = PreparedStatement(
    delete(resource_provider_traits).where(
        HAS.resource_provider_id == bindparam("provider_id"), HAS.trait_id.in_(bindparam("lost", expanding=True))
    )
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


def _found(tx: Transaction, query: PreparedStatement | Select[Any], values: Values = NO_VALUES) -> list[Trait]:
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
    return _found(tx, query)


def trait_named(tx: Transaction, name: str) -> Trait | None:
    """Return the trait with this name, or None."""
    return next(iter(_found(tx, _BY_NAME, {"name": name})), None)


def traits_named(tx: Transaction, names: Collection[str]) -> list[Trait]:
    """Return those of the traits that exist."""
    return [trait for chunk in chunks(sorted(set(names))) for trait in _found(tx, _BY_NAMES, {"names": chunk})]


def insert_trait(tx: Transaction, name: str) -> bool:
    """Insert a trait; return False if the name is taken."""
    return insert_unless_exists(tx, traits, {"name": name}, key="name")


def is_in_use(tx: Transaction, id_: int) -> bool:
    """Tell whether any provider has a trait."""
    return bool(tx.execute(select(exists().where(HAS.trait_id == id_))).scalar())


def delete_trait(tx: Transaction, id_: int) -> None:
    """Delete a trait that no provider has."""
    tx.execute(delete(traits).where(TRAIT.id == id_))


def traits_of(tx: Transaction, uuid: str) -> ProviderTraits | None:
    """Return the traits of the provider with this uuid, or None if there is no such provider."""
    rows = tx.rows(_TRAITS_OF, {"uuid": uuid})
    if not rows:
        return None
    return ProviderTraits(rows[0][0], [Trait(*row[1:]) for row in rows if row[1] is not None])


def replace_provider_traits(tx: Transaction, provider_id: int, trait_ids: Collection[int]) -> bool:
    """Make these exactly the traits of a provider, whose row is locked; tell whether anything changed."""
    wanted = set(trait_ids)
    present = {id_ for (id_,) in tx.tuples(_IDS_OF_PROVIDER, {"provider_id": provider_id})}
    if lost := present - wanted:
        tx.change(_TAKE, {"provider_id": provider_id, "lost": sorted(lost)})
    if gained := wanted - present:
        tx.insert(_GIVE, [{"resource_provider_id": provider_id, "trait_id": id_} for id_ in sorted(gained)])
    return wanted != present
